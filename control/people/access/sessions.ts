/** Begins and ends sessions. The secret goes into the cookie and nowhere else. */
import { newId } from '../../../shared/ids.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { Visit } from '../accounts/contract.ts'
import { deleteSessionByHash, insertSession, purgeSessions } from '../accounts/queries.ts'
import { SESSION_IDLE_MS, SESSION_LIFETIME_MS, sessionCookie } from './session-cookie.ts'

const MAX_USER_AGENT_CHARS = 300

/** A session that came along ends: a secret from before the sign-in is worth nothing after it. */
export async function beginSession(
  sql: Sql,
  who: { userId: string; orgId: string },
  visit: Pick<Visit, 'ip' | 'userAgent' | 'sessionSecret'>,
  now: Date,
): Promise<{ setCookie: string }> {
  if (visit.sessionSecret !== undefined) await deleteSessionByHash(sql, hashSecret(visit.sessionSecret))
  await purgeSessions(sql, who.userId, aliveAt(now))
  const secret = randomSecret(32)
  await insertSession(sql, {
    id: newId('ses'),
    tokenHash: hashSecret(secret),
    ...who,
    ip: visit.ip,
    userAgent: visit.userAgent.slice(0, MAX_USER_AGENT_CHARS),
    now,
    expiresAt: new Date(now.getTime() + SESSION_LIFETIME_MS),
  })
  return { setCookie: sessionCookie(secret) }
}

export function aliveAt(now: Date): { now: Date; seenAfter: Date } {
  return { now, seenAfter: new Date(now.getTime() - SESSION_IDLE_MS) }
}
