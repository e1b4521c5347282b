import type { PlanName } from '../../ground/terms/plans.ts'
import type { Actor, WorkflowRun } from '../../ground/actor.ts'
import { one, type Sql } from '../../ground/database/sql.ts'
import type { VisibilityPolicy } from '../../people/organisations/rules.ts'
import type { Withheld } from '../publishing/contract.ts'
import type { PublishReport, Purge } from './schemas.ts'
import type { CappedSite, ClockColumns, HeldSlug, SiteFacts, SpannedVersion } from './rules.ts'

const siteFacts = (sql: Sql) => sql`
  s.id, s.org_id, s.slug, s.name, s.title, s.password_hash, s.password_generation, s.keep_old_files_days, s.previews,
  s.threads_visible, s.thread_mails,
  s.served_manifest_hash, s.served_for, s.kept_files, s.kept_bytes, s.kept_until, s.kept_ends_at,
  s.access_until, s.access_requests, s.admission_ms, s.llms_txt, s.ai, s.card, s.card_source, s.card_hash, s.card_size, s.analytics, s.spa_fallback,
  s.in_gallery, s.stays_live, s.live_version_id, s.next_version_number, s.expires_at, s.expired_at, s.clock_started_at, s.paused_at, s.taken_down_at,
  s.taken_down_reason, s.deleted_at, s.dns_target, s.created_at, s.updated_at, s.published_at,
  coalesce(o.plan, 'anonymous') as plan, coalesce(o.visibility_policy, 'open') as visibility_policy, u.email_verified_at is not null as owner_verified,
  u.last_sign_in_at as owner_seen_at`

const siteSource = (sql: Sql) => sql`
  sites s left join organisations o on o.id = s.org_id left join users u on u.id = o.owner_id`

export async function findSite(sql: Sql, siteId: string): Promise<SiteFacts | undefined> {
  const [site] = await sql<SiteFacts[]>`select ${siteFacts(sql)} from ${siteSource(sql)} where s.id = ${siteId}`
  return site
}

/** Whoever's it is. */
export async function findSiteBySlug(sql: Sql, slug: string): Promise<SiteFacts | undefined> {
  const [site] = await sql<SiteFacts[]>`
    select ${siteFacts(sql)} from ${siteSource(sql)} where s.slug = ${slug} and s.deleted_at is null`
  return site
}

/** Another tenant's site is as absent as a missing one. */
export async function findOwnSite(sql: Sql, orgId: string, siteId: string): Promise<SiteFacts | undefined> {
  const [site] = await sql<SiteFacts[]>`
    select ${siteFacts(sql)} from ${siteSource(sql)} where s.id = ${siteId} and s.org_id = ${orgId} and s.deleted_at is null`
  return site
}

export async function findOrganisationOf(sql: Sql, siteId: string): Promise<string | undefined> {
  const [site] = await sql<{ orgId: string | null }[]>`
    select org_id as "orgId" from sites where id = ${siteId} and deleted_at is null`
  return site?.orgId ?? undefined
}

/** Locks the organisation's own site of that slug; no other site gets it meanwhile. */
export async function lockOwnSlug(sql: Sql, orgId: string, slug: string): Promise<string | undefined> {
  const [site] = await sql<{ id: string }[]>`
    select id from sites where slug = ${slug} and org_id = ${orgId} and deleted_at is null for update`
  return site?.id
}

export async function findOwnSlug(sql: Sql, orgId: string, slug: string): Promise<string | undefined> {
  const [site] = await sql<{ id: string }[]>`
    select id from sites where slug = ${slug} and org_id = ${orgId} and deleted_at is null`
  return site?.id
}

export async function listSites(sql: Sql, orgId: string): Promise<SiteFacts[]> {
  return sql<SiteFacts[]>`
    select ${siteFacts(sql)} from ${siteSource(sql)} where s.org_id = ${orgId} and s.deleted_at is null order by s.created_at desc, s.id desc`
}

export async function listSitesById(sql: Sql, orgId: string, siteIds: readonly string[]): Promise<SiteFacts[]> {
  return sql<SiteFacts[]>`
    select ${siteFacts(sql)} from unnest(${siteIds as string[]}::text[]) as wanted (id)
      join sites s on s.id = wanted.id join organisations o on o.id = s.org_id left join users u on u.id = o.owner_id
    where s.org_id = ${orgId} and s.deleted_at is null`
}

