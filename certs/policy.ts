/** When to try, when to wait, when to renew. Pure: times come in as numbers (milliseconds). */
import {
  nextTryMs,
  recentFailures,
  throttledUntil,
  type FailureReason,
  type RetryState,
} from '../shared/certificates/retry.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../shared/running/clock.ts'
import { stepAt, type Steps } from '../shared/running/steps.ts'

/** Pause before attempt n after n failures: the first attempt is made at once, from the fifth on daily. */
export const RETRY_INTERVALS_MS: Steps = [0, 1 * MINUTE_MS, 10 * MINUTE_MS, 100 * MINUTE_MS, 1 * DAY_MS]

/** A CA that is away counts no failures against us, and a renewal must follow soon after its return. */
const CA_AWAY_INTERVAL_MS = 30 * MINUTE_MS

/** A CA may name any time; no edge waits for longer than this before asking again. */
const MAX_CA_WAIT_MS = 7 * DAY_MS

/** Certificates this short-lived are renewed at half of their life: a third would leave hours for a CA's outage. */
const SHORT_LIFETIME_MS = 10 * DAY_MS

/** A CA may suggest any window; with this part of the lifetime left a certificate is renewed whatever it says. */
const LATEST_SHARE = 0.1

/** RFC 9773 §4.3.2: when to ask for its word again if it names no time, and the limits for the time that it names. */
const ADVICE_INTERVAL_MS = 6 * HOUR_MS
const MIN_ADVICE_INTERVAL_MS = 1 * MINUTE_MS
const MAX_ADVICE_INTERVAL_MS = 1 * DAY_MS

/** Part of the remaining window over which renewals are spread, so that a thousand domains do not fall due together. */
const JITTER_SHARE = 0.1

export interface Lifetime {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export interface RenewalWindow {
  readonly startMs: number
  readonly endMs: number
}

export interface Failure {
  readonly reason: FailureReason
  /** Quoted to the owner; empty where the CA said nothing. */
  readonly message: string
  /** The CA's own word for it. */
  readonly problem?: string | undefined
  /** For how long the CA wants to be left alone. */
  readonly retryAfterMs?: number | undefined
}

/** The state after one more failure. */
export function afterFailure(previous: RetryState | undefined, nowMs: number, failure: Failure): RetryState {
  const attempts = (previous?.attempts ?? 0) + 1
  const isAway = failure.reason === 'ca_unavailable'
  const failures = isAway ? recentFailures(previous, nowMs) : [...recentFailures(previous, nowMs), nowMs]
  const regular = stepAt(RETRY_INTERVALS_MS, attempts)
  const interval = isAway ? Math.min(regular, CA_AWAY_INTERVAL_MS) : regular
  const notBefore = nowMs + Math.min(Math.max(failure.retryAfterMs ?? 0, 0), MAX_CA_WAIT_MS)
  return {
    attempts,
    next_attempt_ms: Math.max(nowMs + interval, throttledUntil(failures), notBefore),
    ...(notBefore > nowMs && { not_before_ms: notBefore }),
    reason: failure.reason,
    last_error: failure.message,
    ...(failure.problem !== undefined && { problem: failure.problem }),
    failures_ms: failures,
  }
}

/** How long after its last pause a name that is no longer wanted is remembered. */
const REMEMBER_MS = 7 * DAY_MS

/** May the failures of a name that is no longer wanted be forgotten? Not while they would hold up a new try. */
export function isForgettable(state: RetryState, nowMs: number): boolean {
  return nowMs >= Math.max(state.next_attempt_ms, state.not_before_ms ?? 0) + REMEMBER_MS
}

/** The owner repaired something and asks for a new try: at once, unless the hourly throttle or the CA forbids it. */
export function hurried(state: RetryState, nowMs: number): RetryState {
  return { ...state, next_attempt_ms: nextTryMs(state, nowMs) }
}

/**
 * The time from which a certificate is to be renewed. A window that the CA suggests (ARI, RFC 9773) comes first;
 * else when a third of the lifetime is left, a half when it is short. `random` (0…1) spreads renewals.
 */
export function renewalDueAt(lifetime: Lifetime, random: number, suggested?: RenewalWindow): number {
  const totalMs = lifetime.notAfterMs - lifetime.notBeforeMs
  if (suggested) {
    const chosenMs = suggested.startMs + random * (suggested.endMs - suggested.startMs)
    return Math.min(chosenMs, lifetime.notAfterMs - totalMs * LATEST_SHARE)
  }
  const leftMs = totalMs < SHORT_LIFETIME_MS ? totalMs / 2 : totalMs / 3
  return lifetime.notAfterMs - leftMs + random * leftMs * JITTER_SHARE
}

/** How long the CA's word on renewal stands before it is asked again. */
export function adviceIntervalMs(retryAfterMs: number | undefined): number {
  if (retryAfterMs === undefined) return ADVICE_INTERVAL_MS
  return Math.min(Math.max(retryAfterMs, MIN_ADVICE_INTERVAL_MS), MAX_ADVICE_INTERVAL_MS)
}

/** A number from 0 to 1 that is always the same for a name, so that every edge finds the same time due. */
export function spreadOf(name: string): number {
  let hash = 2166136261
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 16777619) >>> 0
  return hash / 2 ** 32
}

export function daysLeft(lifetime: Lifetime, nowMs: number): number {
  return (lifetime.notAfterMs - nowMs) / DAY_MS
}
