import { describe, expect, test } from 'vitest'
import type { Arrival } from '../../../edge/context.ts'
import { createAttempts } from '../../../edge/gate/attempts.ts'
import { checkState } from '../../../edge/gate/state.ts'
import { createUnlock, nextAfterUnlocking } from '../../../edge/gate/unlock.ts'
import type { Unlock, UnlockAttempt, UnlockOutcome } from '../../../edge/gate/unlock.ts'
import { createProofOfWork, type Challenge } from '../../../shared/secrets/proof-of-work.ts'
import type { SiteRoute } from '../../../shared/contracts/route-record.ts'
import { siteStates } from '../../../shared/contracts/route-record.ts'
import { hashPassword } from '../../../shared/secrets/password.ts'
import { createSecrets, type Purpose } from '../../../shared/secrets/secrets.ts'
import { routeOf } from '../../support/manifests.ts'
import { solve } from '../../support/proof-of-work.ts'

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

/** Bits less than visitors are asked for: the tests solve many. */
const EASIER = 12

interface Desk {
  readonly unlock: Unlock
  /** What the other workers hear. */
  readonly told: UnlockAttempt[]
  readonly time: { now: number }
  arrival(ip?: string): Arrival
  try(route: SiteRoute, fields: Record<string, string>, ip?: string): Promise<UnlockOutcome>
}

function desk(key = 'k'.repeat(32)): Desk {
  const time = { now: NOW }
  const told: UnlockAttempt[] = []
  const secrets = createSecrets(key)
  const proofOfWork = createProofOfWork(secrets)
  const unlock = createUnlock({
    secrets,
    proofOfWork: {
      ...proofOfWork,
      ask: (purpose, bits, now) => proofOfWork.ask(purpose, bits - EASIER, now),
    },
    clock: { now: () => time.now },
    tell: (attempt) => told.push(attempt),
  })
  const arrival = (ip = '192.0.2.1'): Arrival => ({
    method: 'POST',
    target: '/.dropway/unlock',
    host: 'demo.dropway.test',
    ip,
    header: () => undefined,
  })
  return {
    unlock,
    told,
    time,
    arrival,
    try: (route, fields, ip) => unlock.attempt(route, arrival(ip), new URLSearchParams(fields)),
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
    expect(at.unlock.isUnlocked(locked(), ` ${pair.replace('=', ' = ')} `)).toBe(true)
    expect(at.unlock.isUnlocked(locked(), `a=${pair}`)).toBe(false)
    expect(at.unlock.isUnlocked(locked(), `other=${pair.split('=')[1]}`)).toBe(false)
  })

  test('a browser keeps it as long as browsers keep a cookie', async () => {
    const outcome = await desk().try(locked(), { password: 'password' })
    expect(outcome).toHaveProperty('setCookie', expect.stringContaining(`; Max-Age=${400 * 86_400};`))
  })

  test('of many values the first four are looked at', async () => {
    const at = desk()
    const pair = await cookieFor(at, locked())
    const wrong = (count: number): string => '__Host-dropway-unlock=no; '.repeat(count)
    expect(at.unlock.isUnlocked(locked(), `${wrong(3)}${pair}`)).toBe(true)
    expect(at.unlock.isUnlocked(locked(), `${wrong(4)}${pair}`)).toBe(false)
    expect(at.unlock.isUnlocked(locked(), `${'a=b; '.repeat(10)}${pair}`)).toBe(true)
  })

  test('a token of ours that was made for something else opens nothing', () => {
    const { unlock } = desk()
    const { password, site_id } = locked()
    const signed = (purpose: Purpose): string =>
      createSecrets('k'.repeat(32)).sign(purpose, `${site_id}\n${password!.generation}\n${password!.hash}`)
    expect(unlock.isUnlocked(locked(), `__Host-dropway-unlock=${signed('unlock-cookie')}`)).toBe(true)
    expect(unlock.isUnlocked(locked(), `__Host-dropway-unlock=${signed('anonymous-cookie')}`)).toBe(false)
  })

  test('is signed once for each route', () => {
    const secrets = createSecrets('k'.repeat(32))
    let signatures = 0
    const sign: typeof secrets.sign = (...about) => {
      signatures++
      return secrets.sign(...about)
    }
    const unlock = createUnlock({
      secrets: { ...secrets, sign },
      proofOfWork: createProofOfWork(secrets),
      clock: { now: () => NOW },
      tell: () => {},
    })
    const [one, other] = [locked(), locked()]
    for (const route of [one, one, other, one]) unlock.isUnlocked(route, '__Host-dropway-unlock=no')
    expect(signatures).toBe(2)
  })

  test('as short or long as one may be is checked, whatever is longer is not', async () => {
    const short = locked({ password: { hash: await hashPassword('?'), generation: 1 } })
    expect(await desk().try(short, { password: '?' })).toMatchObject({ kind: 'unlocked' })
    const long = 'p'.repeat(256)
    const route = locked({ password: { hash: await hashPassword(long), generation: 1 } })
    const longer = locked({ password: { hash: await hashPassword(`${long}p`), generation: 1 } })
    expect(await desk().try(route, { password: long })).toMatchObject({ kind: 'unlocked' })
    expect(await desk().try(longer, { password: `${long}p` })).toEqual({ kind: 'wrong' })
  })

  test('when too many are being checked, the visitor is asked to come back', async () => {
    const at = desk()
    const outcomes = await Promise.all(
      Array.from({ length: 80 }, (_, index) => at.try(locked(), { password: 'no' }, `198.51.100.${index}`)),
    )
    expect(outcomes.filter(({ kind }) => kind === 'wrong')).toHaveLength(66)
    expect(outcomes.filter(({ kind }) => kind === 'limited')).toEqual(
      Array(14).fill({ kind: 'limited', retryAfterSeconds: 2, work: undefined }),
    )
  })

  test('a wrong, empty, missing or endless one gives nothing', async () => {
    const at = desk()
    for (const password of ['Password', '', undefined, 'p'.repeat(5000)]) {
      expect(await at.try(locked(), password === undefined ? {} : { password })).toEqual({
        kind: 'wrong',
        work: undefined,
      })
    }
  })

  test('an empty one opens nothing, whatever is stored', async () => {
    const route = locked({ password: { hash: await hashPassword(''), generation: 1 } })
    expect(await desk().try(route, { password: '' })).toMatchObject({ kind: 'wrong' })
  })

  test('a cookie is worth nothing at another drop, for another password or for another generation', async () => {
    const at = desk()
    const cookie = await cookieFor(at, locked())
    expect(at.unlock.isUnlocked(locked({ site_id: 'st_other' }), cookie)).toBe(false)
    expect(at.unlock.isUnlocked(locked({ password: { hash: HASH, generation: 2 } }), cookie)).toBe(false)
    expect(at.unlock.isUnlocked(locked({ password: { hash: OTHER_HASH, generation: 1 } }), cookie)).toBe(false)
    expect(desk('x'.repeat(32)).unlock.isUnlocked(locked(), cookie)).toBe(false)
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
    expect(await desk().try(routeOf(), { next: '/x' })).toEqual({
      kind: 'unlocked',
      location: '/x',
      setCookie: '__Host-dropway-unlock=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax',
    })
  })
})