/** The organisations are locked, so that no drop comes to them meanwhile. */
export async function siteIdsOfOwner(sql: Sql, userId: string): Promise<string[]> {
  await sql`select id from organisations where owner_id = ${userId} order by id for no key update`
  const rows = await sql<{ id: string }[]>`
    select s.id from sites s join organisations o on o.id = s.org_id where o.owner_id = ${userId} and s.deleted_at is null order by s.id`
  return rows.map((row) => row.id)
}

/** Serialises everything that counts against an organisation's caps; returns its plan, or nothing once it is deleted. */
export async function lockOrganisation(sql: Sql, orgId: string): Promise<PlanName | undefined> {
  const rows = await sql<{ id: string; plan: PlanName }[]>`
    select id, plan from organisations where id in (${sharingPlan(sql, orgId)}) and deleted_at is null
    order by id for update`
  return rows.find(({ id }) => id === orgId)?.plan
}

/** Organisations whose drops and bytes count together: the free plan is one per person, for all free ones that they own. */
const sharingPlan = (sql: Sql, orgId: string) => sql`
  select o.id from organisations o join organisations this on this.id = ${orgId}
  where o.id = this.id
    or (this.plan = 'free' and o.plan = 'free' and o.owner_id = this.owner_id and o.deleted_at is null)`

/** What its organisation allows, for a drop that is about to be made. */
export async function findPolicy(sql: Sql, orgId: string): Promise<VisibilityPolicy> {
  const { policy } = one(
    await sql<{ policy: VisibilityPolicy }[]>`
      select visibility_policy as policy from organisations where id = ${orgId}`,
  )
  return policy
}

/** Orders the changes of one site, and with them what is published of it. Organisations are locked before sites. */
export async function lockSite(sql: Sql, siteId: string): Promise<void> {
  await sql`select id from sites where id = ${siteId} for update`
}

/** Those that take a place among the active drops: what has expired or was taken down does not, nor what is paused. */
const takesPlace = (sql: Sql, now: Date) => sql`
  deleted_at is null and taken_down_at is null and expired_at is null and (expires_at is null or expires_at > ${now})`

