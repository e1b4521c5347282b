import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  adviceIntervalMs,
  afterFailure,
  daysLeft,
  hurried,
  isForgettable,
  renewalDueAt,
  spreadOf,
} from '../../../certs/policy.ts'
import { MAX_FAILURES_PER_HOUR, type RetryState } from '../../../shared/certificates/retry.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../shared/running/clock.ts'

const refused = { reason: 'ca_refused', message: 'no' } as const

test('attempts follow at 0, 1, 10 and 100 minutes, then daily', () => {
  let state: RetryState | undefined
  let nowMs = 1_000_000
  const pauses: number[] = []
  for (let attempt = 0; attempt < 6; attempt++) {
    state = afterFailure(state, nowMs, refused)
    pauses.push((state.next_attempt_ms - nowMs) / MINUTE_MS)
    nowMs = state.next_attempt_ms
  }
  expect(pauses).toEqual([1, 10, 100, 1440, 1440, 1440])
})

test('a CA that was away for days is asked again within half an hour', () => {
  let state: RetryState | undefined
  let nowMs = 0
  for (let attempt = 0; attempt < 50; attempt++) {
    state = afterFailure(state, nowMs, { reason: 'ca_unavailable', message: 'connect ECONNREFUSED' })
    expect(state.next_attempt_ms - nowMs).toBeLessThanOrEqual(30 * MINUTE_MS)
    nowMs = state.next_attempt_ms
  }
})

test('a CA that is away blocks no name, however often its owner asks for a new try', () => {
  let state: RetryState | undefined
  for (let press = 0; press < 10; press++) {
    state = afterFailure(state, press, { reason: 'ca_unavailable', message: '' })
    state = hurried(state, press)
    expect(state.next_attempt_ms).toBe(press)
  }
  expect(state?.failures_ms).toEqual([])
})

test.each([
  ['an hour', HOUR_MS, HOUR_MS],
  ['a year, which no one waits for', 365 * DAY_MS, 7 * DAY_MS],
])('a CA that wants to be left alone for %s is', (_, retryAfterMs, waitMs) => {
  const state = afterFailure(undefined, 1000, { ...refused, retryAfterMs })
  expect(state).toMatchObject({ next_attempt_ms: 1000 + waitMs, not_before_ms: 1000 + waitMs })
})

test('a CA that names no time, or one that is past, leaves the ordinary pause', () => {
  for (const retryAfterMs of [undefined, 0, -HOUR_MS]) {
    const state = afterFailure(undefined, 1000, { ...refused, retryAfterMs })
    expect(state.next_attempt_ms).toBe(1000 + MINUTE_MS)
    expect(state).not.toHaveProperty('not_before_ms')
  }
})

test('a failure is remembered with its reason, and with the CA’s own word where there is one', () => {
  expect(afterFailure(undefined, 1000, refused)).toEqual({
    attempts: 1,
    next_attempt_ms: 1000 + MINUTE_MS,
    reason: 'ca_refused',
    last_error: 'no',
    failures_ms: [1000],
  })
  expect(afterFailure(undefined, 1000, { ...refused, problem: 'caa' })).toHaveProperty('problem', 'caa')
})

test('however often owners hurry, no hour sees more than five failures', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 20 * MINUTE_MS }), { minLength: 5, maxLength: 60 }), (pauses) => {
      let state: RetryState | undefined
      let nowMs = 0
      const failures: number[] = []
      for (const pause of pauses) {
        nowMs += pause
        if (state) state = hurried(state, nowMs)
        if (state && nowMs < state.next_attempt_ms) continue
        failures.push(nowMs)
        state = afterFailure(state, nowMs, refused)
      }
      for (const at of failures) {
        expect(failures.filter((other) => other > at - HOUR_MS && other <= at).length).toBeLessThanOrEqual(
          MAX_FAILURES_PER_HOUR,
        )
      }
    }),
  )
})

test.each([
  ['90 days', 90, 30],
  ['45 days', 45, 15],
  ['10 days', 10, 10 / 3],
  ['9.9 days', 9.9, 4.95],
  ['6 days', 6, 3],
])('a certificate of %s is renewed when the right part of its life is left', (_, days, leftDays) => {
  const lifetime = { notBeforeMs: 0, notAfterMs: days * DAY_MS }
  const earliest = renewalDueAt(lifetime, 0)
  const latest = renewalDueAt(lifetime, 1)
  expect(daysLeft(lifetime, earliest)).toBeCloseTo(leftDays)
  expect(latest).toBeGreaterThan(earliest)
  expect(latest).toBeLessThan(lifetime.notAfterMs)
})

test('a window that the CA suggests comes first', () => {
  const lifetime = { notBeforeMs: 0, notAfterMs: 90 * DAY_MS }
  const window = { startMs: 10 * DAY_MS, endMs: 12 * DAY_MS }
  expect(renewalDueAt(lifetime, 0, window)).toBe(window.startMs)
  expect(renewalDueAt(lifetime, 0.5, window)).toBe(11 * DAY_MS)
})

test('no window keeps a certificate until it ends', () => {
  const lifetime = { notBeforeMs: 0, notAfterMs: 90 * DAY_MS }
  const window = { startMs: 80 * DAY_MS, endMs: 1000 * DAY_MS }
  expect(renewalDueAt(lifetime, 0, window)).toBe(80 * DAY_MS)
  expect(renewalDueAt(lifetime, 0.5, window)).toBe(81 * DAY_MS)
})

test.each([
  ['without a word', undefined, 6 * HOUR_MS],
  ['as it says', 2 * HOUR_MS, 2 * HOUR_MS],
  ['not at once', 0, MINUTE_MS],
  ['not in the past', -HOUR_MS, MINUTE_MS],
  ['daily at least', 30 * DAY_MS, DAY_MS],
])('the CA is asked again %s', (_, retryAfterMs, expected) => {
  expect(adviceIntervalMs(retryAfterMs)).toBe(expected)
})

test('every edge spreads a name alike, and names differ', () => {
  expect(spreadOf('a.example')).toBe(spreadOf('a.example'))
  const spreads = Array.from({ length: 1000 }, (_, index) => spreadOf(`site-${index}.example`))
  expect(Math.min(...spreads)).toBeLessThan(0.05)
  expect(Math.max(...spreads)).toBeGreaterThan(0.95)
  // Edges of two releases agree as well: FNV-1a of the name, the value of its authors for `foobar`.
  expect(spreadOf('foobar') * 2 ** 32).toBe(0xbf9cf968)
})

test('failures of a name that no one wants are remembered until long after they matter', () => {
  const state = afterFailure(undefined, 0, { ...refused, retryAfterMs: 2 * DAY_MS })
  expect(isForgettable(state, 2 * DAY_MS)).toBe(false)
  expect(isForgettable(state, 8 * DAY_MS)).toBe(false)
  expect(isForgettable(state, 9 * DAY_MS - 1)).toBe(false)
  expect(isForgettable(state, 9 * DAY_MS)).toBe(true)
  const { not_before_ms: _, ...hurriedOnce } = { ...state, next_attempt_ms: DAY_MS }
  expect(isForgettable(hurriedOnce, 8 * DAY_MS - 1)).toBe(false)
  expect(isForgettable(hurriedOnce, 8 * DAY_MS)).toBe(true)
  // Asked to be left alone for longer than the next try would be away.
  expect(isForgettable({ ...hurriedOnce, not_before_ms: 3 * DAY_MS }, 9 * DAY_MS)).toBe(false)
})
