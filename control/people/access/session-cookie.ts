/** The cookie that carries a session. Its value is a bearer secret; Postgres knows only the hash. */
import { DAY_MS, SECOND_MS } from '../../../shared/clock.ts'
import { cookie } from '../../ground/http/reply.ts'

export const SESSION_COOKIE = '__Host-dropway_session'

/**
 * Shorter than the 30-day clock of free drops: whoever uses the dashboard signs in again, and so resets
 * that clock, before it runs out.
 */
export const SESSION_LIFETIME_MS = 21 * DAY_MS
/** A browser that was not seen for so long has to sign in again. */
export const SESSION_IDLE_MS = 7 * DAY_MS

export function sessionCookie(secret: string): string {
  return cookie(SESSION_COOKIE, secret, { maxAgeSeconds: SESSION_LIFETIME_MS / SECOND_MS })
}

export function clearedSessionCookie(): string {
  return cookie(SESSION_COOKIE, '', { maxAgeSeconds: 0 })
}
