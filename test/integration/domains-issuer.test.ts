/** The issuer against a real ACME server and a real Redis; several issuers stand for several edges. */
import { createPublicKey, X509Certificate } from 'node:crypto'
import http from 'node:http'
import path from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createAcmeSource } from '../../certs/orders/issue.ts'
import { openLocalCa, type LocalCa } from '../../certs/local/local-ca.ts'
import { createOrderBudget, ORDER_LIMITS, ORDER_WINDOW_MS, type OrderBudget } from '../../certs/orders/order-budget.ts'
import { createIssuer, type Issuer } from '../../certs/renew.ts'
import { IssueError, type CertificateSource } from '../../certs/source.ts'
import { certificateFacts, openBundle, sealBundle, type CertificateBundle } from '../../shared/certificates/bundle.ts'
import { decodeRetryState, type RetryState } from '../../shared/certificates/retry.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, systemClock, type Clock } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { encodeDomainWish, encodeStreamMessage } from '../../shared/redis/stream.ts'
import { startEdgeStandIn, type EdgeStandIn } from '../support/edge-stand-in.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { freePorts } from '../support/stack.ts'

const secrets = createSecrets('a test key of at least thirty-two characters')
let server: TestRedis
let redis: Redis
let pebble: Pebble
let challengePort: number
const connections: Redis[] = []

beforeAll(async () => {
  ;[challengePort] = (await freePorts(1)) as [number]
  ;[server, pebble] = await Promise.all([startTestRedis(), startPebble({ challengePort, nonceReject: 50 })])
  redis = connect()
})
afterAll(async () => {
  for (const connection of connections) connection.disconnect()
  await Promise.all([server.stop(), pebble.stop()])
})
beforeEach(() => redis.flushall())

const running: { stop(): Promise<void> }[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((thing) => thing.stop()))
  await pebble.up()
})

function connect(): Redis {
  const connection = new Redis(server.url)
  connections.push(connection)
  return connection
}

async function startEdge(
  id: string,
  options: {
    port?: number
    clock?: Clock
    source?: CertificateSource
    tickMs?: number
    lockTtlMs?: number
    budget?: OrderBudget
  } = {},
): Promise<{ edge: EdgeStandIn; issuer: Issuer }> {
  const own = connect()
  const clock = options.clock ?? systemClock
  const acme = { directoryUrl: pebble.directoryUrl, email: 'ops@dropway.example', caFile: pebble.caFile }
  const issuer = createIssuer({
    redis: own,
    secrets,
    clock,
    log: silentLog,
    source: options.source ?? createAcmeSource({ redis: own, secrets, clock, acme }),
    tickMs: options.tickMs ?? 100,
    budget: options.budget,
    ...(options.lockTtlMs === undefined ? {} : { lockTtlMs: options.lockTtlMs }),
  })
  const edge = await startEdgeStandIn({
    redisUrl: server.url,
    id,
    ...(options.port === undefined ? {} : { challengePort: options.port }),
    onMessage(message) {
      if (message.kind === 'domain') issuer.onDomain(message.name, message.value.includes('true'))
      if (message.kind === 'certificate') issuer.onCertificate(message.name)
    },
  })
  issuer.start()
  running.push({
    async stop() {
      await issuer.stop()
      await edge.stop()
    },
  })
  return { edge, issuer }
}

/** What control publishes for a domain. */
async function want(name: string, wanted = true, organisation?: string): Promise<void> {
  const value = encodeDomainWish({ wanted, organisation })
  await redis
    .multi()
    .hset(keys.domains, name, value)
    .xadd(keys.log, '*', ...encodeStreamMessage({ kind: 'domain', name, value }))
    .exec()
}

async function storedBundle(name: string): Promise<CertificateBundle | undefined> {
  const sealed = await redis.hget(keys.certificates, name)
  return sealed === null ? undefined : openBundle(secrets, name, sealed)
}

async function retryOf(name: string): Promise<RetryState | undefined> {
  return decodeRetryState(await redis.hget(keys.acmeRetry, name))
}

const soon = { interval: 20 }

