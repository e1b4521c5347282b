/** SQL of workflows that drops trust, and of what they were given. */
import { jsonb, type Sql } from '../../ground/database/sql.ts'
import type { Actor, WorkflowRun } from '../../ground/actor.ts'
import type { TrustedWorkflow } from './rules.ts'

export interface PublisherRow extends TrustedWorkflow {
  readonly id: string
  readonly siteId: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

const columns = (sql: Sql) => sql`
  id, site_id as "siteId", provider, issuer, repository, workflow, branch, environment, repository_id as "repositoryId",
  owner_id as "ownerId", claims, pull_requests as "pullRequests", created_at as "createdAt", last_used_at as "lastUsedAt"`

export async function insertPublisher(
  sql: Sql,
  publisher: Omit<PublisherRow, 'lastUsedAt'> & { createdBy: string },
): Promise<void> {
  const { id, siteId, provider, issuer, repository, workflow, branch, environment } = publisher
  await sql`
    insert into publishers (id, site_id, provider, issuer, repository, workflow, branch, environment, repository_id,
      owner_id, claims, pull_requests, created_by, created_at)
    values (${id}, ${siteId}, ${provider}, ${issuer}, ${repository}, ${workflow}, ${branch}, ${environment},
      ${publisher.repositoryId}, ${publisher.ownerId}, ${jsonb(sql, publisher.claims)},
      ${publisher.pullRequests}, ${publisher.createdBy}, ${publisher.createdAt})`
}

export async function listPublishers(sql: Sql, siteId: string): Promise<PublisherRow[]> {
  return sql<PublisherRow[]>`
    select ${columns(sql)} from publishers where site_id = ${siteId} and removed_at is null order by created_at, id`
}

/** The row, locked; undefined when it was removed meanwhile. */
export async function lockPublisher(sql: Sql, id: string): Promise<PublisherRow | undefined> {
  const [row] = await sql<PublisherRow[]>`
    select ${columns(sql)} from publishers where id = ${id} and removed_at is null for update`
  return row
}

export async function removePublisher(
  sql: Sql,
  { id, siteId, now }: { id: string; siteId: string; now: Date },
): Promise<Pick<PublisherRow, 'repository'> | undefined> {
  const [row] = await sql<Pick<PublisherRow, 'repository'>[]>`
    update publishers set removed_at = ${now} where id = ${id} and site_id = ${siteId} and removed_at is null
    returning repository`
  return row
}

/** Notes a use; the ids that were not known yet are pinned. */
export async function noteExchange(
  sql: Sql,
  id: string,
  use: { now: Date; repositoryId: string | null; ownerId: string | null },
): Promise<void> {
  await sql`
    update publishers set last_used_at = ${use.now}, repository_id = coalesce(repository_id, ${use.repositoryId}),
      owner_id = coalesce(owner_id, ${use.ownerId})
    where id = ${id}`
}

/** False when this token was exchanged before. */
export async function takeToken(sql: Sql, token: { issuer: string; jti: string; expiresAt: Date }): Promise<boolean> {
  const { count } = await sql`
    insert into exchanged_tokens (issuer, jti, expires_at) values (${token.issuer}, ${token.jti}, ${token.expiresAt})
    on conflict do nothing`
  return count === 1
}

export async function insertPublisherToken(
  sql: Sql,
  token: {
    id: string
    tokenHash: string
    publisherId: string
    run: WorkflowRun
    preview: string | null
    expiresAt: Date
  },
): Promise<void> {
  await sql`
    insert into publisher_tokens (id, token_hash, publisher_id, run, preview, expires_at)
    values (${token.id}, ${token.tokenHash}, ${token.publisherId}, ${jsonb(sql, token.run)}, ${token.preview},
      ${token.expiresAt})`
}

/** The drop that an exchange names by its id or slug. */
export async function findNamedSite(sql: Sql, name: string): Promise<{ id: string; orgId: string } | undefined> {
  const [row] = await sql<{ id: string; orgId: string }[]>`
    select id, org_id as "orgId" from sites
    where (id = ${name} or slug = ${name}) and org_id is not null and deleted_at is null`
  return row
}

export interface PublisherIdentity extends Omit<Actor, 'via' | 'ip' | 'reach'> {
  readonly publisherId: string
  readonly siteId: string
  readonly run: WorkflowRun
  readonly preview: string | null
}

/** A workflow acts for the organisation's owner, whose plan, verification and place in it count. */
export async function findPublisherIdentity(
  sql: Sql,
  tokenHashes: readonly string[],
  now: Date,
): Promise<PublisherIdentity | undefined> {
  const [row] = await sql<PublisherIdentity[]>`
    select p.id as "publisherId", p.site_id as "siteId", t.run, t.preview, u.id as "userId", u.email,
           u.email_verified_at is not null as "emailVerified", false as "isStaff", o.id as "orgId", o.plan,
           'member' as role
    from publisher_tokens t
    join publishers p on p.id = t.publisher_id and p.removed_at is null
    join sites s on s.id = p.site_id and s.deleted_at is null
    join organisations o on o.id = s.org_id and o.deleted_at is null
    join users u on u.id = o.owner_id
    where t.token_hash = any(${tokenHashes as string[]}) and t.expires_at > ${now}`
  return row
}

export async function deleteEndedExchanges(sql: Sql, now: Date): Promise<void> {
  await sql`delete from publisher_tokens where expires_at <= ${now}`
  await sql`delete from exchanged_tokens where expires_at <= ${now}`
}