describe('guessing', () => {
  const wrong = { kind: 'wrong' }
  const work = { challenge: expect.any(String), bits: 19 - EASIER }
  const limited = { kind: 'limited', retryAfterSeconds: expect.any(Number), work }

  /** Answers as the page would. */
  function proofFor(outcome: UnlockOutcome | Challenge | undefined): string {
    const asked = outcome && 'kind' in outcome ? (outcome as { work?: Challenge }).work : outcome
    return solve(asked!.challenge, asked!.bits)
  }

  async function guess(at: Desk, times: number, route = locked(), ip?: string): Promise<UnlockOutcome> {
    let last: UnlockOutcome | undefined
    for (let count = 0; count < times; count++) last = await at.try(route, { password: 'no' }, ip)
    return last!
  }

  /** Two hundred wrong guesses from two hundred networks. */
  async function guessFromEverywhere(at: Desk): Promise<void> {
    for (let network = 0; network < 200; network++) await at.try(locked(), { password: '' }, `198.51.100.${network}`)
  }

  test('ten wrong attempts of a visitor are free; from then on each costs work, even the right one', async () => {
    const at = desk()
    expect(await guess(at, 9)).toEqual({ kind: 'wrong', work: undefined })
    expect(at.unlock.workFor(locked(), at.arrival())).toBeUndefined()
    expect(await guess(at, 1)).toEqual({ kind: 'wrong', work })
    expect(at.unlock.workFor(locked(), at.arrival())).toEqual(work)
    expect(await at.try(locked(), { password: 'no' })).toEqual({ kind: 'limited', retryAfterSeconds: 600, work })
    expect(await at.try(locked(), { password: 'password' })).toEqual(limited)
    expect(at.unlock.workFor(locked(), at.arrival('192.0.2.2'))).toBeUndefined()
    expect(await at.try(locked(), { password: 'password' }, '192.0.2.2')).toMatchObject({ kind: 'unlocked' })
    at.time.now += 598_999
    expect(await at.try(locked(), { password: 'no' })).toEqual({ kind: 'limited', retryAfterSeconds: 2, work })
    at.time.now += 1000
    expect(await at.try(locked(), { password: 'no' })).toEqual({ kind: 'limited', retryAfterSeconds: 1, work })
    at.time.now += 1
    expect(at.unlock.workFor(locked(), at.arrival())).toBeUndefined()
    expect(await at.try(locked(), { password: 'password' })).toMatchObject({ kind: 'unlocked' })
  })

  test('by strangers from everywhere locks no one out who knows the password', async () => {
    const at = desk()
    await guessFromEverywhere(at)
    const asked = at.unlock.workFor(locked(), at.arrival('203.0.113.1'))
    expect(asked).toEqual(work)
    expect(at.unlock.workFor(locked({ site_id: 'st_other' }), at.arrival('203.0.113.1'))).toBeUndefined()
    expect(await at.try(locked(), { password: 'password' }, '203.0.113.1')).toEqual(limited)
    const proof = proofFor(asked)
    expect(await at.try(locked(), { password: 'password', proof }, '203.0.113.1')).toMatchObject({ kind: 'unlocked' })
  })

  test('an answer is good for one guess, at the worker that heard of it too, and only for its drop', async () => {
    const [here, there] = [desk(), desk()]
    const proof = proofFor(await guess(here, 10))
    for (const attempt of here.told) there.unlock.hear(attempt)
    const other = locked({ site_id: 'st_other' })
    await guess(here, 10, other)
    expect(await here.try(other, { password: 'no', proof })).toEqual(limited)
    expect(await here.try(locked(), { password: 'no', proof })).toMatchObject(wrong)
    expect(await here.try(locked(), { password: 'password', proof })).toEqual(limited)
    expect(here.told.at(-1)).toMatchObject({ proofId: expect.any(String) })
    there.unlock.hear(here.told.at(-1)!)
    expect(await there.try(locked(), { password: 'password', proof })).toEqual(limited)
  })

  test('an answer that was not asked for is not used up', async () => {
    const at = desk()
    const proof = proofFor(await guess(at, 10, locked(), '203.0.113.1'))
    await guess(at, 8)
    for (const free of [9, 10, 11])
      expect(await at.try(locked(), { password: 'no', proof }), String(free)).toMatchObject(wrong)
    expect(await at.try(locked(), { password: 'no', proof })).toEqual(limited)
  })

  test('nothing is asked where there is no password any more', async () => {
    const at = desk()
    await guess(at, 10)
    expect(at.unlock.workFor(locked(), at.arrival())).toEqual(work)
    expect(at.unlock.workFor(locked({ password: null }), at.arrival())).toBeUndefined()
  })

  test('an answer is good at another worker and another edge', async () => {
    const [here, there] = [desk(), desk()]
    const proof = proofFor(await guess(here, 10))
    await guess(there, 10)
    expect(await there.try(locked(), { password: 'password', proof })).toMatchObject({ kind: 'unlocked' })
  })

  test.each([
    [
      'a forged answer',
      (at: Desk) => proofFor(at.unlock.workFor(locked(), at.arrival())).replace(`~${19 - EASIER}~`, '~1~'),
    ],
    ['no answer', () => ''],
    ['the question', (at: Desk) => at.unlock.workFor(locked(), at.arrival())!.challenge],
  ])('%s opens nothing', async (_, answer) => {
    const at = desk()
    await guess(at, 10)
    expect(await at.try(locked(), { password: 'password', proof: answer(at) })).toEqual(limited)
  })

  test('an answer of ten minutes ago opens nothing', async () => {
    const at = desk()
    const proof = proofFor(await guess(at, 10))
    at.time.now += 600_000
    await guess(at, 10)
    expect(await at.try(locked(), { password: 'password', proof })).toEqual(limited)
  })

  test('what is refused does not make it harder; what was guessed with an answer does', async () => {
    const at = desk()
    await guess(at, 10)
    for (let refused = 0; refused < 100; refused++) await at.try(locked(), { password: 'no' })
    expect(at.unlock.workFor(locked(), at.arrival())).toMatchObject({ bits: 19 - EASIER })
    // As other workers would tell it: solving so many would take a while here.
    const [attempt] = at.told
    for (let guessed = 0; guessed < 10; guessed++) at.unlock.hear(attempt!)
    expect(at.unlock.workFor(locked(), at.arrival())).toMatchObject({ bits: 20 - EASIER })
    for (let guessed = 0; guessed < 10_000; guessed++) at.unlock.hear(attempt!)
    expect(at.unlock.workFor(locked(), at.arrival())).toMatchObject({ bits: 24 - EASIER })
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
    await guess(here, 10)
    for (const attempt of here.told) there.unlock.hear(attempt)
    expect(await there.try(locked(), { password: 'password' })).toEqual(limited)
    expect(await there.try(locked(), { password: 'password' }, '198.51.100.7')).toMatchObject({ kind: 'unlocked' })
  })

  test('that was right is given back at the other workers too', async () => {
    const [here, there] = [desk(), desk()]
    for (let count = 0; count < 20; count++) await here.try(locked(), { password: 'password' })
    for (const attempt of here.told) there.unlock.hear(attempt)
    expect(await guess(there, 10)).toMatchObject(wrong)
    expect(await there.try(locked(), { password: 'no' })).toEqual(limited)
  })

  test('from one IPv6 network is one visitor', async () => {
    const at = desk()
    for (let attempt = 0; attempt < 10; attempt++)
      await at.try(locked(), { password: 'no' }, `2001:db8:0:1::${attempt}`)
    expect(await at.try(locked(), { password: 'no' }, '2001:db8:0:1:ffff::1')).toEqual(limited)
    expect(await at.try(locked(), { password: 'no' }, '2001:db8:0:2::1')).toMatchObject(wrong)
  })

  /** Nothing is compared when nothing was typed, so that two hundred attempts take no time. */
  const guessAs = (at: Desk, visitor: number): Promise<UnlockOutcome> =>
    at.try(locked(), { password: '' }, `198.51.${visitor >> 8}.${visitor & 255}`)

  test('from everywhere costs work after two hundred attempts at a drop, for ten minutes', async () => {
    const at = desk()
    for (let visitor = 0; visitor < 199; visitor++) expect(await guessAs(at, visitor)).toEqual({ kind: 'wrong' })
    expect(await guessAs(at, 199)).toEqual({ kind: 'wrong', work })
    expect(await guessAs(at, 200)).toEqual({ kind: 'limited', retryAfterSeconds: 600, work })
    at.time.now += 599_999
    expect(await guessAs(at, 201)).toEqual({ kind: 'limited', retryAfterSeconds: 1, work })
    at.time.now += 1
    expect(await guessAs(at, 202)).toEqual({ kind: 'wrong' })
  })

  test('that is refused is not counted against the visitor, nor told', async () => {
    const at = desk()
    for (let visitor = 0; visitor < 200; visitor++) await guessAs(at, visitor)
    const told = at.told.length
    at.time.now += 300_000
    for (let attempt = 0; attempt < 20; attempt++) expect(await guessAs(at, 500)).toEqual(limited)
    expect(at.told).toHaveLength(told)
    at.time.now += 300_000
    for (let attempt = 0; attempt < 10; attempt++) expect(await guessAs(at, 500)).toMatchObject(wrong)
  })

  test('at another worker counts against the drop, and what was right does not', async () => {
    const [here, there] = [desk(), desk()]
    for (let visitor = 0; visitor < 199; visitor++) await guessAs(here, visitor)
    await here.try(locked(), { password: 'password' })
    for (const attempt of here.told) there.unlock.hear(attempt)
    for (const at of [here, there]) {
      expect(await guessAs(at, 300)).toMatchObject(wrong)
      expect(await guessAs(at, 301)).toEqual(limited)
    }
  })

  test('gives back what was taken, never more', () => {
    const attempts = createAttempts({ attempts: 2, windowMs: 1000, maxKeys: 3 }, { now: () => NOW })
    const used = (): number[] => [attempts.take('a').used, attempts.take('a').used]
    attempts.giveBack('a')
    expect(used()).toEqual([0.5, 1])
    for (let count = 0; count < 5; count++) attempts.giveBack('a')
    expect(used()).toEqual([0.5, 1])
  })

  test('leaves bounded traces', () => {
    const attempts = createAttempts({ attempts: 1, windowMs: 1000, maxKeys: 3 }, { now: () => NOW })
    for (const key of ['a', 'b', 'c', 'd']) attempts.take(key)
    expect(attempts.take('d')).toEqual({ used: 2, endsInMs: 1000 })
    expect(attempts.foresee('a')).toEqual({ used: 1, endsInMs: 1000 })
  })
})

test.each([
  ['/a?b=c', '/a?b=c'],
  ['/', '/'],
  ['//evil.com', '/'],
  ['', '/'],
  [null, '/'],
  ['/.dropway/unlock', '/'],
  ['/.dropway/unlock?x', '/'],
  ['/x/.dropway/unlock', '/x/.dropway/unlock'],
  [`/${'a'.repeat(1999)}`, `/${'a'.repeat(1999)}`],
  [`/${'a'.repeat(2000)}`, '/'],
])('after unlocking, next=%j leads to %s', (next, expected) => expect(nextAfterUnlocking(next)).toBe(expected))
