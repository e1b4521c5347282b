import { describe, expect, test } from 'vitest'
import * as rules from '../../../control/drops/domains/rules.ts'
import type { RetryState } from '../../../shared/certificate-retry.ts'
import { DAY_MS } from '../../../shared/clock.ts'
import { isPublicAddress } from '../../../shared/ip.ts'

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
    [-1, undefined],
  ])('%s days before the end: %s', (days, notice) => expect(rules.renewalNotice(retry, days * DAY_MS, 0)).toBe(notice))
  test('none while the renewal has failed once or never', () => {
    expect(rules.renewalNotice(undefined, DAY_MS, 0)).toBeUndefined()
    expect(rules.renewalNotice({ ...retry, attempts: 1 }, DAY_MS, 0)).toBeUndefined()
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
    ['something is still in the way', { isAsked: true, decision: { ...decision, reason: 'caa_forbids' } }, false],
    ['nothing has failed yet', { isAsked: true, retry: undefined }, false],
    ['no certificate is wanted', { isAsked: true, decision: { ...decision, wanted: false } }, false],
  ])('%s', (_, change, expected) => expect(rules.mayHurry({ ...facts, ...change })).toBe(expected))
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
  expect(rules.resumable(rows, room).map(({ domain }) => domain)).toEqual(names)
})

test('a domain that is served takes a place before those that wait', () => {
  const served = { domain: 'a', redirect_to: null, stopped_at: null, created_at: new Date(5) }
  const waiting = { domain: 'b', redirect_to: null, stopped_at: new Date(9), created_at: new Date(1) }
  expect(rules.resumable([served, waiting], 1)).toEqual([])
})
