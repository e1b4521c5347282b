import type { RetryState } from '../../../shared/certificates/retry.ts'
import type { PlanName } from '../../ground/terms/plans.ts'
import type { RouteRecord } from '../../../shared/contracts/route-record.ts'
import { one, type Sql } from '../../ground/database/sql.ts'
import type { QueueRow } from '../../ground/watching/queue.ts'
import type { RecordLine } from './doctor/diagnose.ts'
import type { DomainReason, DomainState } from './rules.ts'

export interface DomainRow {
  id: string
  domain: string
  site_id: string
  org_id: string
  redirect_to: string | null
  state: DomainState
  reason: DomainReason | null
  detail: string
  records: readonly RecordLine[]
  alternative: RecordLine | null
  warnings: readonly string[]
  verify_token: string
  transfer_token: string | null
  transfer_from: string | null
  is_cname_spent: boolean
  holds: boolean
  held_since: Date | null
  wanted: boolean
  revealing: boolean
  stopped_at: Date | null
  checked_at: Date | null
  next_check_at: Date | null
  next_try_at: Date | null
  failing_since: Date | null
  checks: number
  created_at: Date
  slug: string
  dns_target: string
  /** End of the certificate that the edges have for it. */
  not_after: Date | null
}

const columns = (sql: Sql) => sql`
  d.id, d.domain, d.site_id, d.org_id, d.redirect_to, d.state, d.reason, d.detail, d.records, d.alternative, d.warnings,
  d.verify_token, d.transfer_token, d.transfer_from, d.is_cname_spent, d.holds, d.held_since, d.wanted, d.revealing,
  d.stopped_at, d.checked_at, d.next_check_at, d.next_try_at, d.failing_since, d.checks, d.created_at,
  s.slug, s.dns_target, c.not_after`

const source = (sql: Sql) => sql`
  domains d join sites s on s.id = d.site_id left join certificates c on c.name = d.domain`

/** Serialises what counts against the cap; undefined when there is no such organisation. */
export async function lockPlan(sql: Sql, orgId: string): Promise<PlanName | undefined> {
  const [row] = await sql<{ plan: PlanName }[]>`select plan from organisations where id = ${orgId} for update`
  return row?.plan
}

/** Another tenant's site is as absent as a missing one. */
export async function isOwnSite(sql: Sql, orgId: string, siteId: string): Promise<boolean> {
  const rows = await sql`select 1 from sites where id = ${siteId} and org_id = ${orgId} and deleted_at is null`
  return rows.length === 1
}

/** The same, and it stays so until the transaction ends. */
export async function lockOwnSite(sql: Sql, orgId: string, siteId: string): Promise<boolean> {
  const rows = await sql`
    select 1 from sites where id = ${siteId} and org_id = ${orgId} and deleted_at is null for no key update`
  return rows.length === 1
}

/** A pair counts once: its redirecting half is not counted. */
export async function countDomains(sql: Sql, orgId: string): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from domains
      where org_id = ${orgId} and removed_at is null and redirect_to is null`,
  )
  return count
}

/** Names that an organisation has brought since then, also those it has removed again; a pair counts once. */
export async function countDomainsSince(sql: Sql, orgId: string, since: Date): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from domains
      where org_id = ${orgId} and created_at > ${since} and redirect_to is null`,
  )
  return count
}

export async function listDomains(sql: Sql, siteId: string): Promise<DomainRow[]> {
  return sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)}
    where d.site_id = ${siteId} and d.removed_at is null order by d.created_at, d.redirect_to nulls first, d.domain`
}

/** For a change of the site, which is locked: the name may be another account's from one moment to the next. */
export async function lockDomains(sql: Sql, siteId: string): Promise<DomainRow[]> {
  return sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)}
    where d.site_id = ${siteId} and d.removed_at is null order by d.domain for update of d`
}

