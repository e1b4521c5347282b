import type { PlanName } from '../../ground/terms/plans.ts'
import type { Role } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { hasRunOutOf, isRemovedOf } from '../../people/access/provider-queries.ts'
import { hasFactorOf } from '../../people/access/second-factor.ts'

export interface ClientRow {
  id: string
  name: string
  redirect_uris: string[]
}

export async function findClient(sql: Sql, id: string): Promise<ClientRow | undefined> {
  const [client] = await sql<ClientRow[]>`select id, name, redirect_uris from oauth_clients where id = ${id}`
  return client
}

export async function touchClient(sql: Sql, id: string, now: Date): Promise<void> {
  await sql`update oauth_clients set last_used_at = ${now} where id = ${id}`
}

export async function deleteIdleClients(sql: Sql, usedBefore: Date): Promise<void> {
  await sql`delete from oauth_clients where coalesce(last_used_at, created_at) < ${usedBefore}`
}

export interface GrantRow {
  id: string
  client_id: string
  client_name: string
  user_id: string
  org_id: string
  scopes: string[]
  resource: string
  created_at: Date
  last_used_at: Date | null
  revoked_at: Date | null
}

export async function insertGrant(sql: Sql, grant: Omit<GrantRow, 'last_used_at' | 'revoked_at'>): Promise<void> {
  await sql`insert into oauth_grants ${sql(grant)}`
}

/** With the name of the organisation that it reaches. */
export interface GrantEntry extends GrantRow {
  organisation: string
}

export async function listGrants(sql: Sql, userId: string): Promise<GrantEntry[]> {
  return sql<GrantEntry[]>`
    select g.*, o.name as organisation from oauth_grants g join organisations o on o.id = g.org_id
    where g.user_id = ${userId} and g.revoked_at is null
      and exists (select 1 from oauth_tokens t where t.grant_id = g.id)
    order by g.created_at desc`
}

/** Ends the grant; its tokens are refused from the next request on. */
export async function revokeGrant(sql: Sql, grantId: string, now: Date): Promise<void> {
  await sql`update oauth_grants set revoked_at = ${now} where id = ${grantId} and revoked_at is null`
}

/** Has this person let the client in, and not ended that since? */
export async function hasLiveGrant(sql: Sql, userId: string, clientId: string): Promise<boolean> {
  const rows = await sql`
    select 1 from oauth_grants where user_id = ${userId} and client_id = ${clientId} and revoked_at is null limit 1`
  return rows.length > 0
}

export async function revokeGrantsOf(sql: Sql, userId: string, now: Date): Promise<void> {
  await sql`update oauth_grants set revoked_at = ${now} where user_id = ${userId} and revoked_at is null`
}

export async function revokeOwnGrant(
  sql: Sql,
  userId: string,
  grantId: string,
  now: Date,
): Promise<Pick<GrantRow, 'org_id' | 'client_name'> | undefined> {
  const [row] = await sql<Pick<GrantRow, 'org_id' | 'client_name'>[]>`
    update oauth_grants set revoked_at = ${now}
    where id = ${grantId} and user_id = ${userId} and revoked_at is null returning org_id, client_name`
  return row
}

export async function insertCode(
  sql: Sql,
  code: { hash: string; grant_id: string; redirect_uri: string; challenge: string; expires_at: Date },
): Promise<void> {
  await sql`insert into oauth_codes ${sql(code)}`
}

export interface CodeRow extends GrantRow {
  redirect_uri: string
  challenge: string
  expires_at: Date
  used_at: Date | null
}

export async function lockCode(sql: Sql, hash: string): Promise<CodeRow | undefined> {
  const [row] = await sql<CodeRow[]>`
    select g.*, c.redirect_uri, c.challenge, c.expires_at, c.used_at from oauth_codes c join oauth_grants g on g.id = c.grant_id
    where c.hash = ${hash} for update of c, g`
  return row
}

export async function markCodeUsed(sql: Sql, hash: string, now: Date): Promise<void> {
  await sql`update oauth_codes set used_at = ${now} where hash = ${hash}`
}

export async function insertToken(
  sql: Sql,
  token: { hash: string; grant_id: string; kind: 'access' | 'refresh'; expires_at: Date },
): Promise<void> {
  await sql`insert into oauth_tokens ${sql(token)}`
}

export interface TokenRow extends GrantRow {
  kind: 'access' | 'refresh'
  expires_at: Date
  used_at: Date | null
}

export async function lockToken(sql: Sql, hash: string): Promise<TokenRow | undefined> {
  const [row] = await sql<TokenRow[]>`
    select g.*, t.kind, t.expires_at, t.used_at from oauth_tokens t join oauth_grants g on g.id = t.grant_id
    where t.hash = ${hash} for update of t, g`
  return row
}

export async function findToken(sql: Sql, hash: string): Promise<GrantRow | undefined> {
  const [row] = await sql<GrantRow[]>`
    select g.* from oauth_tokens t join oauth_grants g on g.id = t.grant_id where t.hash = ${hash}`
  return row
}

export async function markTokenUsed(sql: Sql, hash: string, now: Date): Promise<void> {
  await sql`update oauth_tokens set used_at = ${now} where hash = ${hash}`
}

export async function deleteExpired(sql: Sql, now: Date): Promise<void> {
  await sql`delete from oauth_tokens where expires_at < ${now}`
  await sql`delete from oauth_codes where expires_at < ${now}::timestamptz - interval '1 day'`
  await sql`delete from oauth_device_codes where expires_at < ${now}::timestamptz - interval '1 day'`
  // Nothing is left that could speak for these.
  await sql`delete from oauth_grants g
    where not exists (select 1 from oauth_tokens t where t.grant_id = g.id)
      and not exists (select 1 from oauth_codes c where c.grant_id = g.id)
      and not exists (select 1 from oauth_device_codes d where d.grant_id = g.id)`
}

export interface TokenIdentity {
  grantId: string
  scopes: string[]
  resource: string
  lastUsedAt: Date | null
  userId: string
  email: string
  emailVerified: boolean
  isStaff: boolean
  orgId: string
  plan: PlanName
  role: Role
}

export async function findTokenIdentity(sql: Sql, hash: string, now: Date): Promise<TokenIdentity | undefined> {
  const [row] = await sql<TokenIdentity[]>`
    select g.id as "grantId", g.scopes, g.resource, g.last_used_at as "lastUsedAt", u.id as "userId", u.email,
           u.email_verified_at is not null as "emailVerified", u.is_staff as "isStaff", o.id as "orgId", o.plan, m.role
    from oauth_tokens t join oauth_grants g on g.id = t.grant_id join users u on u.id = g.user_id
    join organisations o on o.id = g.org_id and o.deleted_at is null
    join memberships m on m.org_id = g.org_id and m.user_id = g.user_id
    where t.hash = ${hash} and t.kind = 'access' and t.expires_at > ${now} and g.revoked_at is null
      and (not o.requires_second_factor or ${hasFactorOf(sql, 'g.user_id')})
      and not ${isRemovedOf(sql, 'g.user_id')} and not ${hasRunOutOf(sql, 'g.user_id')}`
  return row
}

export async function touchGrant(sql: Sql, grantId: string, now: Date): Promise<void> {
  await sql`update oauth_grants set last_used_at = ${now} where id = ${grantId}`
}
