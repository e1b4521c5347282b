import { describe, expect, test } from 'vitest'
import * as rules from '../../../control/drops/domains/rules.ts'
import type { RetryState } from '../../../shared/certificates/retry.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'
import { isPublicAddress } from '../../../shared/http/ip.ts'

describe('what a check decides', () => {
  const right = { reason: null, isRouted: true } as const
  const missing = { reason: 'no_record', isRouted: false } as const
  const caa = { reason: 'caa_forbids', isRouted: true } as const
  const closed = { reason: 'challenge_unreachable', isRouted: false } as const
  const retry: RetryState = { attempts: 3, next_attempt_ms: 0, reason: 'ca_refused', last_error: '', failures_ms: [] }
  const facts: rules.CheckFacts = {
    state: 'awaiting_dns',
    stopped: false,
    wanted: false,
    diagnosis: right,
    ownership: 'holds',
    certificateEndsMs: undefined,
    retry: undefined,
    nowMs: 1000,
  }
  const served = { state: 'active', certificateEndsMs: 2000 } as const
  test.each<[string, Partial<rules.CheckFacts>, Partial<rules.Decision>]>([
    [
      'no record',
      { diagnosis: missing, ownership: 'unproven' },
      { state: 'awaiting_dns', reason: 'no_record', wanted: false, holds: false },
    ],
    ['all right, no certificate', {}, { state: 'issuing', reason: null, wanted: true, holds: true }],
    ['all right, certificate', { certificateEndsMs: 2000 }, { state: 'active', reason: null, wanted: true }],
    ['certificate over this very moment', { state: 'active', certificateEndsMs: 1000 }, { state: 'issuing' }],
    ['certificate over', { state: 'active', certificateEndsMs: 999 }, { state: 'issuing', wanted: true }],
    [
      'served, DNS gone',
      { ...served, diagnosis: missing },
      { state: 'failing', reason: 'no_record', wanted: true, holds: true },
    ],
    [
      'served, DNS and certificate gone',
      { diagnosis: missing, state: 'failing', certificateEndsMs: 1 },
      { state: 'awaiting_dns', wanted: false },
    ],
    ['CAA', { diagnosis: caa }, { state: 'awaiting_dns', reason: 'caa_forbids', wanted: false }],
    [
      'CAA, certificate',
      { diagnosis: caa, certificateEndsMs: 2000 },
      { state: 'failing', reason: 'caa_forbids', wanted: true },
    ],
    ...(['caa_failed', 'private_address', 'delegation_missing'] as const).map(
      (reason): [string, Partial<rules.CheckFacts>, Partial<rules.Decision>] => [
        `${reason}, certificate`,
        { diagnosis: { reason, isRouted: true }, certificateEndsMs: 2000 },
        { state: 'failing', reason, wanted: true },
      ],
    ),
    [
      'no record, a certificate from before',
      { diagnosis: missing, certificateEndsMs: 2000 },
      { state: 'awaiting_dns', wanted: false },
    ],
    [
      'CAA, certificate, not proven',
      { diagnosis: caa, certificateEndsMs: 2000, ownership: 'unproven' },
      { state: 'awaiting_dns', wanted: false, holds: false },
    ],
    [
      'still failing, DNS gone',
      { ...served, state: 'failing', diagnosis: missing },
      { state: 'failing', reason: 'no_record', wanted: true },
    ],
    [
      'someone else answers',
      { diagnosis: { reason: 'challenge_wrong', isRouted: true } },
      { state: 'issuing', reason: 'challenge_wrong' },
    ],
    ['closed port, not proven', { diagnosis: closed, ownership: 'unproven' }, { state: 'awaiting_dns', holds: false }],
    ['closed port', { diagnosis: closed }, { state: 'issuing', reason: 'challenge_unreachable', wanted: false }],
    ['the CA refused', { retry }, { state: 'issuing', reason: 'ca_refused', wanted: true }],
    ['renewal refused often', { ...served, retry }, { state: 'failing', reason: 'ca_refused', wanted: true }],
    ['renewal failed once', { ...served, retry: { ...retry, attempts: 1 } }, { state: 'active', reason: null }],
    [
      'held elsewhere',
      { ownership: 'held_elsewhere' },
      { state: 'blocked', reason: 'held_elsewhere', wanted: false, holds: false },
    ],
    [
      'taken over',
      { ownership: 'takes_over', state: 'blocked', certificateEndsMs: 2000 },
      { state: 'active', holds: true },
    ],
    [
      'plan over: the certificate stays',
      { ...served, stopped: true, wanted: true },
      { state: 'blocked', reason: 'plan_ended', wanted: true },
    ],
  ])('%s', (_, change, expected) => expect(rules.decide({ ...facts, ...change })).toMatchObject(expected))
})

