/** Limits and decisions about visitors who are not in yet. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import type { Allowance } from '../../ground/http/limits/throttle.ts'

/** Of one code. With 10^6 codes and one that counts at a time, a guess is right once in a million tries. */
export const MAX_TRIES = 5
/** To one mail box, for whatever drops. */
export const MAX_CODE_MAILS = 12
export const CODE_MAIL_WINDOW_MS = HOUR_MS
/** A program asks control anew after this long: what was revoked is refused within a minute, on every edge. */
export const MACHINE_ADMISSION_MS = 30 * SECOND_MS
/** An owner who has not answered by then is asked anew. */
export const REQUEST_KEPT_MS = 30 * DAY_MS

/**
 * Per network and per drop. What a whole office mistypes fits; a crowd of guessers that shares the drop's tries needs
 * months for one right guess. Links in mails are never guessed and have no limit, so that guessers lock no viewer out.
 */
export const VISIT_ALLOWANCES = {
  visitorCode: { limit: 60, windowMs: 10 * MINUTE_MS },
  dropCode: { limit: 1000, windowMs: 10 * MINUTE_MS },
  visitorTry: { limit: 60, windowMs: 10 * MINUTE_MS },
  dropTry: { limit: 300, windowMs: 10 * MINUTE_MS },
  visitorGuest: { limit: 120, windowMs: 10 * MINUTE_MS },
  visitorMachine: { limit: 600, windowMs: 10 * MINUTE_MS },
  visitorAsk: { limit: 10, windowMs: HOUR_MS },
  dropAsk: { limit: 20, windowMs: DAY_MS },
} as const satisfies Record<string, Allowance>

/** When an admission ends: as the service says, the drop if that is sooner, and the link that it came by. */
export function admissionEnd(
  now: number,
  { serviceMs, dropMs, linkEnd }: { serviceMs: number; dropMs: number | null; linkEnd?: Date | null | undefined },
): Date {
  const end = now + Math.min(serviceMs, dropMs ?? serviceMs)
  return new Date(Math.min(end, linkEnd?.getTime() ?? end))
}

/** Six digits; people write them with blanks and hyphens. */
export function codeOfText(text: string): string {
  return text.replace(/[\s-]/g, '')
}
