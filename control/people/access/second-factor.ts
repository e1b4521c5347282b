/**
 * What counts as a second factor, in SQL: a generator of codes, or a passkey. Signing in with a password asks for the
 * generator's code. A passkey is a way in of its own, so a session counts as one with it only once it has shown it.
 */
import type { Sql } from '../../ground/database/sql.ts'

const hasGenerator = (sql: Sql, user: string) =>
  sql`exists (select 1 from code_generators g where g.user_id = ${sql(user)} and g.confirmed_at is not null)`

const hasPasskey = (sql: Sql, user: string) => sql`exists (select 1 from passkeys k where k.user_id = ${sql(user)})`

/** The person in the column `user` has a second factor. */
export const hasFactorOf = (sql: Sql, user: string) => sql`(${hasGenerator(sql, user)} or ${hasPasskey(sql, user)})`

/** The session in the alias `s` is one of a second factor: what an organisation may ask of its members. */
export const isSessionWithFactor = (sql: Sql) =>
  sql`(${hasGenerator(sql, 's.user_id')} or (s.proved_at is not null and ${hasPasskey(sql, 's.user_id')}))`

/**
 * The session in the alias `s` has to show the second factor before what reaches far. Where there are passkeys alone and
 * no organisation asks for more, the password is a way in by itself: who has just signed in with it has shown as much.
 */
export const needsProofOf = (sql: Sql, provedAfter: Date) => sql`
  ((s.proved_at is null or s.proved_at <= ${provedAfter})
    and (${hasGenerator(sql, 's.user_id')}
      or (${hasPasskey(sql, 's.user_id')}
        and (s.created_at <= ${provedAfter} or exists (
          select 1 from memberships a join organisations r on r.id = a.org_id and r.deleted_at is null
          where a.user_id = s.user_id and r.requires_second_factor)))))`

export async function hasSecondFactor(sql: Sql, userId: string): Promise<boolean> {
  const [row] = await sql<{ has: boolean }[]>`
    select ${hasFactorOf(sql, 'u.id')} as has from users u where u.id = ${userId}`
  return row?.has ?? false
}

/** May this session act for an organisation that asks for a second factor? */
export async function showsSecondFactor(sql: Sql, sessionId: string): Promise<boolean> {
  const [row] = await sql<{ shows: boolean }[]>`
    select ${isSessionWithFactor(sql)} as shows from sessions s where s.id = ${sessionId}`
  return row?.shows ?? false
}