describe('the routes of a pair', () => {
  const half = {
    holds: true,
    revealing: false,
    redirect_to: null,
    state: 'active',
    stopped_at: null,
    wanted: true,
    site_id: 'st_1',
  } as const
  const apex = { ...half, domain: 'a.test' }
  const www = { ...half, domain: 'www.a.test', redirect_to: 'a.test' }
  const to = 'slug.sites.test'
  test.each<[string, rules.RoutedDomain[], object[]]>([
    [
      'both served',
      [apex, www],
      [
        { kind: 'alias', host: 'a.test', to },
        { kind: 'redirect', host: 'www.a.test', to: 'a.test' },
      ],
    ],
    [
      'the main name is not served: the other shows the drop itself',
      [{ ...apex, state: 'awaiting_dns' }, www],
      [{ kind: 'alias', host: 'www.a.test', to }],
    ],
    ['the main name is held elsewhere', [{ ...apex, holds: false }, www], [{ kind: 'alias', host: 'www.a.test', to }]],
    [
      'the main name is being told to the edges',
      [{ ...apex, state: 'issuing', revealing: true }, www],
      [
        { kind: 'alias', host: 'a.test', to },
        { kind: 'redirect', host: 'www.a.test', to: 'a.test' },
      ],
    ],
    [
      'the plan has ended: the page of a paused drop, over the kept certificate',
      [
        { ...apex, state: 'blocked', stopped_at: new Date(0) },
        { ...www, state: 'blocked', stopped_at: new Date(0) },
      ],
      [
        expect.objectContaining({ kind: 'site', host: 'a.test', state: 'paused', manifest: null }),
        { kind: 'redirect', host: 'www.a.test', to: 'a.test' },
      ],
    ],
    [
      'the plan has ended and no one wants a certificate, or the name is held elsewhere: nothing',
      [
        { ...apex, state: 'blocked', stopped_at: new Date(0), wanted: false },
        { ...www, state: 'blocked', stopped_at: new Date(0), holds: false },
      ],
      [],
    ],
    ['a renewal fails: still served', [{ ...apex, state: 'failing' }], [{ kind: 'alias', host: 'a.test', to }]],
    [
      'nothing served',
      [
        { ...apex, state: 'blocked' },
        { ...www, state: 'issuing' },
      ],
      [],
    ],
  ])('%s', (_, rows, routes) => expect(rules.routesOfDomains(rows, to)).toEqual(routes))
})

describe('which mail about a renewal is due', () => {
  const retry: RetryState = { attempts: 3, next_attempt_ms: 0, reason: 'caa_forbids', last_error: '', failures_ms: [] }
  test.each([
    [20, undefined],
    [14, 14],
    [4, 14],
    [3, 3],
    [0.5, 3],
    [0, undefined],
    [-1, undefined],
  ])('%s days before the end: %s', (days, notice) => {
    expect(rules.renewalNotice(retry, (days + 100) * DAY_MS, 100 * DAY_MS)).toBe(notice)
  })
  test('none while the renewal has failed once or never', () => {
    expect(rules.renewalNotice(undefined, DAY_MS, 0)).toBeUndefined()
    expect(rules.renewalNotice({ ...retry, attempts: 2 }, DAY_MS, 0)).toBeUndefined()
    expect(rules.renewalNotice(retry, undefined, 0)).toBeUndefined()
  })
})

