/** SQL of accounts: users, sessions, API tokens, links sent by mail. */
import type { PlanName } from '../../../shared/plans.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { Role } from '../../ground/actor.ts'

/** Who a credential stands for, in one row: the user, the organisation acted for, and the role there. */
interface Identity {
  readonly userId: string
  readonly email: string
  readonly emailVerified: boolean
  readonly isStaff: boolean
  readonly orgId: string
  readonly role: Role
  readonly plan: PlanName
}

export interface TokenIdentity extends Identity {
  readonly tokenId: string
  readonly lastUsedAt: Date | null
}

export interface SessionIdentity extends Identity {
  readonly sessionId: string
  readonly lastSeenAt: Date
}

/** No row when the token is unknown or revoked, or when its user has left the organisation since. */
export async function findTokenIdentity(sql: Sql, tokenHash: string): Promise<TokenIdentity | undefined> {
  const [row] = await sql<TokenIdentity[]>`
    select t.id as "tokenId", t.last_used_at as "lastUsedAt",
           u.id as "userId", u.email, u.email_verified_at is not null as "emailVerified", u.is_staff as "isStaff",
           o.id as "orgId", o.plan, m.role
    from api_tokens t
    join users u on u.id = t.user_id
    join organisations o on o.id = t.org_id and o.deleted_at is null
    join memberships m on m.org_id = t.org_id and m.user_id = t.user_id
    where t.token_hash = ${tokenHash} and t.revoked_at is null`
  return row
}

/** A session whose organisation was left or deleted falls back to the user's personal one. */
export async function findSessionIdentity(
  sql: Sql,
  tokenHash: string,
  alive: { now: Date; seenAfter: Date },
): Promise<SessionIdentity | undefined> {
  const [row] = await sql<SessionIdentity[]>`
    select s.id as "sessionId", s.last_seen_at as "lastSeenAt",
           u.id as "userId", u.email, u.email_verified_at is not null as "emailVerified", u.is_staff as "isStaff",
           tenant.id as "orgId", tenant.plan, tenant.role
    from sessions s
    join users u on u.id = s.user_id
    cross join lateral (
      select o.id, o.plan, m.role
      from memberships m join organisations o on o.id = m.org_id and o.deleted_at is null
      where m.user_id = s.user_id
      order by (o.id = s.org_id) desc, o.personal desc, o.created_at
      limit 1
    ) tenant
    where s.token_hash = ${tokenHash} and s.expires_at > ${alive.now} and s.last_seen_at > ${alive.seenAfter}`
  return row
}

export async function touchToken(sql: Sql, tokenId: string, now: Date): Promise<void> {
  await sql`update api_tokens set last_used_at = ${now} where id = ${tokenId}`
}

export async function touchSession(sql: Sql, sessionId: string, now: Date): Promise<void> {
  await sql`update sessions set last_seen_at = ${now} where id = ${sessionId}`
}

export interface TokenRow {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export async function insertToken(
  sql: Sql,
  token: { id: string; tokenHash: string; hint: string; name: string; orgId: string; userId: string; createdAt: Date },
): Promise<void> {
  await sql`
    insert into api_tokens (id, token_hash, hint, name, org_id, user_id, created_at)
    values (${token.id}, ${token.tokenHash}, ${token.hint}, ${token.name}, ${token.orgId}, ${token.userId}, ${token.createdAt})`
}

/** A token carries the rights of the account that made it, so everybody sees and revokes only their own. */
export async function listLiveTokens(sql: Sql, orgId: string, userId: string): Promise<TokenRow[]> {
  return sql<TokenRow[]>`
    select id, name, hint, created_at as "createdAt", last_used_at as "lastUsedAt"
    from api_tokens where org_id = ${orgId} and user_id = ${userId} and revoked_at is null order by created_at desc, id desc`
}

export async function revokeLiveToken(
  sql: Sql,
  token: { id: string; orgId: string; userId: string },
  now: Date,
): Promise<{ name: string } | undefined> {
  const [row] = await sql<{ name: string }[]>`
    update api_tokens set revoked_at = ${now}
    where id = ${token.id} and org_id = ${token.orgId} and user_id = ${token.userId} and revoked_at is null
    returning name`
  return row
}

/** Every token of the person, in whatever organisation; resolves how many. */
export async function revokeAllTokens(sql: Sql, userId: string, now: Date): Promise<number> {
  const { count } = await sql`
    update api_tokens set revoked_at = ${now} where user_id = ${userId} and revoked_at is null`
  return count
}

export async function countLiveTokens(sql: Sql, userId: string): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from api_tokens where user_id = ${userId} and revoked_at is null`
  return row!.count
}

export interface UserRow {
  readonly id: string
  readonly email: string
  readonly passwordHash: string
  readonly verifiedAt: Date | null
}

const userColumns = (sql: Sql) => sql`id, email, password_hash as "passwordHash", email_verified_at as "verifiedAt"`

export async function findUserByEmail(sql: Sql, email: string): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    select ${userColumns(sql)} from users where lower(email) = ${email} and deleted_at is null`
  return row
}

/** Locks the user, so that two changes of one account follow each other. */
export async function lockUser(sql: Sql, userId: string): Promise<UserRow | undefined> {
  const [row] = await sql<UserRow[]>`
    select ${userColumns(sql)} from users where id = ${userId} and deleted_at is null for no key update`
  return row
}

