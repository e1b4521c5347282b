/** Renewal information (ARI, RFC 9773) over real HTTPS. */
import type { ServerResponse } from 'node:http'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createAcmeSource } from '../../certs/orders/issue.ts'
import { createIssuer, type Issuer } from '../../certs/renew.ts'
import { hurried } from '../../certs/policy.ts'
import { renewalId } from '../../certs/orders/renewal-info.ts'
import type { CertificateSource } from '../../certs/source.ts'
import { certificateFacts, openBundle, type CertificateBundle } from '../../shared/certificates/bundle.ts'
import { decodeRetryState } from '../../shared/certificates/retry.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { RENEWAL_INFO, sendJson as json, sendWindow, startAcmeFront, type AcmeFront } from '../support/acme-front.ts'
import { startEdgeStandIn, type EdgeStandIn } from '../support/edge-stand-in.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { freePorts } from '../support/stack.ts'

const NAME = 'advised.test'
const secrets = createSecrets('a test key of at least thirty-two characters')
let server: TestRedis
let redis: Redis
let pebble: Pebble
let front: AcmeFront
let source: CertificateSource
let edge: EdgeStandIn
let issuer: Issuer
let nowMs: number
const clock = { now: () => nowMs }

/** What the server in front says when it is asked, and what it was asked. */
let advise: (response: ServerResponse) => void
let refusesReplacing: boolean
let isBusy: boolean
let questions: string[]
let replaced: unknown[]

beforeAll(async () => {
  const [challengePort] = (await freePorts(1)) as [number]
  ;[server, pebble] = await Promise.all([startTestRedis(), startPebble({ challengePort, nonceReject: 0 })])
  redis = new Redis(server.url)
  front = await startAcmeFront(pebble, answer)
  await pebble.dns.a(NAME, '127.0.0.1')
  const acme = { directoryUrl: front.directoryUrl, email: undefined, caFile: pebble.caFile }
  source = createAcmeSource({ redis, secrets, clock, acme })
  edge = await startEdgeStandIn({
    redisUrl: server.url,
    id: 'advised',
    challengePort,
    onMessage(message) {
      if (message.kind === 'domain') issuer.onDomain(message.name, true)
      if (message.kind === 'certificate') issuer.onCertificate(message.name)
    },
  })
})
afterAll(async () => {
  await edge.stop()
  redis.disconnect()
  front.stop()
  await Promise.all([server.stop(), pebble.stop()])
})

beforeEach(async () => {
  nowMs = Date.now()
  questions = []
  replaced = []
  refusesReplacing = false
  isBusy = false
  advise = windowAt(nowMs + 20 * DAY_MS)
  issuer = createIssuer({ redis, secrets, clock, log: silentLog, source, tickMs: HOUR_MS })
  issuer.start()
})
afterEach(async () => {
  await issuer.stop()
  await redis.del(keys.domains, keys.certificates, keys.acmeRetry)
})

function answer(target: string, body: Buffer, response: ServerResponse): boolean {
  if (target.startsWith(RENEWAL_INFO)) {
    questions.push(target.slice(RENEWAL_INFO.length))
    advise(response)
    return true
  }
  if (target !== '/order-plz') return false
  const { payload } = JSON.parse(body.toString()) as { payload: string }
  const wish = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { replaces?: string }
  replaced.push(wish.replaces)
  if (isBusy) response.writeHead(429, { 'retry-after': '3600' }).end('{}')
  else if (refusesReplacing && wish.replaces !== undefined) {
    const problem = { type: 'urn:ietf:params:acme:error:alreadyReplaced', detail: 'no', status: 409 }
    response.writeHead(409, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem))
  } else return false
  return true
}

/** A window of one minute. */
function windowAt(startMs: number, retryAfter?: string): (response: ServerResponse) => void {
  return (response) => sendWindow(response, startMs, retryAfter)
}

async function held(): Promise<CertificateBundle | undefined> {
  const sealed = await redis.hget(keys.certificates, NAME)
  return sealed === null ? undefined : openBundle(secrets, NAME, sealed)
}

async function want(): Promise<void> {
  const value = JSON.stringify({ wanted: true })
  await redis.hset(keys.domains, NAME, value)
  await redis.xadd(keys.log, '*', ...encodeStreamMessage({ kind: 'domain', name: NAME, value }))
}

async function issued(): Promise<CertificateBundle> {
  await want()
  await expect.poll(held).toBeDefined()
  await idle()
  return (await held())!
}

/** One look at everything, and what it began. */
async function look(): Promise<void> {
  await issuer.tick()
  await idle()
}

async function idle(): Promise<void> {
  await expect.poll(() => redis.exists(keys.orderLock(NAME)), { interval: 10 }).toBe(0)
}