describe('with a real ACME server', () => {
  test('five edges that race make one account and one order, and all hear of the certificate', async () => {
    const [accounts, orders] = [await pebble.accounts(), await pebble.orders()]
    await pebble.dns.a('race.test', '127.0.0.1')
    const edges = await Promise.all(
      Array.from({ length: 5 }, (_, index) => startEdge(`race-${index}`, index === 0 ? { port: challengePort } : {})),
    )
    await want('race.test')
    await expect.poll(() => storedBundle('race.test'), soon).toBeDefined()
    const bundle = (await storedBundle('race.test'))!
    for (const { edge } of edges) {
      await expect
        .poll(() => edge.seen.some(({ kind, name }) => kind === 'certificate' && name === 'race.test'))
        .toBe(true)
    }
    await Promise.all(edges.map(({ issuer }) => issuer.tick()))
    expect(certificateFacts(bundle.cert).names).toEqual(['race.test'])
    expect((await pebble.orders()) - orders).toBe(1)
    expect((await pebble.accounts()) - accounts).toBe(1)
    const intermediate = new X509Certificate(bundle.cert.slice(bundle.cert.indexOf('-----BEGIN', 10)))
    expect(new X509Certificate(bundle.cert).verify(intermediate.publicKey)).toBe(true)
    expect(intermediate.verify(createPublicKey(await pebble.rootPem()))).toBe(true)
  })

  test('the key never rests in clear, and a bundle opens for its own name only', async () => {
    await pebble.dns.a('sealed.test', '127.0.0.1')
    const { edge } = await startEdge('sealed', { port: challengePort })
    await want('sealed.test')
    await expect.poll(() => storedBundle('sealed.test'), soon).toBeDefined()
    const everything = await dumpRedis()
    expect(everything).not.toMatch(/PRIVATE KEY/)
    const sealed = (await redis.hget(keys.certificates, 'sealed.test'))!
    expect(() => openBundle(secrets, 'other.test', sealed)).toThrow()
    await expect.poll(() => edge.seen.findLast(({ kind }) => kind === 'challenge')?.value, soon).toBe('')
  })

  test('a failure says whose fault it is and is tried again when the domain is announced anew', async () => {
    await pebble.dns.clear('later.test')
    await startEdge('later', { port: challengePort })
    await want('later.test')
    await expect.poll(() => retryOf('later.test'), soon).toMatchObject({ attempts: 1, reason: 'challenge_unreachable' })
    await pebble.dns.a('later.test', '127.0.0.1')
    await want('later.test')
    await expect.poll(() => storedBundle('later.test'), soon).toBeDefined()
    expect(await retryOf('later.test')).toBeUndefined()
  })

  test('a name that is removed and wanted again has failed as often as before', async () => {
    await pebble.dns.clear('again.test')
    await startEdge('again', { port: challengePort })
    await want('again.test')
    await expect.poll(() => retryOf('again.test'), soon).toMatchObject({ attempts: 1 })
    await want('again.test', false)
    await expect.poll(() => redis.hexists(keys.domains, 'again.test'), soon).toBe(0)
    expect(await retryOf('again.test')).toMatchObject({ attempts: 1 })
    await want('again.test')
    await expect.poll(() => retryOf('again.test'), soon).toMatchObject({ attempts: 2 })
    expect((await retryOf('again.test'))!.failures_ms).toHaveLength(2)
  })

  test('a port where someone else answers is told from one where no one does', async () => {
    await pebble.dns.a('stranger.test', '127.0.0.1')
    const stranger = http.createServer((_, response) => response.end('hello')).listen(challengePort, '127.0.0.1')
    running.push({ stop: async () => void stranger.close() })
    await startEdge('reasons')
    await want('stranger.test')
    await expect.poll(() => retryOf('stranger.test'), soon).toMatchObject({ reason: 'challenge_wrong' })
    expect((await retryOf('stranger.test'))!.last_error).not.toBe('')
  })

  test('an unwanted domain loses its certificate everywhere, and the CA hears of it', async () => {
    await pebble.dns.a('goodbye.test', '127.0.0.1')
    const { edge } = await startEdge('goodbye', { port: challengePort })
    await want('goodbye.test')
    await expect.poll(() => storedBundle('goodbye.test'), soon).toBeDefined()
    await want('goodbye.test', false)
    await expect.poll(() => storedBundle('goodbye.test'), soon).toBeUndefined()
    await expect
      .poll(
        () =>
          edge.seen.some(({ kind, name, value }) => kind === 'certificate' && name === 'goodbye.test' && value === ''),
        soon,
      )
      .toBe(true)
    expect(await redis.hget(keys.domains, 'goodbye.test')).toBeNull()
  })

  test('a renewal is due by the clock; while the CA is away the old certificate stays, soon after it is renewed', async () => {
    await pebble.dns.a('renew.test', '127.0.0.1')
    let nowMs = Date.now()
    const { issuer } = await startEdge('renew', { port: challengePort, clock: { now: () => nowMs }, tickMs: 60_000 })
    await want('renew.test')
    await expect.poll(() => storedBundle('renew.test'), soon).toBeDefined()
    const first = (await storedBundle('renew.test'))!
    const { notBeforeMs, notAfterMs } = certificateFacts(first.cert)

    nowMs = notBeforeMs + (notAfterMs - notBeforeMs) / 2
    await issuer.tick()
    expect((await storedBundle('renew.test'))!.cert).toBe(first.cert)

    nowMs = notAfterMs - (notAfterMs - notBeforeMs) * 0.25
    await pebble.down()
    await issuer.tick()
    await expect.poll(() => retryOf('renew.test'), soon).toMatchObject({ reason: 'ca_unavailable' })
    expect((await storedBundle('renew.test'))!.cert).toBe(first.cert)

    await pebble.up()
    const returnedMs = nowMs
    await expect
      .poll(async () => {
        nowMs += 30_000
        await settle(issuer)
        return (await storedBundle('renew.test'))!.cert
      }, soon)
      .not.toBe(first.cert)
    expect(nowMs - returnedMs).toBeLessThan(HOUR_MS)
  })

  test('an organisation that has used its part of the orders waits, and no other with it', async () => {
    let nowMs = Date.now()
    const clock = { now: () => nowMs }
    const budget = createOrderBudget(redis, clock)
    for (let order = 0; order < ORDER_LIMITS.new.ofOrganisation; order++) await budget.take('org_greedy', 'new')
    const { issuer } = await startEdge('fair', { port: challengePort, clock, budget, tickMs: 60_000 })
    for (const name of ['greedy.test', 'modest.test']) await pebble.dns.a(name, '127.0.0.1')
    await want('greedy.test', true, 'org_greedy')
    await want('modest.test', true, 'org_modest')
    await expect.poll(() => storedBundle('modest.test'), soon).toBeDefined()
    await idle()
    expect(await storedBundle('greedy.test')).toBeUndefined()
    // No one was asked: it is no failure of the name.
    expect(await retryOf('greedy.test')).toBeUndefined()
    nowMs += ORDER_WINDOW_MS
    await settle(issuer)
    expect(await storedBundle('greedy.test')).toBeDefined()
  })
})

