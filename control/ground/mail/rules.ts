/** When to try a mail again. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'

/** After attempt n. A mail server's restart costs seconds, its outage hours; after two days no one waits any more. */
const RETRY_DELAYS_MS = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  DAY_MS,
]

export type Verdict = { readonly kind: 'retry'; readonly delayMs: number } | { readonly kind: 'give_up' }

/** `attempts` counts those before this failure. */
export function verdictOn(error: unknown, attempts: number): Verdict {
  const delayMs = RETRY_DELAYS_MS[attempts]
  return isPermanent(error) || delayMs === undefined ? { kind: 'give_up' } : { kind: 'retry', delayMs }
}

/** 5xx about this address or this message. A refused log-in or a broken connection concerns us, not the mail. */
function isPermanent(error: unknown): boolean {
  const { code, responseCode } = error as { code?: string; responseCode?: number }
  return (
    (code === 'EENVELOPE' || code === 'EMESSAGE') &&
    responseCode !== undefined &&
    responseCode >= 500 &&
    responseCode < 600
  )
}