test('asks when the CA wants to be asked, renews when its window moves to the past, and says what it replaces', async () => {
  advise = windowAt(nowMs + 20 * DAY_MS, '3600')
  const first = await issued()
  await look()
  expect(questions).toEqual([renewalId(first.cert)])
  nowMs += 59 * MINUTE_MS
  await look()
  expect(questions).toHaveLength(1)

  // The CA has to revoke: renewed months before its time.
  advise = windowAt(nowMs - DAY_MS)
  nowMs += 2 * MINUTE_MS
  await look()
  expect(questions).toHaveLength(2)
  await look()
  await expect.poll(async () => (await held())!.cert).not.toBe(first.cert)
  expect(replaced).toEqual([undefined, renewalId(first.cert)])
})

test('renews in the window, not when a third of the lifetime is left', async () => {
  const first = await issued()
  const { notBeforeMs, notAfterMs } = certificateFacts(first.cert)
  const late = notAfterMs - (notAfterMs - notBeforeMs) / 5
  advise = windowAt(late)
  await look()
  nowMs = late - HOUR_MS
  await look()
  expect((await held())!.cert).toBe(first.cert)
  nowMs = late + 2 * MINUTE_MS
  await look()
  await expect.poll(async () => (await held())!.cert).not.toBe(first.cert)
})

test('a CA that refuses to hear what is replaced still issues', async () => {
  advise = windowAt(nowMs - DAY_MS)
  refusesReplacing = true
  const first = await issued()
  await look()
  await look()
  await expect.poll(async () => (await held())!.cert).not.toBe(first.cert)
  expect(replaced).toEqual([undefined, renewalId(first.cert), undefined])
})

test('a failed question leaves what was said before, and is asked again after six hours', async () => {
  const first = await issued()
  advise = windowAt(nowMs + 8 * HOUR_MS)
  await look()
  advise = (response) => response.writeHead(500).end()
  nowMs += 6 * HOUR_MS
  await look()
  await look()
  expect(questions).toHaveLength(2)
  expect((await held())!.cert).toBe(first.cert)
  nowMs += 2 * HOUR_MS + 2 * MINUTE_MS
  await look()
  await expect.poll(async () => (await held())!.cert).not.toBe(first.cert)
})

const nonsense: readonly [string, (response: ServerResponse) => void][] = [
  ['an error', (response) => response.writeHead(503, { 'retry-after': '60' }).end()],
  ['a certificate that it does not know', (response) => response.writeHead(404).end()],
  ['a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>')],
  ['half an answer', (response) => response.writeHead(200).end('{"suggestedWindow":')],
  ['no window', (response) => json(response, {})],
  ['dates that are none', (response) => json(response, { suggestedWindow: { start: 'soon', end: 'later' } })],
  [
    'a window that ends before it begins',
    (response) => json(response, { suggestedWindow: { start: '2026-02-01T00:00:00Z', end: '2026-01-01T00:00:00Z' } }),
  ],
  ['a connection that breaks', (response) => response.destroy()],
]
test('nonsense is no advice', async () => {
  const bundle = await issued()
  for (const [what, reply] of nonsense) {
    advise = reply
    await expect(source.renewalAdvice(bundle), what).rejects.toThrow()
  }
})

test('Retry-After in seconds, as a date, and as anything else', async () => {
  const bundle = await issued()
  const retryAfter = async (header?: string): Promise<number | undefined> => {
    advise = windowAt(nowMs, header)
    return (await source.renewalAdvice(bundle))!.retryAfterMs
  }
  expect(await retryAfter('120')).toBe(120 * SECOND_MS)
  nowMs = Math.floor(nowMs / SECOND_MS) * SECOND_MS
  expect(await retryAfter(new Date(nowMs + HOUR_MS).toUTCString())).toBe(HOUR_MS)
  expect(await retryAfter('now and then')).toBeUndefined()
  expect(await retryAfter()).toBeUndefined()
})

test('a CA that wants to be left alone for an hour is: the lock is free, the account stays, no one hurries it', async () => {
  isBusy = true
  const account = await redis.get(keys.acmeAccount)
  await want()
  await expect.poll(() => redis.hexists(keys.acmeRetry, NAME)).toBe(1)
  await idle()
  expect(replaced).toHaveLength(1)
  const state = decodeRetryState(await redis.hget(keys.acmeRetry, NAME))
  expect(state).toMatchObject({ reason: 'ca_unavailable', next_attempt_ms: nowMs + HOUR_MS })
  expect(hurried(state!, nowMs + MINUTE_MS).next_attempt_ms).toBe(nowMs + HOUR_MS)
  expect(await redis.get(keys.acmeAccount)).toBe(account)
})
