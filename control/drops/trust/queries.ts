import type { Sql } from '../../ground/database/sql.ts'
import { routeOfHost } from '../../ground/routing/outbox.ts'

export interface QueueEntry {
  kind: 'review' | 'report'
  id: string
  site_id: string | null
  slug: string | null
  url: string
  title: string
  score: number | null
  reasons: string[]
  detail: string
  created_at: Date
}

export async function insertReview(
  sql: Sql,
  review: { id: string; site_id: string; score: number; created_at: Date },
  reasons: readonly string[],
): Promise<void> {
  await sql`insert into reviews ${sql({ ...review, reasons: sql.json(reasons) })}`
}

export async function insertReport(
  sql: Sql,
  report: {
    id: string
    site_id: string | null
    url: string
    reason: string
    detail: string
    contact: string
    ip: string
    created_at: Date
  },
): Promise<void> {
  await sql`insert into abuse_reports ${sql(report)}`
}

export async function openQueue(sql: Sql, limit: number): Promise<QueueEntry[]> {
  return sql<QueueEntry[]>`
    select 'review' as kind, r.id, s.id as site_id, s.slug, '' as url, s.title, r.score,
           array(select jsonb_array_elements_text(r.reasons)) as reasons, '' as detail, r.created_at
    from reviews r join sites s on s.id = r.site_id where r.resolved_at is null and s.deleted_at is null
    union all
    select 'report', a.id, s.id, s.slug, a.url, coalesce(s.title, ''), null, array[a.reason], a.detail, a.created_at
    from abuse_reports a left join sites s on s.id = a.site_id where a.resolved_at is null
    order by created_at limit ${limit}`
}

export async function resolveEntry(sql: Sql, id: string, resolution: string, now: Date): Promise<boolean> {
  const reviews =
    await sql`update reviews set resolved_at = ${now}, resolution = ${resolution} where id = ${id} and resolved_at is null returning id`
  const reports =
    await sql`update abuse_reports set resolved_at = ${now}, resolution = ${resolution} where id = ${id} and resolved_at is null returning id`
  return reviews.length + reports.length > 0
}

export async function resolveAllOf(sql: Sql, siteId: string, resolution: string, now: Date): Promise<void> {
  await sql`update reviews set resolved_at = ${now}, resolution = ${resolution} where site_id = ${siteId} and resolved_at is null`
  await sql`update abuse_reports set resolved_at = ${now}, resolution = ${resolution} where site_id = ${siteId} and resolved_at is null`
}

export interface FoundSite {
  id: string
  slug: string
  org_id: string | null
  owner_email: string | null
  title: string
  taken_down_at: Date | null
  taken_down_reason: string | null
  deleted_at: Date | null
}

const foundSite = (sql: Sql) =>
  sql`s.id, s.slug, s.org_id, u.email as owner_email, s.title, s.taken_down_at, s.taken_down_reason, s.deleted_at`
const source = (sql: Sql) =>
  sql`sites s left join organisations o on o.id = s.org_id left join users u on u.id = o.owner_id`

export async function lockSiteBySlug(sql: Sql, slug: string): Promise<FoundSite | undefined> {
  const [site] = await sql<
    FoundSite[]
  >`select ${foundSite(sql)} from ${source(sql)} where s.slug = ${slug} and s.deleted_at is null for update of s`
  return site
}

/** The drop that an address leads to: its own, a custom domain, a former slug. */
export async function lockSiteByHost(sql: Sql, host: string): Promise<FoundSite | undefined> {
  const id = await findSiteIdByHost(sql, host)
  if (id === undefined) return undefined
  const [site] = await sql<
    FoundSite[]
  >`select ${foundSite(sql)} from ${source(sql)} where s.id = ${id} and s.deleted_at is null for update of s`
  return site
}

/** False for a name that is known to be nothing: an edge may serve something there all the same. */
export async function leadsSomewhere(sql: Sql, host: string): Promise<boolean> {
  const [row] = await sql`select from (${routeOfHost(sql, host)}) r where record ->> 'kind' <> 'none'`
  return row !== undefined
}

/** By slug, custom domain or account; for staff. */
export async function searchSites(sql: Sql, text: string, limit: number): Promise<FoundSite[]> {
  const like = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
  return sql<FoundSite[]>`
    select ${foundSite(sql)} from ${source(sql)}
    where s.slug ilike ${like} or u.email ilike ${like} or s.id = ${text}
       or exists (select 1 from domains d where d.site_id = s.id and d.domain ilike ${like})
    order by s.created_at desc limit ${limit}`
}

export async function setTakenDown(sql: Sql, siteId: string, at: Date | null, reason: string | null): Promise<void> {
  await sql`update sites set taken_down_at = ${at}, taken_down_reason = ${reason} where id = ${siteId}`
}

export async function findSiteIdByHost(sql: Sql, host: string): Promise<string | undefined> {
  const [row] = await sql<{ site_id: string }[]>`
    select coalesce(r.record ->> 'site_id', t.record ->> 'site_id') as site_id
    from (${routeOfHost(sql, host)}) r
      left join routes t on r.record ->> 'kind' in ('alias', 'redirect') and t.host = r.record ->> 'to'`
  return row?.site_id ?? undefined
}