export async function countActiveSites(sql: Sql, orgId: string, now: Date): Promise<number> {
  const { count } = one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from sites
      where org_id in (${sharingPlan(sql, orgId)}) and paused_at is null and ${takesPlace(sql, now)}`,
  )
  return count
}

export async function listForCap(sql: Sql, orgId: string, now: Date): Promise<CappedSite[]> {
  const rows = await sql<{ id: string; paused: boolean; empty: boolean; chosen: boolean; published_at: Date }[]>`
    select id, paused_at is not null as paused, live_version_id is null as empty, stays_live as chosen,
      coalesce(published_at, created_at) as published_at
    from sites where org_id = ${orgId} and ${takesPlace(sql, now)} order by id desc`
  return rows.map(({ published_at, ...row }) => ({ ...row, publishedAt: published_at.getTime() }))
}

export async function setPaused(sql: Sql, siteIds: readonly string[], pausedAt: Date | null): Promise<void> {
  await sql`update sites set paused_at = ${pausedAt}, updated_at = now() where id = any(${siteIds as string[]})`
}

/** These, and no others of the organisation. */
export async function setChosen(sql: Sql, orgId: string, siteIds: readonly string[]): Promise<void> {
  await sql`
    update sites set stays_live = (id = any(${siteIds as string[]})) where org_id = ${orgId} and deleted_at is null
      and stays_live <> (id = any(${siteIds as string[]}))`
}

/** The job that tells owners of clocks looks at this one as soon as it can. */
export async function setClock(sql: Sql, siteId: string, clock: ClockColumns, now: Date): Promise<void> {
  await sql`update sites set ${sql({ ...clock, next_notice_at: now })} where id = ${siteId}`
}

export async function insertSite(
  sql: Sql,
  site: {
    id: string
    org_id: string | null
    slug: string
    name: string
    dns_target: string
    expires_at: Date | null
    password_hash: string | null
    access_until: Date | null
    anonymous_id: string | null
    anonymous_network: string | null
    claim_hash: string | null
    created_at: Date
  } & Partial<Pick<SiteFacts, 'live_version_id' | 'next_version_number' | 'title' | 'published_at'>>,
): Promise<void> {
  await sql`insert into sites ${sql({ ...site, updated_at: site.created_at })}`
}

/**
 * Takes a slug for a site: free, cooled down, or the site's own former one. False when another site holds it.
 * One statement, so that of many racing callers exactly one wins.
 */
export async function takeSlug(sql: Sql, slug: string, siteId: string, now: Date): Promise<boolean> {
  return (await takingSlug(sql, slug, siteId, now)).length === 1
}

/** The statement of `takeSlug`, which is part of another one where a drop comes to be. */
export function takingSlug(sql: Sql, slug: string, siteId: string, now: Date) {
  return sql`
    insert into slugs (slug, site_id, kind) values (${slug}, ${siteId}, 'current')
    on conflict (slug) do update set site_id = excluded.site_id, kind = 'current', free_at = null
    where slugs.kind <> 'current' and (slugs.free_at <= ${now} or slugs.site_id = excluded.site_id)
    returning slug`
}

/** Those of them that the site could not take; `siteId` is undefined for a new one. */
export async function listTakenSlugs(
  sql: Sql,
  slugs: readonly string[],
  siteId: string | undefined,
  now: Date,
): Promise<string[]> {
  const rows = await sql<{ slug: string }[]>`
    select slug from slugs where slug in ${sql(slugs as string[])}
      and site_id is distinct from ${siteId ?? null} and (kind = 'current' or free_at > ${now})`
  return rows.map(({ slug }) => slug)
}

export async function releaseSlug(sql: Sql, slug: string, kind: 'former' | 'tombstone', freeAt: Date): Promise<void> {
  await sql`update slugs set kind = ${kind}, free_at = ${freeAt} where slug = ${slug}`
}

/** A deleted site's other slugs are gone with it. Writing all of them keeps them from being taken until the commit. */
export async function buryFormerSlugs(sql: Sql, siteId: string): Promise<void> {
  await sql`update slugs set kind = 'tombstone' where site_id = ${siteId} and kind <> 'current'`
}

export async function slugsOf(sql: Sql, siteId: string): Promise<HeldSlug[]> {
  return sql<HeldSlug[]>`select slug, kind, free_at from slugs where site_id = ${siteId}`
}

/** These redirect no longer; returns those that were not taken meanwhile. */
export async function retireSlugs(sql: Sql, siteId: string, slugs: readonly string[]): Promise<string[]> {
  const rows = await sql<{ slug: string }[]>`
    update slugs set kind = 'tombstone' where slug = any(${slugs as string[]}) and site_id = ${siteId} and kind = 'former'
    returning slug`
  return rows.map((row) => row.slug)
}

/** What a change may set; the clock, places and takedowns of a site have functions of their own. */
export type SiteChanges = Partial<
  Pick<
    SiteFacts,
    | 'name'
    | 'slug'
    | 'title'
    | 'analytics'
    | 'spa_fallback'
    | 'in_gallery'
    | 'live_version_id'
    | 'next_version_number'
    | 'published_at'
    | 'password_hash'
    | 'password_generation'
    | 'keep_old_files_days'
    | 'previews'
    | 'threads_visible'
    | 'thread_mails'
    | 'access_until'
    | 'access_requests'
    | 'admission_ms'
    | 'llms_txt'
    | 'ai'
    | 'card'
  >
>

export async function updateSite(sql: Sql, siteId: string, changes: SiteChanges, now: Date): Promise<void> {
  const { analytics, ...columns } = changes
  const documents = analytics === undefined ? {} : { analytics: analytics === null ? null : sql.json(analytics) }
  await sql`update sites set ${sql({ ...columns, ...documents, updated_at: now })} where id = ${siteId}`
}

export async function markDeleted(sql: Sql, siteId: string, now: Date): Promise<void> {
  await sql`update sites set deleted_at = ${now}, updated_at = ${now}, live_version_id = null, password_hash = null, claim_hash = null, in_gallery = false where id = ${siteId}`
  await sql`update versions set dropped_at = ${now} where site_id = ${siteId} and dropped_at is null`
  await sql`delete from previews where site_id = ${siteId}`
  // Nobody can finish them, and they would count as stored until their time is over.
  await sql`delete from uploads where site_id = ${siteId}`
}

export async function retainedVersions(sql: Sql, siteId: string): Promise<SpannedVersion[]> {
  return sql<SpannedVersion[]>`
    select id, number, manifest_hash, spans_of from versions
    where site_id = ${siteId} and dropped_at is null order by number desc`
}

export interface VersionRow {
  id: string
  site_id: string
  number: number
  manifest_hash: string
  byte_size: number
  file_count: number
  message: string
  title: string
  report: unknown
  created_at: Date
  created_by_email: string | null
  /** Published for a named preview, and never live. */
  is_preview: boolean
  source: WorkflowRun | null
}

export async function listVersions(sql: Sql, siteId: string): Promise<VersionRow[]> {
  return sql<VersionRow[]>`
    select v.id, v.site_id, v.number, v.manifest_hash, v.byte_size, v.file_count, v.message, v.title, v.report, v.created_at, v.is_preview, v.source,
      coalesce(u.typed_email, u.email) as created_by_email
    from versions v left join users u on u.id = v.created_by
    where v.site_id = ${siteId} and v.dropped_at is null order by v.number desc`
}

export interface DroppedVersion {
  readonly id: string
  readonly byte_size: number
}

/** Those among which the plan's number of versions is kept. A preview joins them when it goes live. */
const isKept = (sql: Sql, siteId: string) => sql`site_id = ${siteId} and dropped_at is null and not is_preview`

/** The oldest that may go: what the name of a preview shows stays as long as the name does. */
const oldestKept = (sql: Sql, siteId: string, live: string | null) => sql`
  select id from versions v where ${isKept(sql, siteId)} and id is distinct from ${live}
    and not exists (select from previews p where p.site_id = v.site_id and p.version_id = v.id)
  order by number limit 1`

/**
 * A version has gone live, `live`, that was not there before or was a preview: the oldest goes if there are more than
 * `keep` now. One at most, so that what a larger plan kept is not lost at the first upload after it. Returns the bytes
 * that went with it.
 */
export async function dropOldestVersion(
  sql: Sql,
  siteId: string,
  { keep, live }: { keep: number; live: string },
  now: Date,
): Promise<DroppedVersion | undefined> {
  const [row] = await sql<DroppedVersion[]>`
    update versions set dropped_at = ${now} where id = (${oldestKept(sql, siteId, live)})
      and (select count(*) from versions where ${isKept(sql, siteId)}) > ${keep}
    returning id, byte_size`
  return row
}

/** Every retained version but these; resolves to those that went. */
export async function dropOlderVersions(
  sql: Sql,
  siteId: string,
  except: readonly string[],
  now: Date,
): Promise<DroppedVersion[]> {
  return sql<DroppedVersion[]>`
    update versions set dropped_at = ${now}
    where site_id = ${siteId} and dropped_at is null and id <> all(${except as string[]}) returning id, byte_size`
}

/** What is known of a publish only once it is in place. */
export async function setReport(sql: Sql, versionId: string, report: PublishReport): Promise<void> {
  await sql`update versions set report = ${sql.json(report)} where id = ${versionId}`
}

/** What a version withheld because of its content; nothing of one that was made before that was remembered. */
export async function withheldOf(sql: Sql, versionId: string): Promise<Withheld> {
  const [row] = await sql<{ paths: string[] | null; contents: string[] | null }[]>`
    select withheld as paths, withheld_contents as contents from versions where id = ${versionId}`
  return { paths: row?.paths ?? [], contents: row?.contents ?? [] }
}

/** It was live: from here on it counts like any other. Resolves to whether it was a preview until now. */
export async function markWasLive(sql: Sql, versionId: string): Promise<boolean> {
  const { count } = await sql`update versions set is_preview = false where id = ${versionId} and is_preview`
  return count > 0
}

export async function markPreview(sql: Sql, versionId: string): Promise<void> {
  await sql`update versions set is_preview = true where id = ${versionId}`
}

export async function dropVersion(sql: Sql, versionId: string, now: Date): Promise<void> {
  await sql`update versions set dropped_at = ${now} where id = ${versionId}`
}

/** What was dropped a moment ago for a version that is taken back: garbage collection waits longer than that. */
export async function retainAgain(sql: Sql, versionId: string): Promise<void> {
  await sql`update versions set dropped_at = null where id = ${versionId}`
}

/** The bytes that the next publish drops: of the preview whose name it takes, of all that it purges, or of the oldest version. */
export async function bytesGoing(
  sql: Sql,
  siteId: string,
  { keep, purge, preview }: { keep: number; purge: Purge | undefined; preview: string | undefined },
): Promise<number> {
  if (preview === undefined && purge === undefined) return oldestBytes(sql, siteId, keep)
  const isNamed = (only: ReturnType<Sql>) => sql`exists (select from previews p where p.version_id = v.id and ${only})`
  const isGoing =
    preview === undefined
      ? sql`${purge === 'all'} or not ${isNamed(sql`true`)}`
      : sql`v.is_preview and ${isNamed(sql`p.name = ${preview}`)} and not ${isNamed(sql`p.name <> ${preview}`)}`
  const { bytes } = one(
    await sql<{ bytes: number }[]>`
      select coalesce(sum(v.byte_size), 0)::bigint as bytes from versions v
      where v.site_id = ${siteId} and v.dropped_at is null and (${isGoing})`,
  )
  return bytes
}

/** 0 while the next publish keeps all of them. */
async function oldestBytes(sql: Sql, siteId: string, keep: number): Promise<number> {
  const [row] = await sql<{ byte_size: number }[]>`
    select byte_size from versions where id = (${oldestKept(sql, siteId, null)})
      and (select count(*) from versions where ${isKept(sql, siteId)}) >= ${keep}`
  return row?.byte_size ?? 0
}

/** What an organisation and those that share its plan store, in bytes. */
export interface StoredBytes {
  readonly versions: number
  /** Files of former versions that no retained version of their site has, each content once. */
  readonly kept: number
}

/** `exceptKeptOf`: a site whose kept files are about to be decided anew. */
export async function storedBytes(sql: Sql, orgId: string, exceptKeptOf = ''): Promise<StoredBytes> {
  return one(
    await sql<StoredBytes[]>`
      select (
        select coalesce(sum(v.byte_size), 0)::bigint from versions v join sites s on s.id = v.site_id
        where s.org_id in (${sharingPlan(sql, orgId)}) and s.deleted_at is null and v.dropped_at is null) as versions, (
        select coalesce(sum(size), 0)::bigint from (
          select distinct k.hash, k.size from kept_blobs k join sites s on s.id = k.site_id
          where s.org_id in (${sharingPlan(sql, orgId)}) and s.deleted_at is null and k.ended_at is null
            and k.size > 0 and k.site_id <> ${exceptKeptOf}
            and not exists (
              select from site_blobs b join versions v on v.site_id = b.site_id
                and v.number between b.from_version and coalesce(b.to_version, v.number)
              where b.site_id = k.site_id and b.hash = k.hash and v.dropped_at is null)) counted) as kept`,
  )
}

/** How many uploads are under way, and the bytes of their pieces that no kept version has. */
export interface UnderWay {
  readonly uploads: number
  readonly bytes: number
}

/**
 * What an organisation and those that share its plan are sending: lists of files and single files alike, each content once. An upload with nothing left
 * to publish does not count. The pieces `except` are left out, for a question about an upload that names them itself.
 */
export async function uploadsUnderWay(
  sql: Sql,
  orgId: string,
  now: Date,
  except: readonly string[] = [],
): Promise<UnderWay> {
  return one(
    await sql<UnderWay[]>`
      with pieces as (
        select u.id, b.hash, b.size from uploads u join sites s on s.id = u.site_id join upload_blobs b on b.upload_id = u.id
        where s.org_id in (${sharingPlan(sql, orgId)}) and u.expires_at > ${now}
        union all
        select id, hash, size from content_uploads
        where org_id in (${sharingPlan(sql, orgId)}) and expires_at > ${now} and used_at is null),
      unpublished as (
        select * from pieces p where p.hash is null or not exists (
          select from site_blobs b join sites s on s.id = b.site_id
          join versions v on v.site_id = b.site_id and v.number between b.from_version and coalesce(b.to_version, v.number)
          where b.hash = p.hash and s.org_id in (${sharingPlan(sql, orgId)}) and v.dropped_at is null))
      select count(distinct id)::int as uploads, coalesce((
        select sum(size) from (select distinct hash, size from unpublished
          where hash is not null and hash <> all(${except as string[]}::text[])) counted), 0)::bigint as bytes
      from unpublished`,
  )
}

export async function recordPublish(
  sql: Sql,
  publish: { site_id: string; version_id: string; kind: 'upload' | 'promote'; user_id: string | null; at: Date },
): Promise<void> {
  await sql`insert into publishes ${sql(publish)}`
}

export interface PromotionRow {
  readonly version_id: string
  readonly at: Date
  readonly by: string | null
  /** The version that it took the place of; null when nothing was live. */
  readonly from_number: number | null
}

/** When a version that was there already was made live again, newest first. */
export async function listPromotions(sql: Sql, siteId: string, limit: number): Promise<PromotionRow[]> {
  return sql<PromotionRow[]>`
    select p.version_id, p.at, coalesce(u.typed_email, u.email) as by, p.from_number
    from (
      select publishes.*, lag(v.number) over (order by publishes.id) as from_number
      from publishes left join versions v on v.id = publishes.version_id where publishes.site_id = ${siteId}) p
    left join users u on u.id = p.user_id
    where p.kind = 'promote' order by p.id desc limit ${limit}`
}

export async function viewsSince(sql: Sql, siteIds: readonly string[], day: string): Promise<Map<string, number>> {
  const rows = await sql<{ site_id: string; count: number }[]>`
    select site_id, sum(count)::bigint as count from views where site_id = any(${siteIds as string[]}) and day > ${day} group by site_id`
  return new Map(rows.map((row) => [row.site_id, row.count]))
}

export async function dailyViews(sql: Sql, siteId: string, fromDay: string): Promise<{ day: string; count: number }[]> {
  return sql<{ day: string; count: number }[]>`
    select to_char(day, 'YYYY-MM-DD') as day, count from views where site_id = ${siteId} and day >= ${fromDay} order by day`
}

/**
 * Those of the hashes that a retained version of the organisation already names: of the drops that the credential reaches,
 * since one for a drop must not ask what others hold.
 */
export async function ownBlobs(
  sql: Sql,
  { orgId, reach }: Pick<Actor, 'orgId' | 'reach'>,
  hashes: readonly string[],
): Promise<Set<string>> {
  const among = (reach.sites as string[] | undefined) ?? null
  const rows = await sql<{ hash: string }[]>`
    select hash from unnest(${hashes as string[]}::text[]) as wanted (hash) where exists (
      select from site_blobs b join sites s on s.id = b.site_id
      join versions v on v.site_id = b.site_id and v.number between b.from_version and coalesce(b.to_version, v.number)
      where b.hash = wanted.hash and s.org_id = ${orgId} and (${among}::text[] is null or s.id = any(${among}::text[]))
        and v.dropped_at is null)`
  return new Set(rows.map((row) => row.hash))
}

/**
 * Those of the hashes that a retained version or an open upload needs. A version dropped within the last day counts:
 * an edge may not have heard of its successor yet, and an upload under way may take over what it knows.
 */
export async function referencedBlobs(sql: Sql, hashes: readonly string[], now: Date): Promise<Set<string>> {
  const rows = await sql<{ hash: string }[]>`
    select hash from unnest(${hashes as string[]}::text[]) as listed (hash) where exists (
      select from site_blobs b
      join versions v on v.site_id = b.site_id and v.number between b.from_version and coalesce(b.to_version, v.number)
      where b.hash = listed.hash and (v.dropped_at is null or v.dropped_at > ${now}::timestamptz - interval '1 day'))
    or exists (
      select from upload_blobs f join uploads u on u.id = f.upload_id
      where f.hash = listed.hash and u.expires_at > ${now})
    or exists (
      select from kept_blobs k
      where k.hash = listed.hash and (k.ended_at is null or k.ended_at > ${now}::timestamptz - interval '1 day'))
    or exists (select from thread_images i where i.hash = listed.hash)`
  return new Set(rows.map((row) => row.hash))
}

/** Those of the hashes that a version or a kept file has named, whatever became of it. */
export async function knownBlobs(sql: Sql, hashes: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ hash: string }[]>`
    select hash from unnest(${hashes as string[]}::text[]) as listed (hash)
    where exists (select from site_blobs b where b.hash = listed.hash)
    or exists (select from kept_blobs k where k.hash = listed.hash)`
  return new Set(rows.map((row) => row.hash))
}

/** When the database was made: its first migration. */
export async function databaseBeganAt(sql: Sql): Promise<Date> {
  return one(await sql<{ at: Date }[]>`select min(applied_at) as at from schema_migrations`).at
}

/** Dropped versions count: their database has known some. */
export async function hasVersions(sql: Sql): Promise<boolean> {
  return one(await sql<{ found: boolean }[]>`select exists (select from versions) as found`).found
}

/**
 * Forgets what only versions needed that were dropped more than a day ago. A span that has not ended stays as long as its
 * site takes versions: a publish that is about to commit may count on it.
 */
export async function deleteEndedSpans(sql: Sql, now: Date): Promise<void> {
  await sql`
    delete from site_blobs b using sites s
    where s.id = b.site_id and (b.to_version is not null or s.deleted_at is not null) and not exists (
      select from versions v
      where v.site_id = b.site_id and v.number between b.from_version and coalesce(b.to_version, v.number)
      and (v.dropped_at is null or v.dropped_at > ${now}::timestamptz - interval '1 day'))`
}