/** False when the address is taken. */
export async function insertUser(
  sql: Sql,
  user: { id: string; email: string; passwordHash: string; verifiedAt: Date | null; now: Date },
): Promise<boolean> {
  const rows = await sql`
    insert into users (id, email, password_hash, email_verified_at, created_at, last_sign_in_at)
    values (${user.id}, ${user.email}, ${user.passwordHash}, ${user.verifiedAt}, ${user.now}, ${user.now})
    on conflict do nothing returning id`
  return rows.length === 1
}

export async function setPasswordHash(sql: Sql, userId: string, passwordHash: string): Promise<void> {
  await sql`update users set password_hash = ${passwordHash} where id = ${userId}`
}

export async function setVerified(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`update users set email_verified_at = ${now} where id = ${userId}`
}

export async function setEmail(sql: Sql, userId: string, email: string, now: Date): Promise<void> {
  await sql`update users set email = ${email}, email_verified_at = ${now} where id = ${userId}`
}

/** What names a person goes; the row stays, because organisations and versions refer to it. */
export async function eraseUser(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`
    update users set email = 'deleted-' || id || '@invalid', password_hash = '', email_verified_at = null,
      is_staff = false, deleted_at = ${now} where id = ${userId}`
  await sql`delete from account_links where user_id = ${userId}`
  await revokeAllTokens(sql, userId, now)
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
export async function addressesInUse(sql: Sql, addresses: readonly string[]): Promise<string[]> {
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

/** Drops of the organisations that somebody owns, as their owner knows them. */
export async function listOwnedDrops(sql: Sql, userId: string): Promise<{ name: string; slug: string }[]> {
  return sql<{ name: string; slug: string }[]>`
    select coalesce(nullif(s.name, ''), nullif(s.title, ''), s.slug) as name, s.slug
    from sites s join organisations o on o.id = s.org_id
    where o.owner_id = ${userId} and s.deleted_at is null and s.live_version_id is not null order by s.slug`
}

export async function insertSession(
  sql: Sql,
  session: {
    id: string
    tokenHash: string
    userId: string
    orgId: string
    ip: string
    userAgent: string
    now: Date
    expiresAt: Date
  },
): Promise<void> {
  await sql`
    insert into sessions (id, token_hash, user_id, org_id, ip, user_agent, created_at, last_seen_at, expires_at)
    values (${session.id}, ${session.tokenHash}, ${session.userId}, ${session.orgId}, ${session.ip}, ${session.userAgent},
      ${session.now}, ${session.now}, ${session.expiresAt})`
}

export async function deleteSessionByHash(sql: Sql, tokenHash: string): Promise<void> {
  await sql`delete from sessions where token_hash = ${tokenHash}`
}

export async function deleteSessions(sql: Sql, userId: string): Promise<number> {
  return (await sql`delete from sessions where user_id = ${userId}`).count
}

export async function deleteSession(sql: Sql, userId: string, sessionId: string): Promise<boolean> {
  return (await sql`delete from sessions where user_id = ${userId} and id = ${sessionId}`).count === 1
}

/** Those that have run out are of no use to anybody. */
export async function purgeSessions(sql: Sql, userId: string, alive: { now: Date; seenAfter: Date }): Promise<void> {
  await sql`
    delete from sessions where user_id = ${userId} and (expires_at <= ${alive.now} or last_seen_at <= ${alive.seenAfter})`
}

export interface SessionRow {
  readonly id: string
  readonly ip: string
  readonly userAgent: string
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly expiresAt: Date
}

export async function listLiveSessions(
  sql: Sql,
  userId: string,
  alive: { now: Date; seenAfter: Date },
): Promise<SessionRow[]> {
  return sql<SessionRow[]>`
    select id, ip, user_agent as "userAgent", created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt"
    from sessions where user_id = ${userId} and expires_at > ${alive.now} and last_seen_at > ${alive.seenAfter}
    order by last_seen_at desc, id desc`
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

/** Of callers who race for a link, one gets it. */
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

export async function countAttempt(
  sql: Sql,
  key: string,
  window: { now: Date; resetsAt: Date },
): Promise<{ count: number; resetsAt: Date }> {
  const [row] = await sql<{ count: number; resetsAt: Date }[]>`
    insert into throttles (key, count, resets_at) values (${key}, 1, ${window.resetsAt})
    on conflict (key) do update set
      count = case when throttles.resets_at <= ${window.now} then 1 else throttles.count + 1 end,
      resets_at = case when throttles.resets_at <= ${window.now} then excluded.resets_at else throttles.resets_at end
    returning count, resets_at as "resetsAt"`
  return row!
}

export async function forgetAttempts(sql: Sql, key: string): Promise<void> {
  await sql`delete from throttles where key = ${key}`
}

export async function refundAttempt(sql: Sql, key: string): Promise<void> {
  await sql`update throttles set count = count - 1 where key = ${key} and count > 0`
}

/** What has run out and what nobody asks for any more. */
export async function sweepAccounts(sql: Sql, alive: { now: Date; seenAfter: Date }, linksBefore: Date): Promise<void> {
  await sql`delete from sessions where expires_at <= ${alive.now} or last_seen_at <= ${alive.seenAfter}`
  await sql`delete from account_links where expires_at <= ${linksBefore}`
  await sql`delete from throttles where resets_at <= ${alive.now}`
}
