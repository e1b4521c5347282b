/** Decisions of the device grant: no I/O, no clock. */
import { randomInt } from 'node:crypto'
import type { DeviceCodeRow } from './device-queries.ts'
import { OAuthError } from './rules.ts'

/** RFC 8628 §6.1: consonants, so that no code is a word, and none that look like a digit. */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const HALF_CHARS = 4

/** RFC 8628 §3.5: five seconds unless we say otherwise, and five more for each time it was too soon. */
export const POLL_INTERVAL_SECONDS = 5
const SLOW_DOWN_SECONDS = 5
/** Clients that wait exactly as long as they were told arrive a little early now and then. */
const EARLY_MS = 500

export function newUserCode(): string {
  return Array.from({ length: 2 * HALF_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

export function formatUserCode(code: string): string {
  return `${code.slice(0, HALF_CHARS)}-${code.slice(HALF_CHARS)}`
}

/** What a person typed, in any case and with any separators, as it was given out; undefined when it cannot be one. */
export function normalUserCode(typed: string): string | undefined {
  if (typed.length > 40) return undefined
  const code = typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, '')
  return code.length === 2 * HALF_CHARS && [...code].every((letter) => ALPHABET.includes(letter)) ? code : undefined
}

export type Poll =
  | { readonly kind: 'allowed'; readonly grantId: string }
  /** Answered before: a lost answer, or a copy. */
  | { readonly kind: 'repeated'; readonly grantId: string; readonly usedAt: Date }
  | { readonly kind: 'refused'; readonly error: OAuthError; readonly intervalSeconds: number }

/** RFC 8628 §3.5. A person's answer is passed on however soon the program asks. */
export function decidePoll(
  code: Pick<DeviceCodeRow, 'expires_at' | 'interval_seconds' | 'polled_at' | 'denied_at' | 'grant_id' | 'used_at'>,
  now: Date,
): Poll {
  const refused = (error: OAuthError, intervalSeconds = code.interval_seconds): Poll => ({
    kind: 'refused',
    error,
    intervalSeconds,
  })
  if (code.used_at !== null && code.grant_id !== null)
    return { kind: 'repeated', grantId: code.grant_id, usedAt: code.used_at }
  if (code.denied_at !== null) return refused(new OAuthError('access_denied', 'The person said no.'))
  if (code.expires_at <= now) return refused(new OAuthError('expired_token', 'The code has expired. Start again.'))
  if (code.grant_id !== null) return { kind: 'allowed', grantId: code.grant_id }
  const waitedMs = code.polled_at === null ? Infinity : now.getTime() - code.polled_at.getTime()
  if (waitedMs < code.interval_seconds * 1000 - EARLY_MS) {
    const intervalSeconds = code.interval_seconds + SLOW_DOWN_SECONDS
    return refused(new OAuthError('slow_down', `Ask every ${intervalSeconds} seconds.`), intervalSeconds)
  }
  return refused(new OAuthError('authorization_pending', 'The person has not decided yet.'))
}
