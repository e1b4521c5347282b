/** When to try, when to wait, when to renew. Pure: times come in as numbers (milliseconds). */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../shared/clock.ts'

/** Pause before each attempt after a failure: the first is at once, from the fifth on daily. */
export const RETRY_INTERVALS_MS: readonly number[] = [0, 1 * MINUTE_MS, 10 * MINUTE_MS, 100 * MINUTE_MS, 1 * DAY_MS]

/** Let's Encrypt locks a name out after 5 failed validations per account and hour; we stay under it by ourselves. */
export const MAX_FAILURES_PER_HOUR = 5

/** Certificates this short-lived are renewed at half of their life: a third would leave hours for a CA's outage. */
const SHORT_LIFETIME_MS = 10 * DAY_MS

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

/** Persisted per name; it survives restarts and tells every edge the same. */
export interface RetryState {
  /** Failures in a row. */
  readonly attempts: number
  readonly nextAttemptMs: number
  readonly lastError: string
  /** Times of recent failures, for the hourly throttle. */
  readonly failuresMs: readonly number[]
}

/** The state after one more failure. */
export function afterFailure(previous: RetryState | undefined, nowMs: number, lastError: string): RetryState {
  const attempts = (previous?.attempts ?? 0) + 1
  const failuresMs = [...(previous?.failuresMs ?? []).filter((at) => nowMs - at < HOUR_MS), nowMs]
  const interval = RETRY_INTERVALS_MS[Math.min(attempts, RETRY_INTERVALS_MS.length - 1)]!
  const nextAttemptMs = Math.max(nowMs + interval, throttledUntil(failuresMs))
  return { attempts, nextAttemptMs, lastError, failuresMs }
}

/** 0 when one more failure within the hour would be allowed, else the time from which it is. */
function throttledUntil(failuresMs: readonly number[]): number {
  const oldest = failuresMs.at(-MAX_FAILURES_PER_HOUR)
  return oldest === undefined ? 0 : oldest + HOUR_MS
}

/** Somebody asked for a new try (DNS was repaired): at once, unless the hourly throttle forbids it. */
export function hurried(state: RetryState, nowMs: number): RetryState {
  return {
    ...state,
    nextAttemptMs: Math.max(nowMs, throttledUntil(state.failuresMs.filter((at) => nowMs - at < HOUR_MS))),
  }
}

/**
 * The time from which a certificate is to be renewed. A window that the CA suggests (ARI, RFC 9773) comes first;
 * else when a third of the lifetime is left, a half when it is short. `random` (0…1) spreads renewals.
 */
export function renewalDueAt(lifetime: Lifetime, random: number, suggested?: RenewalWindow): number {
  if (suggested) return suggested.startMs + random * (suggested.endMs - suggested.startMs)
  const totalMs = lifetime.notAfterMs - lifetime.notBeforeMs
  const leftMs = totalMs < SHORT_LIFETIME_MS ? totalMs / 2 : totalMs / 3
  return lifetime.notAfterMs - leftMs + random * leftMs * JITTER_SHARE
}

export function daysLeft(lifetime: Lifetime, nowMs: number): number {
  return (lifetime.notAfterMs - nowMs) / DAY_MS
}
