/** SQL of accounts: users, links sent by mail, what they were told. */
import type { Sql } from '../../ground/database/sql.ts'

export interface UserRow {
  readonly id: string
  /** Where mails go. A namesake's leads nowhere. */
  readonly email: string
  /** What the person signed up with, and reads on every page. */
  readonly shownEmail: string
  readonly passwordHash: string
  readonly verifiedAt: Date | null
}

const userColumns = (sql: Sql) => sql`
  id, email, coalesce(typed_email, email) as "shownEmail", password_hash as "passwordHash",
  email_verified_at as "verifiedAt"`

export async function findUserByEmail(sql: Sql, email: string): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    select ${userColumns(sql)} from users where lower(email) = ${email} and deleted_at is null`
  return row
}

export async function findUser(sql: Sql, userId: string): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`select ${userColumns(sql)} from users where id = ${userId} and deleted_at is null`
  return row
}

/**
 * An account that was signed up for with an address that had one already. Telling so would tell everyone who has one, so
 * it looks and works like any other that is not verified, and never can be: its mails go nowhere, and the owner of the
 * address is told instead. A change to another address makes it an ordinary account.
 */
export interface Namesake {
  readonly typedEmail: string
  /** A few bits of the password, keyed: which of several namesakes a sign-in means. */
  readonly passwordTag: string
}

export async function findNamesake(sql: Sql, { typedEmail, passwordTag }: Namesake): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    select ${userColumns(sql)} from users
    where typed_email = ${typedEmail} and password_tag = ${passwordTag} and deleted_at is null
    order by created_at desc limit 1`
  return row
}

export async function isNamesake(sql: Sql, userId: string): Promise<boolean> {
  return (await sql`select from users where id = ${userId} and typed_email is not null`).length === 1
}

/** Locks the user, so that two changes of one account follow each other. */
export async function lockUser(sql: Sql, userId: string): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    select ${userColumns(sql)} from users where id = ${userId} and deleted_at is null for no key update`
  return row
}

interface NewUser {
  readonly id: string
  readonly email: string
  readonly passwordHash: string
  readonly verifiedAt: Date | null
  readonly now: Date
}

/** False when the address is taken. */
export async function insertUser(sql: Sql, user: NewUser, namesake?: Namesake): Promise<boolean> {
  const rows = await sql`
    insert into users (id, email, password_hash, email_verified_at, created_at, last_sign_in_at, typed_email, password_tag)
    values (${user.id}, ${user.email}, ${user.passwordHash}, ${user.verifiedAt}, ${user.now}, ${user.now},
      ${namesake?.typedEmail ?? null}, ${namesake?.passwordTag ?? null})
    on conflict do nothing returning id`
  return rows.length === 1
}

/** A generation of its own begins with each password: what was opened as a member before can be told apart. */
export async function setPasswordHash(
  sql: Sql,
  userId: string,
  password: { readonly hash: string; readonly tag: string },
): Promise<void> {
  await sql`
    update users set password_hash = ${password.hash}, password_generation = password_generation + 1,
      password_tag = case when typed_email is null then null else ${password.tag} end
    where id = ${userId}`
}

export async function setVerified(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`update users set email_verified_at = ${now} where id = ${userId}`
}

export async function setEmail(sql: Sql, userId: string, email: string, now: Date): Promise<void> {
  await sql`
    update users set email = ${email}, email_verified_at = ${now}, typed_email = null, password_tag = null
    where id = ${userId}`
}

/** What names a person goes; the row stays, because organisations and versions refer to it. */
export async function eraseUser(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`
    update users set email = 'deleted-' || id || '@invalid', password_hash = '', email_verified_at = null,
      typed_email = null, password_tag = null, is_staff = false, deleted_at = ${now} where id = ${userId}`
  await sql`delete from account_links where user_id = ${userId}`
}

/** Takes one closed account that is still named somewhere; other runners take others. */
export async function lockErasable(sql: Sql, closedBefore: Date): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select id from users where deleted_at <= ${closedBefore} and erased_at is null
    order by deleted_at limit 1 for no key update skip locked`
  return row?.id
}

export async function markErased(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`update users set erased_at = ${now} where id = ${userId}`
}

