/** REDIS_URL in all its forms, against real servers: TLS, Sentinel, a cluster. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Redis } from 'ioredis'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { connectRedis as connectControl, endOfLog } from '../../control/ground/routing/redis.ts'
import { connectRedis as connectEdge } from '../../edge/store/follow/redis.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'
import { silentLog } from '../../shared/running/log.ts'
import { openBlocking } from '../../shared/redis/redis.ts'
import { parseRedisUrl } from '../../shared/redis/url.ts'
import { until } from '../support/processes.ts'
import { freePorts } from '../support/stack.ts'

const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-redis-urls-'))
const servers: ChildProcess[] = []
let ports: number[] = []

beforeAll(async () => {
  ports = await freePorts(5)
  const [tlsPort, plainPort, sentinelPort, clusterPort, busPort] = ports as [number, number, number, number, number]
  const ca = openLocalCa(folder, systemClock)
  const { cert, key } = ca.issue(['localhost', '127.0.0.1'])
  writeFileSync(path.join(folder, 'cert.pem'), cert)
  writeFileSync(path.join(folder, 'key.pem'), key)
  start('--port', '0', '--tls-port', String(tlsPort), '--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem',
    '--tls-auth-clients', 'no', '--tls-ca-cert-file', 'ca/ca.pem') // prettier-ignore
  start('--port', String(plainPort))
  start(
    '--port',
    String(clusterPort),
    '--cluster-enabled',
    'yes',
    '--cluster-config-file',
    'nodes.conf',
    '--cluster-announce-ip',
    '127.0.0.1',
    '--cluster-port',
    String(busPort),
  )
  writeFileSync(
    path.join(folder, 'sentinel.conf'),
    `port ${sentinelPort}\nbind 127.0.0.1\nsentinel monitor fleet 127.0.0.1 ${plainPort} 1\n`,
  )
  servers.push(spawn('redis-server', ['sentinel.conf', '--sentinel'], { cwd: folder, stdio: 'ignore' }))
  for (const port of [tlsPort, plainPort, sentinelPort, clusterPort])
    await until(() => isListening(port), `a server at port ${port}`)
  const cluster = new Redis(clusterPort, '127.0.0.1').on('error', () => {})
  await cluster.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  const isWhole = async () => ((await cluster.call('CLUSTER', 'INFO')) as string).includes('cluster_state:ok')
  await until(isWhole, 'the cluster to be whole')
  cluster.disconnect()
})

afterAll(async () => {
  for (const server of servers) {
    server.kill('SIGKILL')
    await once(server, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
})

async function isListening(port: number): Promise<boolean> {
  const socket = net.connect(port, '127.0.0.1')
  const isUp = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isUp
}

function start(...options: string[]): void {
  const args = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...options]
  servers.push(spawn('redis-server', args, { cwd: folder, stdio: 'ignore' }))
}

/** Where the next entry of the log behind this one comes from; it is waited for, two seconds at a time. */
async function next(redis: Redis, position: string): Promise<string> {
  for (;;) {
    const read = await redis.xread('BLOCK', 2000, 'STREAMS', keys.log, position)
    if (read) return read[0]![0]
  }
}

const forms: readonly { name: string; url: () => string }[] = [
  { name: 'one server', url: () => `redis://127.0.0.1:${ports[1]}` },
  { name: 'Sentinel', url: () => `redis+sentinel://127.0.0.1:${ports[2]}/fleet` },
  { name: 'a cluster', url: () => `redis+cluster://127.0.0.1:${ports[3]}` },
]

describe.each(forms)('$name', ({ url }) => {
  test('the edge and control connect, write in one transaction, block, and come back after a cut', async () => {
    const control = connectControl(url(), silentLog)
    const edge = connectEdge(url(), 'background')
    const following = connectEdge(url(), 'blocking')
    const blocking = openBlocking(control, 10_000).on('error', () => {})
    try {
      if (control.status !== 'ready') await once(control, 'ready')
      await Promise.all([edge.connect(), following.connect()])
      const before = await endOfLog(control)
      const heard = next(blocking, before)
      const followed = next(following, before)
      await expect.poll(() => control.info('clients')).toContain('blocked_clients:2')
      await control.multi().hset(keys.routes, 'a', '1').xadd(keys.log, '*', 'x', 'y').exec()
      expect(await edge.hget(keys.routes, 'a')).toBe('1')
      expect(await heard).toBe(keys.log)
      expect(await followed).toBe(keys.log)
      await control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => {})
      await expect.poll(() => control.hget(keys.routes, 'a').catch(() => '')).toBe('1')
      await expect.poll(() => edge.hget(keys.routes, 'a').catch(() => '')).toBe('1')
    } finally {
      for (const client of [control, edge, following, blocking]) client.disconnect()
    }
  })
})

test('TLS: the certificate is checked', async () => {
  const client = connectEdge(`rediss://127.0.0.1:${ports[0]}`, 'commands')
  const refused = once(client, 'error')
  await expect(client.connect()).rejects.toThrow()
  expect(String((await refused)[0])).toMatch(/certificate/)
  client.disconnect()
})

test.each([
  [
    'redis+sentinel://:s%40crt@a,b:26380/fleet/2',
    {
      kind: 'sentinel',
      master: 'fleet',
      db: 2,
      tls: false,
      password: 's@crt',
      servers: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 26380 },
      ],
    },
  ],
  [
    'rediss+cluster://me:pw@[::1]:7000',
    { kind: 'cluster', tls: true, username: 'me', password: 'pw', servers: [{ host: '::1', port: 7000 }] },
  ],
  ['rediss://cache.example:6380', { kind: 'single', url: 'rediss://cache.example:6380' }],
  ['/run/redis.sock', { kind: 'single', url: '/run/redis.sock' }],
])('%s', (url, location) => {
  expect(parseRedisUrl(url)).toMatchObject(location)
})

test.each(['http://a', 'redis+sentinel://:secret@a', 'redis+cluster://:secret@a:b:c'])(
  '%s is refused, without its secret',
  (url) => {
    expect(() => parseRedisUrl(url)).toThrow(/^REDIS_URL(?!.*secret)/)
  },
)
