/** Sessions of browsers. The secret goes into the cookie and nowhere else; Postgres knows only its hash. */
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { cookie } from '../../ground/http/reply.ts'
import {
  deleteEndedSessions,
  deleteSession,
  deleteSessionByHash,
  deleteSessions,
  insertSession,
  listLiveSessions,
  purgeSessions,
  type SessionRow,
} from './queries.ts'

export const SESSION_COOKIE = '__Host-dropway_session'

/**
 * Shorter than the 30-day clock of free drops: people who use the dashboard sign in again, and so reset
 * that clock, before it runs out.
 */
export const SESSION_LIFETIME_MS = 21 * DAY_MS
/** A browser that was not seen for so long has to sign in again. */
export const SESSION_IDLE_MS = 7 * DAY_MS
/** How long a proof of the second factor is good for what cannot be undone. */
export const PROOF_MS = 10 * MINUTE_MS

const MAX_USER_AGENT_CHARS = 300

/** The browser that a session begins in. */
export interface Browser {
  readonly ip: string
  readonly userAgent: string
  /** Value of the session cookie that came along; it ends when a new session begins. */
  readonly sessionSecret: string | undefined
}

export interface NewSession {
  readonly userId: string
  readonly orgId: string
  readonly provedAt?: Date | null
  /** Whom the provider vouches for, and its own session: when it says that this is over, so is ours. */
  readonly provider?: { readonly identityId: string; readonly sid: string | undefined } | undefined
}

/** A session that came along ends: a secret from before the sign-in is worth nothing after it. */
export async function beginSession(
  tx: Sql,
  { userId, orgId, provedAt = null, provider }: NewSession,
  browser: Browser,
  now: Date,
): Promise<{ setCookie: string }> {
  if (browser.sessionSecret !== undefined) await endSession(tx, browser.sessionSecret)
  await purgeSessions(tx, userId, aliveAt(now))
  const secret = randomSecret(32)
  await insertSession(tx, {
    id: newId('ses'),
    tokenHash: hashSecret(secret),
    userId,
    orgId,
    ip: browser.ip,
    userAgent: browser.userAgent.slice(0, MAX_USER_AGENT_CHARS),
    now,
    expiresAt: new Date(now.getTime() + SESSION_LIFETIME_MS),
    provedAt,
    providerIdentityId: provider?.identityId ?? null,
    providerSid: provider?.sid ?? null,
  })
  return { setCookie: cookie(SESSION_COOKIE, secret, { maxAgeSeconds: SESSION_LIFETIME_MS / SECOND_MS }) }
}

export const endSession = (sql: Sql, secret: string): Promise<void> => deleteSessionByHash(sql, hashSecret(secret))

/** False when the person has no such session. */
export const endSessionById = (sql: Sql, userId: string, sessionId: string): Promise<boolean> =>
  deleteSession(sql, userId, sessionId)

/** Resolves how many there were. */
export const endSessionsOf = (sql: Sql, userId: string): Promise<number> => deleteSessions(sql, userId)

export const listSessions = (sql: Sql, userId: string, now: Date): Promise<SessionRow[]> =>
  listLiveSessions(sql, userId, aliveAt(now))

export const sweepSessions = (sql: Sql, now: Date): Promise<void> => deleteEndedSessions(sql, aliveAt(now))

export function clearedSessionCookie(): string {
  return cookie(SESSION_COOKIE, '', { maxAgeSeconds: 0 })
}

export function aliveAt(now: Date): { now: Date; seenAfter: Date; provedAfter: Date } {
  const before = (ms: number): Date => new Date(now.getTime() - ms)
  return { now, seenAfter: before(SESSION_IDLE_MS), provedAfter: before(PROOF_MS) }
}