/** Those of the addresses that belong to an account which exists. */
export async function emailsInUse(sql: Sql, addresses: readonly string[]): Promise<string[]> {
  const rows = await sql<{ email: string }[]>`
    select lower(email) as email from users where lower(email) = any(${addresses as string[]}) and deleted_at is null`
  return rows.map(({ email }) => email)
}

export interface AccountNotice {
  readonly kind: string
  readonly actsAt: Date
}

/** Accounts from before that time that were never verified; none that pays, or that others belong to. */
export async function unverifiedBefore(sql: Sql, before: Date): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select u.id from users u
    where u.email_verified_at is null and u.deleted_at is null and u.created_at <= ${before} and not exists (
      select from organisations o where o.owner_id = u.id and o.deleted_at is null
        and (o.plan <> 'free' or (select count(*) from memberships m where m.org_id = o.id) > 1))
    order by u.created_at`
  return rows.map((row) => row.id)
}

export async function lockUnverified(
  sql: Sql,
  userId: string,
): Promise<{ id: string; email: string; createdAt: Date } | undefined> {
  const [row] = await sql<{ id: string; email: string; createdAt: Date }[]>`
    select id, email, created_at as "createdAt" from users
    where id = ${userId} and email_verified_at is null and deleted_at is null for no key update`
  return row
}

export async function listAccountNotices(sql: Sql, userId: string): Promise<AccountNotice[]> {
  return sql<AccountNotice[]>`
    select kind, acts_at as "actsAt" from account_notices where user_id = ${userId} order by sent_at, kind`
}

export async function insertAccountNotice(
  sql: Sql,
  userId: string,
  notice: AccountNotice & { sentAt: Date },
): Promise<void> {
  await sql`
    insert into account_notices (user_id, kind, acts_at, sent_at)
    values (${userId}, ${notice.kind}, ${notice.actsAt}, ${notice.sentAt})`
}

/**
 * Addresses of the drops of the organisations that a user owns. They go into mails to a mailbox that is not proved yet,
 * so neither names nor titles do: a stranger could write an advertisement into them.
 */
export async function listOwnedSlugs(sql: Sql, userId: string): Promise<string[]> {
  const rows = await sql<{ slug: string }[]>`
    select s.slug from sites s join organisations o on o.id = s.org_id
    where o.owner_id = ${userId} and s.deleted_at is null and s.live_version_id is not null order by s.slug`
  return rows.map(({ slug }) => slug)
}

export interface LinkRow {
  readonly userId: string
  readonly email: string
  readonly expiresAt: Date
  readonly usedAt: Date | null
}

export async function insertLink(
  sql: Sql,
  link: { tokenHash: string; kind: string; userId: string; email: string; now: Date; expiresAt: Date },
): Promise<void> {
  await sql`
    insert into account_links (token_hash, kind, user_id, email, created_at, expires_at)
    values (${link.tokenHash}, ${link.kind}, ${link.userId}, ${link.email}, ${link.now}, ${link.expiresAt})`
}

export async function findLink(sql: Sql, kind: string, tokenHash: string): Promise<LinkRow | undefined> {
  const [row] = await sql<LinkRow[]>`
    select user_id as "userId", email, expires_at as "expiresAt", used_at as "usedAt"
    from account_links where token_hash = ${tokenHash} and kind = ${kind}`
  return row
}

/** Uses a link up: one of the callers who race for it gets it. */
export async function useLink(sql: Sql, kind: string, tokenHash: string, now: Date): Promise<LinkRow | undefined> {
  const [row] = await sql<LinkRow[]>`
    update account_links set used_at = ${now}
    where token_hash = ${tokenHash} and kind = ${kind} and used_at is null and expires_at > ${now}
    returning user_id as "userId", email, expires_at as "expiresAt", used_at as "usedAt"`
  return row
}

/** Older links of a kind stop working. */
export async function retireLinks(sql: Sql, userId: string, kinds: readonly string[], now: Date): Promise<void> {
  await sql`
    update account_links set used_at = ${now}
    where user_id = ${userId} and kind = any(${kinds as string[]}) and used_at is null`
}

export async function deleteOldLinks(sql: Sql, before: Date): Promise<void> {
  await sql`delete from account_links where expires_at <= ${before}`
}