export async function findDomain(sql: Sql, siteId: string, domain: string): Promise<DomainRow | undefined> {
  const [row] = await sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.site_id = ${siteId} and d.domain = ${domain} and d.removed_at is null`
  return row
}

export async function findById(sql: Sql, id: string): Promise<DomainRow | undefined> {
  const [row] = await sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.id = ${id} and d.removed_at is null`
  return row
}

/**
 * The domain as it is once no other caller can change it; undefined when it is gone. All lock in this order:
 *   1. the site    its slug, its life, and the routes of all of its domains
 *   2. the name    other accounts may have added it, also before any of them holds it
 *   3. the domain  a plan that ends takes the domains without their names
 */
export async function lockDomain(
  sql: Sql,
  { id, site_id, domain }: Pick<DomainRow, 'id' | 'site_id' | 'domain'>,
): Promise<DomainRow | undefined> {
  await sql`select id from sites where id = ${site_id} for no key update`
  await sql`select pg_advisory_xact_lock(hashtextextended(${`domain:${domain}`}, 0))`
  const [row] = await sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.id = ${id} and d.removed_at is null for update of d`
  return row
}

export async function findOwnDomain(sql: Sql, orgId: string, domain: string): Promise<DomainRow | undefined> {
  const [row] = await sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.org_id = ${orgId} and d.domain = ${domain} and d.removed_at is null`
  return row
}

export async function findHolder(sql: Sql, domain: string): Promise<DomainRow | undefined> {
  const [row] = await sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.domain = ${domain} and d.holds and d.removed_at is null`
  return row
}

export async function insertDomain(
  sql: Sql,
  row: {
    id: string
    domain: string
    site_id: string
    org_id: string
    redirect_to: string | null
    reason: DomainReason
    verify_token: string
    is_cname_spent: boolean
    next_check_at: Date
    created_at: Date
  },
): Promise<void> {
  await sql`insert into domains ${sql(row)}`
}

export type DomainChanges = Partial<Omit<DomainRow, 'slug' | 'dns_target' | 'not_after'>>

export async function updateDomain(
  sql: Sql,
  id: string,
  { records, alternative, warnings, ...plain }: DomainChanges,
): Promise<void> {
  const changes = {
    ...plain,
    ...(records === undefined ? {} : { records: sql.json(records.map((line) => ({ ...line }))) }),
    ...(alternative === undefined ? {} : { alternative: alternative === null ? null : sql.json({ ...alternative }) }),
    ...(warnings === undefined ? {} : { warnings: sql.json(warnings) }),
  }
  await sql`update domains set ${sql(changes)} where id = ${id}`
}

/** Has this drop had the name before? */
export async function hadDomain(sql: Sql, siteId: string, domain: string): Promise<boolean> {
  const rows = await sql`
    select 1 from domains where site_id = ${siteId} and domain = ${domain} and removed_at is not null limit 1`
  return rows.length === 1
}

/** Does the domain hold its name, and will it until the transaction ends? */
export async function lockHolding(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`select 1 from domains where id = ${id} and holds and removed_at is null for update`
  return rows.length === 1
}

/** The other half of a pair is looked at next. */
export async function hurryPairOf(
  sql: Sql,
  { site_id, domain }: Pick<DomainRow, 'site_id' | 'domain'>,
  now: Date,
): Promise<void> {
  await sql`
    update domains set next_check_at = ${now}
    where site_id = ${site_id} and redirect_to = ${domain} and removed_at is null and stopped_at is null`
}

/** What the edges were told last about these hosts. */
export async function routesAt(sql: Sql, hosts: readonly string[]): Promise<Map<string, RouteRecord>> {
  const rows = await sql<{ host: string; record: RouteRecord }[]>`
    select host, record from routes where host = any(${[...hosts]})`
  return new Map(rows.map(({ host, record }) => [host, record]))
}

/** Where mails about an organisation's domains go. */
export async function ownerEmail(sql: Sql, orgId: string): Promise<string | undefined> {
  const [row] = await sql<{ email: string }[]>`
    select u.email from organisations o join users u on u.id = o.owner_id where o.id = ${orgId}`
  return row?.email
}

export async function removeDomain(sql: Sql, id: string, now: Date): Promise<void> {
  await sql`update domains set removed_at = ${now}, holds = false, wanted = false, revealing = false, next_check_at = null where id = ${id}`
}

/** Hands out due domains to one control at a time: the lease keeps others off while the check runs. */
export async function takeDueDomains(sql: Sql, now: Date, leaseUntil: Date, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    update domains set next_check_at = ${leaseUntil} where id in (
      select id from domains where removed_at is null and next_check_at <= ${now}
      order by next_check_at limit ${limit} for update skip locked)
    returning id`
  return rows.map((row) => row.id)
}

