/** SQL of credentials: sessions and API tokens. */
import type { Actor, Scope } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { hasRunOutOf, isRemovedOf } from './provider-queries.ts'
import { hasFactorOf, isSessionWithFactor, needsProofOf } from './second-factor.ts'

/** Who a credential stands for, in one row: the user, the organisation acted for, and the role there. */
type Identity = Omit<Actor, 'via' | 'ip' | 'reach'>

export interface TokenIdentity extends Identity, TokenReach {
  readonly tokenId: string
  readonly lastUsedAt: Date | null
}

/** Null where a token is not limited. */
interface TokenReach {
  readonly scopes: readonly Scope[] | null
  readonly sites: readonly string[] | null
}

export interface SessionIdentity extends Identity {
  readonly sessionId: string
  readonly lastSeenAt: Date
  readonly needsProof: boolean
}

/** No row when the token is unknown, revoked or has run out, or when its user has left the organisation since. */
export async function findTokenIdentity(sql: Sql, tokenHash: string, now: Date): Promise<TokenIdentity | undefined> {
  const [row] = await sql<TokenIdentity[]>`
    select t.id as "tokenId", t.last_used_at as "lastUsedAt", t.scopes, t.site_ids as sites,
           u.id as "userId", u.email, u.email_verified_at is not null as "emailVerified", u.is_staff as "isStaff",
           o.id as "orgId", o.plan, m.role
    from api_tokens t
    join users u on u.id = t.user_id
    join organisations o on o.id = t.org_id and o.deleted_at is null
    join memberships m on m.org_id = t.org_id and m.user_id = t.user_id
    where t.token_hash = ${tokenHash} and t.revoked_at is null and (t.expires_at is null or t.expires_at > ${now})
      and (not o.requires_second_factor or ${hasFactorOf(sql, 't.user_id')})
      and not ${isRemovedOf(sql, 't.user_id')} and not ${hasRunOutOf(sql, 't.user_id')}`
  return row
}

/** A session whose organisation was left or deleted falls back to the user's personal one. */
export async function findSessionIdentity(
  sql: Sql,
  tokenHash: string,
  alive: { now: Date; seenAfter: Date; provedAfter: Date },
): Promise<SessionIdentity | undefined> {
  const [row] = await sql<SessionIdentity[]>`
    select s.id as "sessionId", s.last_seen_at as "lastSeenAt",
           ${needsProofOf(sql, alive.provedAfter)} as "needsProof",
           u.id as "userId", coalesce(u.typed_email, u.email) as email, u.email_verified_at is not null as "emailVerified", u.is_staff as "isStaff",
           tenant.id as "orgId", tenant.plan, tenant.role
    from sessions s
    join users u on u.id = s.user_id
    cross join lateral (
      select o.id, o.plan, m.role
      from memberships m join organisations o on o.id = m.org_id and o.deleted_at is null
      where m.user_id = s.user_id and (not o.requires_second_factor or ${isSessionWithFactor(sql)})
      order by (o.id = s.org_id) desc, o.personal desc, o.created_at
      limit 1
    ) tenant
    where s.token_hash = ${tokenHash} and s.expires_at > ${alive.now} and s.last_seen_at > ${alive.seenAfter}
      and not ${isRemovedOf(sql, 's.user_id')}`
  return row
}

export async function touchToken(sql: Sql, tokenId: string, use: { now: Date; family: AddressFamily }): Promise<void> {
  await sql`update api_tokens set last_used_at = ${use.now}, last_used_family = ${use.family} where id = ${tokenId}`
}

export async function touchSession(sql: Sql, sessionId: string, now: Date): Promise<void> {
  await sql`update sessions set last_seen_at = ${now} where id = ${sessionId}`
}

/** Enough to notice a use from elsewhere, and less than an address. */
export type AddressFamily = 'IPv4' | 'IPv6'

export interface TokenRow extends TokenReach {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
  readonly lastUsedFamily: AddressFamily | null
}

export async function insertToken(
  sql: Sql,
  token: Omit<TokenRow, 'lastUsedAt' | 'lastUsedFamily'> & { tokenHash: string; orgId: string; userId: string },
): Promise<void> {
  await sql`
    insert into api_tokens (id, token_hash, hint, name, org_id, user_id, created_at, expires_at, scopes, site_ids)
    values (${token.id}, ${token.tokenHash}, ${token.hint}, ${token.name}, ${token.orgId}, ${token.userId},
      ${token.createdAt}, ${token.expiresAt}, ${token.scopes as string[] | null}, ${token.sites as string[] | null})`
}

/** A token carries the rights of the account that made it, so everyone sees and revokes only their own. */
export async function listLiveTokens(
  sql: Sql,
  { orgId, userId, now }: { orgId: string; userId: string; now: Date },
): Promise<TokenRow[]> {
  return sql<TokenRow[]>`
    select id, name, hint, created_at as "createdAt", expires_at as "expiresAt", scopes, site_ids as sites,
           last_used_at as "lastUsedAt", last_used_family as "lastUsedFamily"
    from api_tokens
    where org_id = ${orgId} and user_id = ${userId} and revoked_at is null and (expires_at is null or expires_at > ${now})
    order by created_at desc, id desc`
}

/** How many of these drops the organisation has. */
export async function countSitesOf(sql: Sql, orgId: string, siteIds: readonly string[]): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from sites
    where org_id = ${orgId} and id = any(${siteIds as string[]}) and deleted_at is null`
  return row?.count ?? 0
}

export interface EndingToken {
  readonly id: string
  readonly name: string
  readonly expiresAt: Date
  readonly email: string
}

/** One token that ends soon, whose person was not told; locked, and noted as told. `madeBefore` its end by that much. */
export async function takeEndingToken(
  sql: Sql,
  { now, leadMs }: { now: Date; leadMs: number },
): Promise<EndingToken | undefined> {
  const until = new Date(now.getTime() + leadMs)
  const [row] = await sql<EndingToken[]>`
    update api_tokens set end_told_at = ${now}
    from users u
    where u.id = api_tokens.user_id and api_tokens.id = (
      select t.id from api_tokens t
      where t.revoked_at is null and t.end_told_at is null and t.expires_at > ${now} and t.expires_at <= ${until}
        and t.expires_at - t.created_at >= ${leadMs / 1000} * interval '1 second'
      order by t.expires_at limit 1 for update skip locked)
    returning api_tokens.id, api_tokens.name, api_tokens.expires_at as "expiresAt", u.email`
  return row
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

export async function countLiveTokens(sql: Sql, userId: string, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from api_tokens
    where user_id = ${userId} and revoked_at is null and (expires_at is null or expires_at > ${now})`
  return row?.count ?? 0
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
    provedAt: Date | null
    providerIdentityId: string | null
    providerSid: string | null
  },
): Promise<void> {
  await sql`
    insert into sessions (id, token_hash, user_id, org_id, ip, user_agent, created_at, last_seen_at, expires_at, proved_at,
      provider_identity_id, provider_sid)
    values (${session.id}, ${session.tokenHash}, ${session.userId}, ${session.orgId}, ${session.ip}, ${session.userAgent},
      ${session.now}, ${session.now}, ${session.expiresAt}, ${session.provedAt},
      ${session.providerIdentityId}, ${session.providerSid})`
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

/** Removes those that have run out. */
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

export async function deleteEndedSessions(sql: Sql, alive: { now: Date; seenAfter: Date }): Promise<void> {
  await sql`delete from sessions where expires_at <= ${alive.now} or last_seen_at <= ${alive.seenAfter}`
}
