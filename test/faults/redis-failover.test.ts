/** Redis as production has it: behind TLS, behind Sentinel, as a cluster. Where there is a replica, the master dies. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'
import { figures, publishUntil, seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { freePorts, type Account, type Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

/** How soon a server that does not answer is taken for dead. */
const DOWN_AFTER_MS = 1000

interface Servers {
  readonly url: string
  readonly env?: Readonly<Record<string, string>>
  /** Looks into what serves us now. */
  connect(): Redis
  stop(): Promise<void>
}

interface Replicated extends Servers {
  /** Kills what serves us now with SIGKILL; resolves when another has taken over. */
  killMaster(): Promise<void>
}

/** Real servers in a folder of their own, each with its own working directory. */
function createGroup(): {
  folder: string
  start(port: number, ...options: string[]): ChildProcess
  stop(): Promise<void>
} {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-redis-group-'))
  const children: ChildProcess[] = []
  return {
    folder,
    start(port, ...options) {
      const cwd = path.join(folder, String(port))
      mkdirSync(cwd, { recursive: true })
      const child = spawn('redis-server', options, { cwd, stdio: 'ignore' })
      children.push(child)
      return child
    },
    async stop() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const PLAIN = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--enable-debug-command', 'yes']

async function startTls(): Promise<Servers> {
  const group = createGroup()
  const [port] = (await freePorts(1)) as [number]
  const ca = openLocalCa(group.folder, systemClock)
  const { cert, key } = ca.issue(['localhost', '127.0.0.1'])
  const file = (name: string): string => path.join(group.folder, name)
  writeFileSync(file('cert.pem'), cert)
  writeFileSync(file('key.pem'), key)
  const caFile = path.join(group.folder, 'ca', 'ca.pem')
  group.start(port, ...PLAIN, '--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no',
    '--tls-cert-file', file('cert.pem'), '--tls-key-file', file('key.pem'), '--tls-ca-cert-file', caFile) // prettier-ignore
  return {
    url: `rediss://localhost:${port}`,
    env: { NODE_EXTRA_CA_CERTS: caFile },
    connect: () => new Redis({ port, host: '127.0.0.1', tls: { rejectUnauthorized: false } }),
    stop: group.stop,
  }
}

async function startSentinel(): Promise<Replicated> {
  const group = createGroup()
  const [first, second, ...sentinels] = (await freePorts(5)) as [number, number, ...number[]]
  const master = group.start(first, ...PLAIN, '--port', String(first))
  group.start(second, ...PLAIN, '--port', String(second), '--replicaof', `127.0.0.1 ${first}`)
  for (const port of sentinels) {
    const settings = [
      `port ${port}`,
      'bind 127.0.0.1',
      `sentinel monitor fleet 127.0.0.1 ${first} 2`,
      `sentinel down-after-milliseconds fleet ${DOWN_AFTER_MS}`,
      'sentinel failover-timeout fleet 5000',
    ]
    const file = path.join(group.folder, `sentinel-${port}.conf`)
    writeFileSync(file, `${settings.join('\n')}\n`)
    group.start(port, file, '--sentinel')
  }
  const addresses = sentinels.map((port) => `127.0.0.1:${port}`).join(',')
  const url = `redis+sentinel://${addresses}/fleet`
  let serving = first
  await until(async () => (await infoOf(first, 'replication')).includes('state=online'))
  for (const port of sentinels) {
    const isReady = /slaves=1,sentinels=3/
    await until(async () => isReady.test(await infoOf(port, 'sentinel')))
  }
  return {
    url,
    connect: () => new Redis(serving, '127.0.0.1'),
    async killMaster() {
      master.kill('SIGKILL')
      await until(async () => (await infoOf(second, 'replication')).includes('role:master'))
      serving = second
    },
    stop: group.stop,
  }
}

async function startCluster(): Promise<Replicated> {
  const group = createGroup()
  const free = await freePorts(12)
  const [ports, busPorts] = [free.slice(0, 6), free.slice(6)]
  const children = new Map<number, ChildProcess>()
  for (const [index, port] of ports.entries()) {
    const own = ['--port', String(port), '--cluster-port', String(busPorts[index])]
    const clustered = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(DOWN_AFTER_MS)]
    children.set(port, group.start(port, ...PLAIN, ...own, ...clustered))
  }
  for (const port of ports) await until(async () => (await infoOf(port, 'server')) !== '')
  const addresses = ports.map((port) => `127.0.0.1:${port}`)
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes']) // prettier-ignore
  for (const port of ports) await until(async () => (await clusterInfo(port)).includes('cluster_state:ok'))
  // A replica that never had its master's data is not promoted.
  for (const port of ports) await until(async () => !(await infoOf(port, 'replication')).includes('link_status:down'))
  let serving = await ownerOf(ports, keys.routes)
  return {
    url: `redis+cluster://${addresses.join(',')}`,
    connect: () => new Redis(serving, '127.0.0.1'),
    async killMaster() {
      const dead = serving
      children.get(dead)!.kill('SIGKILL')
      const left = ports.filter((port) => port !== dead)
      await until(async () => (await ownerOf(left, keys.routes).catch(() => dead)) !== dead)
      serving = await ownerOf(left, keys.routes)
    },
    stop: group.stop,
  }
}

/** The port of the server that says it has the slot of this key. */
async function ownerOf(ports: readonly number[], key: string): Promise<number> {
  for (const port of ports) {
    const isOwner = await ask(
      port,
      async (redis) => (await redis.role())[0] === 'master' && (await redis.exists(key)) >= 0,
    )
    if (isOwner) return port
  }
  throw new Error('no one has the slot')
}

const infoOf = (port: number, section: string): Promise<string> => ask(port, (redis) => redis.info(section), '')
const clusterInfo = (port: number): Promise<string> =>
  ask(port, (redis) => redis.cluster('INFO') as Promise<string>, '')

async function ask<Value>(port: number, question: (redis: Redis) => Promise<Value>, otherwise?: Value): Promise<Value> {
  const redis = new Redis(port, '127.0.0.1', {
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    commandTimeout: 1000,
  })
  redis.on('error', () => {})
  try {
    return await question(redis)
  } catch {
    return otherwise as Value
  } finally {
    redis.disconnect()
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt++) {
    if (await isSo()) return
    await sleep(100)
  }
  throw new Error('it did not become so within 30 s')
}

interface Running<Kind extends Servers> {
  readonly servers: Kind
  readonly fleet: Fleet
  readonly account: Account
  stop(): Promise<void>
}

async function startWith<Kind extends Servers>(servers: Kind): Promise<Running<Kind>> {
  const fleet = await startFleet({ edges: 1, controls: 1, env: { REDIS_URL: servers.url, ...servers.env } })
  return {
    servers,
    fleet,
    account: await fleet.createAccount('business'),
    async stop() {
      await fleet.stop()
      await servers.stop()
    },
  }
}

async function publishesThrough({ servers, fleet, account }: Running<Servers>): Promise<void> {
  const site = await fleet.publish(account, { 'index.html': '<p>first</p>' })
  expect((await fleet.visit(site.slug)).text()).toContain('first')
  await fleet.publish(account, { 'index.html': '<p>second</p>' }, site)
  expect((await fleet.visit(site.slug)).text()).toContain('second')
  const redis = servers.connect()
  expect(await redis.hexists(keys.routes, `${site.slug}.localhost`)).toBe(1)
  redis.disconnect()
}

describe('TLS with an authority of our own', () => {
  let running: Running<Servers>

  beforeAll(async () => {
    running = await startWith(await startTls())
  })

  afterAll(async () => {
    await running?.stop()
  })

  test('what is published is visible at once, and goes through that Redis', () => publishesThrough(running))

  test('a history that lacks the last writes is filled again, also for an edge that starts then', async () => {
    const { servers, fleet, account } = running
    const site = await fleet.publish(account, { 'index.html': '<p>old</p>' })
    const redis = servers.connect()
    const host = `${site.slug}.localhost`
    const old = (await redis.hget(keys.routes, host))!
    await fleet.publish(account, { 'index.html': '<p>confirmed</p>' }, site)
    // As after a failover: the last write is gone, and the server says that its history is another.
    await redis.hset(keys.routes, host, old)
    await redis.del(keys.log)
    await redis.call('DEBUG', 'CHANGE-REPL-ID')
    await expect.poll(() => redis.hget(keys.routes, host), { timeout: 10_000 }).not.toBe(old)
    redis.disconnect()
    const edge = await fleet.addEdge()
    fleet.balancer.setTargets([edge.port])
    expect((await fleet.visit(site.slug)).text()).toContain('confirmed')
  })
})

const replicated = [
  { name: 'Sentinel', begin: startSentinel },
  { name: 'a cluster', begin: startCluster },
] as const

describe.each(replicated)('$name', ({ begin }) => {
  let running: Running<Replicated>

  beforeAll(async () => {
    running = await startWith(await begin())
  })

  afterAll(async () => {
    await running?.stop()
  })

  test('what is published is visible at once, and goes through that Redis', () => publishesThrough(running))

  test('the master is killed: visitors notice nothing, publishing goes on, nothing is lost', async () => {
    const { servers, fleet, account } = running
    const drops = await seedDrops(fleet, account, 5)
    const traffic = startTraffic({ ...watchDrops(fleet, drops), perSecond: 50 })
    const publishing = publishUntil(fleet, account)
    const site = await fleet.publish(account, { 'index.html': '<p>before</p>' })
    const killedAt = performance.now()
    await servers.killMaster()
    const promotedMs = performance.now() - killedAt
    await expect.poll(() => publishesAtOnce(fleet, account, site), { timeout: 30_000 }).toBe(true)
    const healedMs = performance.now() - killedAt
    const published = await publishing.stop()
    const report = await traffic.stop()
    figures(
      `master killed: another after ${Math.round(promotedMs)} ms, publishing at once again after ${Math.round(healedMs)} ms`,
      report,
      published,
    )
    expect(report.failures.slice(0, 5)).toEqual([])
    expect(published).toMatchObject({ failures: [], stale: 0, lost: [] })
    // What the new master had not heard of yet must be there too: an edge that starts now knows nothing else.
    const edge = await fleet.addEdge()
    fleet.balancer.setTargets([edge.port])
    for (const { slug } of drops) expect((await fleet.visit(slug)).text()).toContain(`ok ${slug}`)
    expect((await fleet.visit(site.slug)).text()).toContain('ok again')
  })
})

/** Whether a publish is answered 201 and every edge serves it by then. */
async function publishesAtOnce(fleet: Fleet, { token }: Account, { id }: Published): Promise<boolean> {
  const body = new FormData()
  body.append('file', new File(['<p>ok again</p>'], 'index.html'))
  const answer = await fleet.fetch(`/api/v1/sites/${id}/upload`, { token, body })
  return answer.status === 201 && answer.header('dropway-propagation') === undefined
}