describe('when the CA is asked before its time', () => {
  const retry: RetryState = {
    attempts: 4,
    next_attempt_ms: 0,
    reason: 'challenge_unreachable',
    last_error: '',
    failures_ms: [],
  }
  const decision: rules.Decision = { state: 'issuing', reason: 'challenge_unreachable', holds: true, wanted: true }
  const facts: rules.HurryFacts = { before: 'challenge_unreachable', decision, retry, isAsked: false, isMended: false }
  test.each<[string, Partial<rules.HurryFacts>, boolean]>([
    ['its last complaint stands', {}, false],
    ['the owner asks', { isAsked: true }, true],
    ['everything that was listed is mended', { isMended: true }, true],
    ['DNS was wrong and is right now', { before: 'wrong_target' }, true],
    ['nothing is in the way any more', { before: 'wrong_target', decision: { ...decision, reason: null } }, true],
    ['it was never checked before', { before: 'not_checked' }, false],
    ['there was nothing in the way', { before: null }, false],
    ['the CA was away, and is back', { before: 'ca_unavailable' }, false],
    ['something is still in the way', { isAsked: true, decision: { ...decision, reason: 'caa_forbids' } }, false],
    ['nothing has failed yet', { isAsked: true, retry: undefined }, false],
    ['no certificate is wanted', { isAsked: true, decision: { ...decision, wanted: false } }, false],
  ])('%s', (_, change, expected) => expect(rules.mayHurry({ ...facts, ...change })).toBe(expected))
})

describe('when the CA is asked next', () => {
  const retry: RetryState = { attempts: 1, next_attempt_ms: 9000, reason: 'dns', last_error: '', failures_ms: [] }
  const decision: rules.Decision = { state: 'issuing', reason: 'dns', holds: true, wanted: true }
  test('as the schedule says, or at once for who may hurry', () => {
    expect(rules.nextTryOf(decision, retry, false, 1000)).toBe(9000)
    expect(rules.nextTryOf(decision, retry, true, 1000)).toBe(1000)
  })
  test('not before something else is mended', () => {
    expect(rules.nextTryOf(decision, undefined, false, 1000)).toBeUndefined()
    expect(rules.nextTryOf({ ...decision, wanted: false }, retry, false, 1000)).toBeUndefined()
    expect(rules.nextTryOf({ ...decision, reason: 'no_record' }, retry, false, 1000)).toBeUndefined()
  })
})

describe('when a domain is looked at again', () => {
  const waiting = { state: 'awaiting_dns', reason: 'no_record' } as const
  const pauseOf = (decision: Pick<rules.Decision, 'state' | 'reason'>, checks: number, ageDays = 0) =>
    rules.pauseBeforeNextCheck(decision, checks, ageDays * DAY_MS, 10_000)

  test('while it is not ready: often at first, then every hour', () => {
    const seconds = Array.from({ length: 10 }, (_, checks) => pauseOf(waiting, checks)! / 1000)
    expect(seconds).toEqual([10, 10, 30, 60, 120, 300, 900, 3600, 3600, 3600])
  })
  test('after a month without a record: daily, unless something else is the matter', () => {
    expect(pauseOf(waiting, 99, 30)).toBe(3_600_000)
    expect(pauseOf(waiting, 99, 30 + 1 / DAY_MS)).toBe(DAY_MS)
    expect(pauseOf({ state: 'failing', reason: 'no_record' }, 99, 31)).toBe(3_600_000)
    expect(rules.pauseBeforeNextCheck(waiting, 99, 31 * DAY_MS, DAY_MS)).toBe(360 * DAY_MS)
  })
  test('when all is well: four times a day; when the plan has ended: not at all', () => {
    expect(pauseOf({ state: 'active', reason: null }, 3)).toBe(DAY_MS / 4)
    expect(pauseOf({ state: 'blocked', reason: 'plan_ended' }, 3)).toBeUndefined()
    expect(pauseOf({ state: 'blocked', reason: 'held_elsewhere' }, 0)).toBe(10_000)
  })
})

