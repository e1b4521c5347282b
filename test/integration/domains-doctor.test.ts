/** What the doctor makes of a resolver that does not behave. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDns } from '../../control/drops/domains/dns/dns.ts'
import { observe } from '../../control/drops/domains/dns/observe.ts'
import { createProbe } from '../../control/drops/domains/dns/probe.ts'
import { keys } from '../../shared/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

let server: TestRedis
let redis: Redis
beforeAll(async () => {
  server = await startTestRedis()
  redis = new Redis(server.url)
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

test('a resolver that never answers is a timeout, within seconds', async () => {
  const silent = dgram.createSocket('udp4').bind(0, '127.0.0.1')
  await once(silent, 'listening')
  const dns = createDns(`127.0.0.1:${silent.address().port}`)
  expect(await observe(dns, 'silent.test', true)).toMatchObject({
    failure: { kind: 'timeout', name: 'silent.test' },
    chain: [],
    addresses: [],
    txts: undefined,
    caa: { kind: 'failed', name: 'silent.test' },
  })
  silent.close()
})

test('the probe follows no redirect, reads no long body, and leaves private addresses alone', async () => {
  const asked: string[] = []
  const web = http.createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`)
    if (request.headers.host === 'redirect.test')
      response.writeHead(302, { location: 'http://127.0.0.1:1/secret' }).end()
    else response.writeHead(200).end('x'.repeat(5_000_000))
  })
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  const challengePort = (web.address() as AddressInfo).port
  // One that has read everything: the probe waits for nobody.
  await redis.sadd(keys.edges, 'edge')
  await redis.set(keys.edge('edge'), '9999999999999-0')
  const open = createProbe({ redis, challengePort, allowPrivateAddresses: true, allowLoopback: true })
  expect(await open.probe('redirect.test', ['127.0.0.1'])).toMatchObject([{ outcome: 'stranger', status: 302 }])
  expect(await open.probe('long.test', ['127.0.0.1'])).toMatchObject([{ outcome: 'stranger', status: 200 }])
  expect(asked).toHaveLength(2)
  const strict = createProbe({ redis, challengePort, allowPrivateAddresses: false, allowLoopback: false })
  const addresses = ['127.0.0.1', '169.254.169.254', '10.1.2.3', '::1']
  const isPrivate = { outcome: 'private' }
  expect(await strict.probe('private.test', addresses)).toMatchObject([isPrivate, isPrivate, isPrivate, isPrivate])
  expect(asked).toHaveLength(2)
  // A laptop looks at itself, and at nothing else of its network.
  const laptop = createProbe({ redis, challengePort, allowPrivateAddresses: false, allowLoopback: true })
  expect(await laptop.probe('laptop.test', ['127.0.0.1', '192.168.1.1'])).toMatchObject([
    { address: '127.0.0.1', outcome: 'stranger' },
    { address: '192.168.1.1', outcome: 'private' },
  ])
  expect(asked).toHaveLength(3)
  web.closeAllConnections()
  web.close()
})
