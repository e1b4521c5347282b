/** SQL of newcomers: the operator's links, and whether there is anyone yet. */
import type { Sql } from '../../ground/database/sql.ts'

export interface SignUpLinkRow {
  readonly id: string
  readonly kind: 'owner' | 'person'
  /** Null: whoever has the link. */
  readonly email: string | null
}

export async function hasAccounts(sql: Sql): Promise<boolean> {
  return (await sql`select 1 from users where deleted_at is null limit 1`).length > 0
}

export async function insertSignUpLink(
  sql: Sql,
  link: SignUpLinkRow & { readonly tokenHash: string; readonly now: Date; readonly expiresAt: Date | null },
): Promise<void> {
  await sql`
    insert into sign_up_links (id, kind, token_hash, email, created_at, expires_at)
    values (${link.id}, ${link.kind}, ${link.tokenHash}, ${link.email}, ${link.now}, ${link.expiresAt})
    on conflict do nothing`
}

/** The link that was made stays the one, under the token that the key of today gives it. */
export async function renewOwnerLink(sql: Sql, id: string, tokenHash: string): Promise<void> {
  await sql`update sign_up_links set token_hash = ${tokenHash} where id = ${id} and used_at is null`
}

/** The first owner's, used or not; there is one at most. */
export async function findOwnerLink(sql: Sql): Promise<{ id: string; isUsed: boolean } | undefined> {
  const [row] = await sql<{ id: string; isUsed: boolean }[]>`
    select id, used_at is not null as "isUsed" from sign_up_links where kind = 'owner'`
  return row
}

export async function findOpenSignUpLink(sql: Sql, tokenHash: string, now: Date): Promise<SignUpLinkRow | undefined> {
  const [row] = await sql<SignUpLinkRow[]>`
    select id, kind, email from sign_up_links
    where token_hash = ${tokenHash} and used_at is null and (expires_at is null or expires_at > ${now})`
  return row
}

/** By its address: for a person who has proved it in another way. */
export async function findOpenSignUpLinkTo(sql: Sql, email: string, now: Date): Promise<SignUpLinkRow | undefined> {
  const [row] = await sql<SignUpLinkRow[]>`
    select id, kind, email from sign_up_links
    where email = ${email} and used_at is null and expires_at > ${now} order by created_at desc limit 1`
  return row
}

/** False when another sign-up was faster. */
export async function useSignUpLink(sql: Sql, id: string, by: { userId: string; now: Date }): Promise<boolean> {
  const rows = await sql`
    update sign_up_links set used_at = ${by.now}, used_by = ${by.userId}
    where id = ${id} and used_at is null returning id`
  return rows.length === 1
}

/** An earlier link to the same address gives way to a new one. */
export async function deleteOpenSignUpLinksTo(sql: Sql, email: string): Promise<void> {
  await sql`delete from sign_up_links where email = ${email} and used_at is null`
}

export async function deleteSignUpLinksTo(sql: Sql, addresses: readonly string[]): Promise<void> {
  await sql`delete from sign_up_links where email = any(${addresses as string[]})`
}

export async function grantStaff(sql: Sql, userId: string): Promise<void> {
  await sql`update users set is_staff = true where id = ${userId}`
}