export async function domainsOfOrganisation(sql: Sql, orgId: string): Promise<DomainRow[]> {
  return sql<DomainRow[]>`
    select ${columns(sql)} from ${source(sql)} where d.org_id = ${orgId} and d.removed_at is null order by d.domain for update of d`
}

export interface CertificateRow {
  name: string
  sealed: string
  not_before: Date
  not_after: Date
  updated_at: Date
}

export async function saveCertificate(sql: Sql, row: Omit<CertificateRow, 'updated_at'>): Promise<void> {
  await sql`
    insert into certificates ${sql(row)} on conflict (name) do update
    set sealed = excluded.sealed, not_before = excluded.not_before, not_after = excluded.not_after, updated_at = now()
    where certificates.sealed <> excluded.sealed`
}

export async function deleteCertificate(sql: Sql, name: string): Promise<void> {
  await sql`delete from certificates where name = ${name}`
}

/** Domains that are due to be looked at. */
export async function checkQueue(sql: Sql, now: Date): Promise<QueueRow> {
  return one(
    await sql<QueueRow[]>`
      select count(*) as length, min(next_check_at) as since from domains
      where removed_at is null and next_check_at <= ${now}`,
  )
}

export async function certificatesAfter(sql: Sql, name: string, limit: number): Promise<CertificateRow[]> {
  return sql<CertificateRow[]>`select * from certificates where name > ${name} order by name limit ${limit}`
}

export async function countEndingCertificates(sql: Sql, before: Date): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*) as count from certificates c join domains d on d.domain = c.name
      where d.wanted and d.removed_at is null and c.not_after < ${before}`,
  ).count
}

export async function wantedDomains(sql: Sql): Promise<Pick<DomainRow, 'domain' | 'org_id'>[]> {
  return sql<Pick<DomainRow, 'domain' | 'org_id'>[]>`
    select domain, org_id from domains where wanted and removed_at is null`
}

/** Wanted, but no certificate of theirs was ever seen here. */
export async function namesWithoutCertificate(sql: Sql): Promise<string[]> {
  const rows = await sql<{ domain: string }[]>`
    select d.domain from domains d left join certificates c on c.name = d.domain
    where d.wanted and d.removed_at is null and c.name is null`
  return rows.map((row) => row.domain)
}

export async function replaceRetries(sql: Sql, states: ReadonlyMap<string, RetryState>): Promise<void> {
  const names = [...states.keys()]
  await sql`delete from certificate_retries where not (name = any(${names}))`
  for (const [name, state] of states) {
    await sql`
      insert into certificate_retries (name, state) values (${name}, ${sql.json(state)})
      on conflict (name) do update set state = excluded.state where certificate_retries.state <> excluded.state`
  }
}

export async function allRetries(sql: Sql): Promise<{ name: string; state: RetryState }[]> {
  return sql<{ name: string; state: RetryState }[]>`select name, state from certificate_retries`
}

export async function saveAccount(sql: Sql, sealed: string): Promise<void> {
  await sql`
    insert into acme_account (sealed) values (${sealed}) on conflict (only_row) do update
    set sealed = excluded.sealed where acme_account.sealed <> excluded.sealed`
}

export async function readAccount(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }[]>`select sealed from acme_account`
  return row?.sealed
}
