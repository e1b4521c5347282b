import { describe, expect, test } from 'vitest'
import type { Visit } from '../../../edge/context.ts'
import { createAttempts } from '../../../edge/gate/attempts.ts'
import { checkState } from '../../../edge/gate/state.ts'
import { createUnlock, safeNext } from '../../../edge/gate/unlock.ts'
import type { Unlock, UnlockAttempt, UnlockOutcome } from '../../../edge/gate/unlock.ts'
import type { SiteRoute } from '../../../shared/route-record.ts'
import { siteStates } from '../../../shared/route-record.ts'
import { createSecrets } from '../../../shared/secrets.ts'
import { routeOf } from '../../support/manifests.ts'

const NOW = Date.UTC(2030, 0, 1)

describe('the state of a drop', () => {
  test.each<[Partial<SiteRoute>, string]>([
    [{ state: 'live' }, 'open'],
    [{ state: 'live', expires_at: NOW + 1 }, 'open'],
    [{ state: 'live', expires_at: NOW }, '410 expired'],
    [{ state: 'live', expires_at: NOW - 1 }, '410 expired'],
    [{ state: 'live', manifest: null }, '404 reserved'],
    [{ state: 'reserved', manifest: null }, '404 reserved'],
    [{ state: 'gone', manifest: null }, '410 gone'],
    [{ state: 'removed' }, '410 removed'],
    [{ state: 'expired' }, '410 expired'],
    [{ state: 'unverified' }, '503 unverified'],
    [{ state: 'paused' }, '503 paused'],
  ])('%j is %s', (changes, expected) => {
    const verdict = checkState(routeOf(changes), NOW)
    expect(verdict.kind === 'closed' ? `${verdict.status} ${verdict.page}` : verdict.kind).toBe(expected)
  })

  test('only a live drop is open', () => {
    expect(siteStates.filter((state) => checkState(routeOf({ state }), NOW).kind === 'open')).toEqual(['live'])
  })
})

/** `password` with a cheap cost, so that the tests do not wait. */
const HASH = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
const OTHER_HASH = '$argon2id$v=19$m=256,t=2,p=1$b3RoZXJzYWx0$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'

interface Desk {
  readonly unlock: Unlock
  /** What the other workers hear. */
  readonly told: UnlockAttempt[]
  readonly time: { now: number }
  try(route: SiteRoute, fields: Record<string, string>, ip?: string): Promise<UnlockOutcome>
}

function desk(): Desk {
  const time = { now: NOW }
  const told: UnlockAttempt[] = []
  const unlock = createUnlock({
    secrets: createSecrets('k'.repeat(32)),
    clock: { now: () => time.now },
    tell: (attempt) => told.push(attempt),
  })
  return {
    unlock,
    told,
    time,
    try(route, fields, ip = '192.0.2.1') {
      const visit: Visit = { method: 'POST', target: '/.dropway/unlock', host: route.host, ip, header: () => undefined }
      return unlock.attempt(route, visit, Buffer.from(new URLSearchParams(fields).toString()))
    },
  }
}

const locked = (changes: Partial<SiteRoute> = {}): SiteRoute =>
  routeOf({ password: { hash: HASH, generation: 1 }, ...changes })

async function cookieFor(at: Desk, route: SiteRoute): Promise<string> {
  const outcome = await at.try(route, { password: 'password' })
  if (outcome.kind !== 'unlocked') throw new Error(`not unlocked: ${outcome.kind}`)
  return outcome.setCookie.split(';')[0]!
}

describe('the password of a drop', () => {
  test('the right one gives a cookie that opens it, and sends the visitor on', async () => {
    const at = desk()
    const outcome = await at.try(locked(), { password: 'password', next: '/blog/?x=1' })
    expect(outcome).toMatchObject({ kind: 'unlocked', location: '/blog/?x=1' })
    const cookie = (outcome as { setCookie: string }).setCookie
    expect(cookie).toMatch(/^__Host-dropway-unlock=[\w-]{43}; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Lax$/)
    const pair = cookie.split(';')[0]!
    expect(at.unlock.isUnlocked(locked(), pair)).toBe(true)
    expect(at.unlock.isUnlocked(locked(), `a=b; ${pair}; c=d`)).toBe(true)
    expect(at.unlock.isUnlocked(locked(), `__Host-dropway-unlock=wrong; ${pair}`)).toBe(true)
  })

  test('a wrong, empty, missing or endless one gives nothing', async () => {
    const at = desk()
    for (const password of ['Password', '', undefined, 'p'.repeat(5000)]) {
      expect(await at.try(locked(), password === undefined ? {} : { password })).toEqual({ kind: 'wrong' })
    }
  })

  test('a cookie is worth nothing at another drop, for another password or for another generation', async () => {
    const at = desk()
    const cookie = await cookieFor(at, locked())
    expect(at.unlock.isUnlocked(locked({ site_id: 'st_other' }), cookie)).toBe(false)
    expect(at.unlock.isUnlocked(locked({ password: { hash: HASH, generation: 2 } }), cookie)).toBe(false)
    expect(at.unlock.isUnlocked(locked({ password: { hash: OTHER_HASH, generation: 1 } }), cookie)).toBe(false)
    const elsewhere = createUnlock({
      secrets: createSecrets('x'.repeat(32)),
      clock: { now: () => NOW },
      tell: () => {},
    })
    expect(elsewhere.isUnlocked(locked(), cookie)).toBe(false)
  })

  test.each([
    undefined,
    '',
    '__Host-dropway-unlock',
    '__Host-dropway-unlock=',
    '=;=;',
    'x__Host-dropway-unlock=a',
    '%00',
  ])('cookie header %j opens nothing that is locked, and everything that is not', (header) => {
    const { unlock } = desk()
    expect(unlock.isUnlocked(locked(), header)).toBe(false)
    expect(unlock.isUnlocked(routeOf(), header)).toBe(true)
  })

  test('a drop that no longer has a password just sends the visitor on', async () => {
    expect(await desk().try(routeOf(), { next: '/x' })).toMatchObject({ kind: 'unlocked', location: '/x' })
  })
})

