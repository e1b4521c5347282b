/** What the edges' issuers remember about a name whose certificate could not be had; control shows it to the owner. */
import { z } from 'zod'

/**
 * Why the last attempt failed:
 * `dns` the CA could not resolve the name · `caa_forbids` · `challenge_unreachable` nobody answered on port 80 ·
 * `challenge_wrong` somebody else answered · `ca_unavailable` the CA is away · `ca_refused` anything else it said ·
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
  /** The CA does not want to be asked before this time, whoever is in a hurry. */
  not_before_ms: z.number().optional(),
  reason: z.enum(failureReasons),
  last_error: z.string(),
  /** Times of failures within the last hour, for the throttle. */
  failures_ms: z.array(z.number()),
})

/** Kept as JSON in Redis, mirrored to Postgres: it survives restarts and tells every edge the same. */
export type RetryState = z.infer<typeof retryStateSchema>

/** Undefined for a state that another version wrote: the name is then simply tried anew. */
export function decodeRetryState(text: string | null | undefined): RetryState | undefined {
  if (text === null || text === undefined) return undefined
  try {
    return retryStateSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
