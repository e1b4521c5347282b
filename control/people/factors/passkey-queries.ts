/** SQL of passkeys. */
import type { Sql } from '../../ground/database/sql.ts'

export interface PasskeyRow {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly publicKey: Buffer
  readonly counter: number
  readonly transports: readonly string[]
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export async function insertPasskey(sql: Sql, passkey: PasskeyRow): Promise<void> {
  await sql`
    insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
    values (${passkey.id}, ${passkey.userId}, ${passkey.name}, ${passkey.publicKey}, ${passkey.counter},
      ${passkey.transports as string[]}, ${passkey.createdAt})`
}

export async function listPasskeys(
  sql: Sql,
  userId: string,
): Promise<Pick<PasskeyRow, 'id' | 'name' | 'createdAt' | 'lastUsedAt'>[]> {
  return sql<Pick<PasskeyRow, 'id' | 'name' | 'createdAt' | 'lastUsedAt'>[]>`
    select id, name, created_at as "createdAt", last_used_at as "lastUsedAt"
    from passkeys where user_id = ${userId} order by created_at, id`
}

export async function findPasskey(
  sql: Sql,
  id: string,
): Promise<Pick<PasskeyRow, 'id' | 'userId' | 'publicKey' | 'counter'> | undefined> {
  const [row] = await sql<Pick<PasskeyRow, 'id' | 'userId' | 'publicKey' | 'counter'>[]>`
    select p.id, p.user_id as "userId", p.public_key as "publicKey", p.counter::int as counter
    from passkeys p join users u on u.id = p.user_id and u.deleted_at is null where p.id = ${id}`
  return row
}

/** False when it was used meanwhile: of two answers with one counter one is a copy's. */
export async function usePasskey(
  sql: Sql,
  use: { id: string; before: number; counter: number; now: Date },
): Promise<boolean> {
  const { count } = await sql`
    update passkeys set counter = ${use.counter}, last_used_at = ${use.now}
    where id = ${use.id} and counter = ${use.before}`
  return count === 1
}

export async function deletePasskey(sql: Sql, userId: string, id: string): Promise<{ name: string } | undefined> {
  const [row] = await sql<{ name: string }[]>`
    delete from passkeys where user_id = ${userId} and id = ${id} returning name`
  return row
}

export async function deletePasskeysOf(sql: Sql, userId: string): Promise<void> {
  await sql`delete from passkeys where user_id = ${userId}`
}

export async function insertChallenge(
  sql: Sql,
  challenge: { challenge: string; userId: string | null; expiresAt: Date },
): Promise<void> {
  await sql`
    insert into passkey_challenges (challenge, user_id, expires_at)
    values (${challenge.challenge}, ${challenge.userId}, ${challenge.expiresAt})`
}

export async function takeChallenge(sql: Sql, challenge: string, userId: string | null, now: Date): Promise<boolean> {
  const { count } = await sql`
    delete from passkey_challenges
    where challenge = ${challenge} and user_id is not distinct from ${userId} and expires_at > ${now}`
  return count === 1
}

export async function deleteOldChallenges(sql: Sql, now: Date): Promise<void> {
  await sql`delete from passkey_challenges where expires_at <= ${now}`
}