/** Longer than any test takes. */
const LOCK_MS = 10 * MINUTE_MS

describe('with a CA of the test', () => {
  const bundleFor = async (): Promise<CertificateBundle> => ({ cert: 'certificate', key: 'key' })
  const noCa = { revoke: async () => {}, renewalAdvice: async () => undefined }

  test('a holder that died is followed by another edge, and cannot store anything afterwards', async () => {
    const { promise: hang, resolve: wake } = Promise.withResolvers<CertificateBundle>()
    let calls = 0
    const dead: CertificateSource = { ...noCa, obtain: () => ((calls += 1), hang) }
    const { cert, key } = testCa().issue(['held.test'])
    const alive: CertificateSource = { ...noCa, obtain: async () => ((calls += 1), { cert, key }) }

    // The holder renews the lock when the test says so, and never again behind that.
    vi.useFakeTimers({ toFake: ['setInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const first = await startEdge('dying', { source: dead, lockTtlMs: LOCK_MS })
    await want('held.test')
    await expect.poll(() => calls, soon).toBe(1)
    const lock = keys.orderLock('held.test')
    await redis.pexpire(lock, LOCK_MS / 2)
    vi.advanceTimersByTime(LOCK_MS / 2)
    await expect.poll(() => redis.pttl(lock), soon).toBeGreaterThan(LOCK_MS / 2)
    vi.useRealTimers()
    const { issuer: heir } = await startEdge('heir', { source: alive })
    await heir.tick()
    await heard()
    expect(calls).toBe(1)

    // What remains of a process that was killed: a lock that no one renews.
    await redis.pexpire(lock, 1)
    await expect.poll(() => storedBundle('held.test'), soon).toEqual({ cert, key })
    expect(calls).toBe(2)
    wake(await bundleFor())
    await first.issuer.stop()
    expect(await storedBundle('held.test')).toEqual({ cert, key })
  })

  test('failures follow the schedule, at most five in an hour however often someone asks', async () => {
    let nowMs = Date.now()
    const attempts: number[] = []
    const refusing: CertificateSource = {
      ...noCa,
      obtain: async () => {
        attempts.push(nowMs)
        throw new IssueError('ca_refused', 'no')
      },
    }
    const { edge, issuer } = await startEdge('schedule', {
      source: refusing,
      clock: { now: () => nowMs },
      tickMs: 60_000,
    })
    await want('refused.test')
    await expect.poll(() => attempts.length, soon).toBe(1)
    // The clock must not move while the failure is written down.
    await idle()
    for (const [pause, expected] of [
      [1, 2],
      [10, 3],
      [100, 4],
      [23 * 60, 4],
      [60, 5],
    ] as const) {
      nowMs += pause * MINUTE_MS
      await settle(issuer)
      expect(attempts).toHaveLength(expected)
    }
    const from = attempts.length
    for (let minute = 0; minute < 60; minute += 5) {
      nowMs += minute === 0 ? DAY_MS : 5 * MINUTE_MS
      const announced = edge.seen.length
      await want('refused.test')
      await expect.poll(() => edge.seen.length, soon).toBe(announced + 1)
      await settle(issuer)
    }
    expect(attempts.length - from).toBeLessThanOrEqual(5)
    expect(attempts.length - from).toBeGreaterThan(1)
  })

  test('renewals come before new names', async () => {
    const { cert, key } = testCa().issue(['due.test'])
    const dueMs = certificateFacts(cert).notAfterMs - DAY_MS
    const clock = { now: () => dueMs }
    // More new names than orders are made at once, all announced before.
    for (let index = 0; index < 20; index++)
      await redis.hset(keys.domains, `new-${index}.test`, encodeDomainWish({ wanted: true }))
    await redis.hset(keys.domains, 'due.test', encodeDomainWish({ wanted: true }))
    await redis.hset(keys.certificates, 'due.test', sealBundle(secrets, 'due.test', { cert, key }))
    const asked: string[] = []
    const source: CertificateSource = { ...noCa, obtain: async (name) => (asked.push(name), { cert, key }) }
    await startEdge('orderly', { source, clock, tickMs: 60_000 })
    await expect.poll(() => asked.length, soon).toBe(21)
    // They are begun together; whose lock is there first is Redis's word.
    expect(asked.slice(0, 8)).toContain('due.test')
  })

  test('a new edge finds what is wanted in Redis without having heard of it', async () => {
    const { cert, key } = testCa().issue(['kept.test'])
    await redis.hset(
      keys.domains,
      'kept.test',
      JSON.stringify({ wanted: true }),
      'new.test',
      JSON.stringify({ wanted: true }),
    )
    await redis.hset(keys.certificates, 'kept.test', sealBundle(secrets, 'kept.test', { cert, key }))
    const asked: string[] = []
    const source: CertificateSource = { ...noCa, obtain: async (name) => (asked.push(name), { cert, key }) }
    await startEdge('late-comer', { source })
    await expect.poll(() => storedBundle('new.test'), soon).toBeDefined()
    expect(asked).toEqual(['new.test'])
  })
})

/** Pebble's HTTPS has a local CA behind it; its leaves do for a test that needs any certificate. */
function testCa(): LocalCa {
  return openLocalCa(path.dirname(path.dirname(pebble.caFile)), systemClock)
}

/** Lets a tick and the orders that it began come to their end. */
async function settle(issuer: Issuer): Promise<void> {
  await issuer.tick()
  await idle()
}

/** What the issuers have sent is answered: a lock that was asked for is there, or is another's. */
async function heard(): Promise<void> {
  await Promise.all(connections.map((connection) => connection.ping()))
}

async function idle(): Promise<void> {
  await heard()
  await expect.poll(async () => (await redis.keys(keys.orderLock('*'))).length, soon).toBe(0)
}

async function dumpRedis(): Promise<string> {
  const parts: string[] = []
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key)
    const value =
      type === 'hash'
        ? await redis.hgetall(key)
        : type === 'stream'
          ? await redis.xrange(key, '-', '+')
          : type === 'set'
            ? await redis.smembers(key)
            : await redis.get(key)
    parts.push(`${key} ${JSON.stringify(value)}`)
  }
  return parts.join('\n')
}
