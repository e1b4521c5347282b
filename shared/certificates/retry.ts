/** What the edges' issuers remember about a name whose certificate could not be had; control shows it to the owner. */
import { z } from 'zod'
import { HOUR_MS } from '../running/clock.ts'

/**
 * Why the last attempt failed:
 * `dns` the CA could not resolve the name · `caa_forbids` · `challenge_unreachable` no answer on port 80 ·
 * `challenge_wrong` another server answered · `ca_unavailable` the CA is away · `ca_refused` anything else it said ·
 * `internal` it failed on our side.
 */
export const failureReasons = [
  'dns',
  'caa_forbids',
  'challenge_unreachable',
  'challenge_wrong',
  'ca_unavailable',
  'ca_refused',
  'internal',
] as const
export type FailureReason = (typeof failureReasons)[number]

export const retryStateSchema = z.object({
  /** Failures in a row. */
  attempts: z.int().nonnegative(),
  next_attempt_ms: z.number(),
  /** The CA does not want to be asked before this time, however urgent it is. */
  not_before_ms: z.number().optional(),
  reason: z.enum(failureReasons),
  last_error: z.string(),
  /** The CA's own word for it (RFC 8555 §6.7), without the prefix. */
  problem: z.string().optional(),
  /** Times of failures within the last hour, for the throttle. */
  failures_ms: z.array(z.number()),
})

/** The state is JSON in Redis, mirrored to Postgres: it survives restarts and tells every edge the same. */
export type RetryState = z.infer<typeof retryStateSchema>

/** Reads a state; undefined when another version wrote it, and the name is simply tried anew. */
export function decodeRetryState(text: string | null | undefined): RetryState | undefined {
  if (text === null || text === undefined) return undefined
  try {
    return retryStateSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Let's Encrypt locks a name out after 5 failed validations per account and hour; we stay under it by ourselves. */
export const MAX_FAILURES_PER_HOUR = 5

export function recentFailures(state: RetryState | undefined, nowMs: number): number[] {
  return (state?.failures_ms ?? []).filter((at) => nowMs - at < HOUR_MS)
}

/** 0 when one more failure would stay under the hourly limit, else the time from which it would. */
export function throttledUntil(failures: readonly number[]): number {
  const oldest = failures.at(-MAX_FAILURES_PER_HOUR)
  return oldest === undefined ? 0 : oldest + HOUR_MS
}

/** When an owner who is in a hurry gets the next try: at once, unless the hourly throttle or the CA forbids it. */
export function nextTryMs(state: RetryState, nowMs: number): number {
  return Math.max(nowMs, throttledUntil(recentFailures(state, nowMs)), state.not_before_ms ?? 0)
}
