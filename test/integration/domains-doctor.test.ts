/** What the doctor makes of a resolver that does not behave. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDoctor } from '../../control/domains/doctor.ts'
import { createProbe } from '../../control/domains/probe.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

const claim = { domain: 'silent.test', target: 't-1.sites.test', verify_token: 'abc' }
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
  const doctor = createDoctor({ dnsResolver: `127.0.0.1:${silent.address().port}`, caaIdentities: [], asksCa: true })
  expect(await doctor.examine(claim)).toMatchObject({ failure: 'timeout', cnames: [], addresses: [], hasProof: false })
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
  const open = createProbe({ redis, challengePort, allowPrivateAddresses: true })
  expect(await open.probe('redirect.test', ['127.0.0.1'])).toBe('challenge_wrong')
  expect(await open.probe('long.test', ['127.0.0.1'])).toBe('challenge_wrong')
  expect(asked).toHaveLength(2)
  const strict = createProbe({ redis, challengePort, allowPrivateAddresses: false })
  expect(await strict.probe('private.test', ['127.0.0.1', '169.254.169.254', '::1'])).toBe('private_address')
  expect(asked).toHaveLength(2)
  web.closeAllConnections()
  web.close()
}, 30_000)