describe('when the owner hears that visitors no longer arrive', () => {
  const found = (reason: rules.DomainReason | null, state: rules.DomainState = 'failing'): rules.Decision => ({
    state,
    reason,
    holds: true,
    wanted: true,
  })
  test('after three checks in a row', () => {
    expect([0, 2, 3, 4].map((checks) => rules.hasStoppedPointing(found('no_record'), checks))).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
  test('for what leads them elsewhere, and only while it was served', () => {
    const mails = rules.domainReasons.filter((reason) => rules.hasStoppedPointing(found(reason), 3))
    expect(mails).toEqual(['no_record', 'wrong_target', 'cname_loop', 'servfail', 'private_address', 'challenge_wrong'])
    expect(rules.hasStoppedPointing(found('no_record', 'awaiting_dns'), 3)).toBe(false)
    expect(rules.hasStoppedPointing(found(null), 3)).toBe(false)
  })
})

test('an organisation may set up all domains of its plan in a day, and mistype some', () => {
  expect([0, 1, 10].map(rules.newDomainsPerDay)).toEqual([8, 10, 28])
})

test.each([
  ['93.184.216.34', true],
  ['2606:2800:220:1:248:1893:25c8:1946', true],
  ['127.0.0.1', false],
  ['10.1.2.3', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['::1', false],
  ['::ffff:127.0.0.1', false],
  ['fd00::1', false],
  ['fe80::1', false],
  ['not-an-address', false],
])('only public addresses are looked at: %s %s', (address, isPublic) => expect(isPublicAddress(address)).toBe(isPublic))

const roomFor = (customDomains: number) => ({ customDomains, wildcardDomains: true })

test('a wildcard comes back with a plan that allows wildcards, and takes no place of another name', () => {
  const row = (domain: string, day: number) => ({
    domain,
    redirect_to: null,
    stopped_at: new Date(9),
    created_at: new Date(day),
  })
  const rows = [row('*.docs.example', 1), row('b', 2)]
  const back = (wildcardDomains: boolean): string[] =>
    rules.resumable(rows, { customDomains: 1, wildcardDomains }).map(({ domain }) => domain)
  expect([back(true), back(false)]).toEqual([['*.docs.example'], ['b']])
})

test.each([
  [0, []],
  [1, ['a', 'www.a']],
  [2, ['a', 'www.a', 'b']],
  [10, ['a', 'www.a', 'b']],
])('with room for %d domains, %j come back', (room, names) => {
  const row = (domain: string, day: number, redirect_to: string | null = null) => ({
    domain,
    redirect_to,
    stopped_at: new Date(9),
    created_at: new Date(day),
  })
  const rows = [row('a', 1), row('www.a', 1, 'a'), row('b', 2)]
  expect(rules.resumable(rows, roomFor(room)).map(({ domain }) => domain)).toEqual(names)
})

test('first come, first back; of those that came together the first by name', () => {
  const row = (domain: string, day: number) => ({
    domain,
    redirect_to: null,
    stopped_at: new Date(9),
    created_at: new Date(day),
  })
  const back = (room: number): string[] =>
    rules.resumable([row('d', 2), row('c', 1), row('b', 1), row('a', 3)], roomFor(room)).map(({ domain }) => domain)
  expect([1, 2, 3].map(back)).toEqual([['b'], ['c', 'b'], ['d', 'c', 'b']])
  const together = ['b', 'd', 'a', 'c'].map((domain) => row(domain, 1))
  expect(rules.resumable(together, roomFor(2)).map(({ domain }) => domain)).toEqual(['b', 'a'])
})

test('half of a pair that was not stopped is not brought back', () => {
  const apex = { domain: 'a', redirect_to: null, stopped_at: new Date(9), created_at: new Date(1) }
  const www = { domain: 'www.a', redirect_to: 'a', stopped_at: null, created_at: new Date(1) }
  expect(rules.resumable([apex, www], roomFor(1))).toEqual([apex])
})

test('a domain that is served takes a place before those that wait', () => {
  const served = { domain: 'a', redirect_to: null, stopped_at: null, created_at: new Date(5) }
  const waiting = { domain: 'b', redirect_to: null, stopped_at: new Date(9), created_at: new Date(1) }
  expect(rules.resumable([served, waiting], roomFor(1))).toEqual([])
  expect(rules.resumable([served, waiting], roomFor(2))).toEqual([waiting])
  expect(rules.resumable([{ ...served, created_at: new Date(0) }, waiting], roomFor(2))).toEqual([waiting])
})