describe('guessing', () => {
  const limited = { kind: 'limited', retryAfterSeconds: expect.any(Number) }

  test('is stopped after ten wrong attempts of a visitor, even with the right password, and goes on later', async () => {
    const at = desk()
    for (let attempt = 0; attempt < 10; attempt++)
      expect(await at.try(locked(), { password: 'no' })).toEqual({ kind: 'wrong' })
    expect(await at.try(locked(), { password: 'no' })).toEqual({ kind: 'limited', retryAfterSeconds: 600 })
    expect(await at.try(locked(), { password: 'password' })).toEqual(limited)
    expect(await at.try(locked(), { password: 'password' }, '192.0.2.2')).toMatchObject({ kind: 'unlocked' })
    at.time.now += 600_000
    expect(await at.try(locked(), { password: 'password' })).toMatchObject({ kind: 'unlocked' })
  })

  test('all at once counts as much as one after the other', async () => {
    const at = desk()
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => at.try(locked(), { password: 'no' })))
    expect(outcomes.filter((outcome) => outcome.kind === 'wrong')).toHaveLength(10)
  })

  test('right passwords do not count', async () => {
    const at = desk()
    for (let visit = 0; visit < 25; visit++)
      expect(await at.try(locked(), { password: 'password' })).toMatchObject({ kind: 'unlocked' })
  })

  test('at several workers counts as if they were one', async () => {
    const [here, there] = [desk(), desk()]
    for (let count = 0; count < 10; count++) await here.try(locked(), { password: 'no' })
    for (const attempt of here.told) there.unlock.hear(attempt)
    expect(await there.try(locked(), { password: 'password' })).toEqual(limited)
    expect(await there.try(locked(), { password: 'password' }, '198.51.100.7')).toMatchObject({ kind: 'unlocked' })
  })

  test('that was right is given back at the other workers too', async () => {
    const [here, there] = [desk(), desk()]
    for (let count = 0; count < 20; count++) await here.try(locked(), { password: 'password' })
    for (const attempt of here.told) there.unlock.hear(attempt)
    for (let count = 0; count < 10; count++)
      expect(await there.try(locked(), { password: 'no' })).toEqual({ kind: 'wrong' })
    expect(await there.try(locked(), { password: 'no' })).toEqual(limited)
  })

  test('from one IPv6 network is one visitor, and a drop has a limit of its own', async () => {
    const at = desk()
    for (let attempt = 0; attempt < 10; attempt++)
      await at.try(locked(), { password: 'no' }, `2001:db8:0:1::${attempt}`)
    expect(await at.try(locked(), { password: 'no' }, '2001:db8:0:1:ffff::1')).toEqual(limited)
    expect(await at.try(locked(), { password: 'no' }, '2001:db8:0:2::1')).toEqual({ kind: 'wrong' })
    for (let attempt = 0; attempt < 200; attempt++) await at.try(locked(), { password: '' }, `198.51.100.${attempt}`)
    expect(await at.try(locked(), { password: 'no' }, '203.0.113.1')).toEqual(limited)
    expect(await at.try(locked({ site_id: 'st_other' }), { password: 'no' }, '203.0.113.1')).toEqual({ kind: 'wrong' })
  })

  test('leaves bounded traces', () => {
    const attempts = createAttempts({ attempts: 1, windowMs: 1000, maxKeys: 3 }, { now: () => NOW })
    for (const key of ['a', 'b', 'c', 'd']) attempts.take(key)
    expect(attempts.take('d')).toBe(1000)
    expect(attempts.take('a')).toBeUndefined()
  })
})

test.each([
  ['/a?b=c', '/a?b=c'],
  ['/', '/'],
  ['//evil.com', '/'],
  ['/\\evil.com', '/'],
  ['/\t/evil.com', '/'],
  ['https://evil.com', '/'],
  ['evil', '/'],
  ['', '/'],
  [null, '/'],
  ['/a\r\nset-cookie: x', '/'],
  ['/a\\b', '/'],
  ['/ü', '/'],
  ['/.dropway/unlock', '/'],
  [`/${'a'.repeat(3000)}`, '/'],
])('after unlocking, next=%j leads to %s', (next, expected) => expect(safeNext(next)).toBe(expected))
