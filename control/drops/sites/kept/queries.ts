import { type Sql } from '../../../ground/database/sql.ts'
import type { DroppedVersion } from '../queries.ts'

/** The columns of a site that say what is served beside its live version. */
export interface ServedColumns {
  served_manifest_hash: string | null
  served_for: string | null
  kept_files: number
  kept_bytes: number
  kept_until: Date | null
  kept_ends_at: Date | null
}

export async function setServed(sql: Sql, siteId: string, columns: ServedColumns): Promise<void> {
  await sql`update sites set ${sql({ ...columns })} where id = ${siteId}`
}

/** The blobs that are kept from here on; all others of the site but its card end, and are collected a day later. */
export async function setKeptBlobs(
  sql: Sql,
  siteId: string,
  sizes: ReadonlyMap<string, number>,
  now: Date,
): Promise<void> {
  const hashes = [...sizes.keys()]
  await sql`
    with needed as materialized (
      select * from unnest(${hashes}::text[], ${[...sizes.values()]}::bigint[]) as n (hash, size)),
    ended as (
      update kept_blobs set ended_at = ${now}
      where site_id = ${siteId} and ended_at is null and hash not in (select hash from needed)
        and hash is distinct from (select card_hash from sites where id = ${siteId}))
    insert into kept_blobs (site_id, hash, size) select ${siteId}, hash, size from needed
    on conflict (site_id, hash) do update set ended_at = null, size = excluded.size
    where kept_blobs.ended_at is not null or kept_blobs.size <> excluded.size`
}

export async function deleteEndedKeptBlobs(sql: Sql, now: Date): Promise<void> {
  await sql`delete from kept_blobs where ended_at <= ${now}::timestamptz - interval '1 day'`
}

/** A site whose next kept file is due to go, locked. */
export async function lockKeptDue(sql: Sql, now: Date): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select id from sites where kept_ends_at <= ${now} and deleted_at is null
    order by kept_ends_at limit 1 for update skip locked`
  return row?.id
}

export async function setKeptEnd(sql: Sql, siteId: string, endsAt: Date): Promise<void> {
  await sql`update sites set kept_ends_at = ${endsAt} where id = ${siteId}`
}

export async function countKeptDue(sql: Sql, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from sites where kept_ends_at <= ${now} and deleted_at is null`
  return row?.count ?? 0
}

export interface PreviewRow {
  site_id: string
  name: string
  version_id: string
  published_at: Date
  expires_at: Date
}

export interface ListedPreview extends PreviewRow {
  version_number: number
  file_count: number
  byte_size: number
  message: string
}

/** Newest first. */
export async function listPreviews(sql: Sql, siteId: string): Promise<ListedPreview[]> {
  return sql<ListedPreview[]>`
    select p.site_id, p.name, p.version_id, p.published_at, p.expires_at,
      v.number as version_number, v.file_count, v.byte_size, v.message
    from previews p join versions v on v.id = p.version_id
    where p.site_id = ${siteId} and v.dropped_at is null order by p.published_at desc, p.name`
}

export async function findPreview(sql: Sql, siteId: string, name: string): Promise<PreviewRow | undefined> {
  const [row] = await sql<PreviewRow[]>`
    select site_id, name, version_id, published_at, expires_at from previews where site_id = ${siteId} and name = ${name}`
  return row
}

/** Moves the name, or takes it. */
export async function setPreview(sql: Sql, preview: PreviewRow): Promise<void> {
  await sql`
    insert into previews ${sql(preview)} on conflict (site_id, name) do update
    set version_id = excluded.version_id, published_at = excluded.published_at, expires_at = excluded.expires_at`
}

/** Gives the name to a version, unless it has been taken. */
export async function addPreview(sql: Sql, preview: PreviewRow): Promise<void> {
  await sql`insert into previews ${sql(preview)} on conflict (site_id, name) do nothing`
}

export async function deletePreview(sql: Sql, { site_id, name }: PreviewRow): Promise<void> {
  await sql`delete from previews where site_id = ${site_id} and name = ${name}`
}

/** Drops a version that lost a name, unless it was live or has another name; resolves to it if it went. */
export async function dropUnnamed(sql: Sql, versionId: string, now: Date): Promise<DroppedVersion | undefined> {
  const [row] = await sql<DroppedVersion[]>`
    update versions set dropped_at = ${now}
    where id = ${versionId} and is_preview and dropped_at is null
      and not exists (select from previews where version_id = ${versionId})
    returning id, byte_size`
  return row
}

export async function lockExpiredPreview(sql: Sql, now: Date): Promise<PreviewRow | undefined> {
  const [row] = await sql<PreviewRow[]>`
    select p.site_id, p.name, p.version_id, p.published_at, p.expires_at
    from previews p join sites s on s.id = p.site_id
    where p.expires_at <= ${now} order by p.expires_at limit 1 for update of s, p skip locked`
  return row
}

export async function countExpiredPreviews(sql: Sql, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }[]>`select count(*)::int as count from previews where expires_at <= ${now}`
  return row?.count ?? 0
}

/** Looks at the first of all only: ids are given out in the order of time, so no index on the time is needed. */
export async function deletePublishesBefore(sql: Sql, before: Date, limit: number): Promise<number> {
  const { count } = await sql`
    delete from publishes p using (select id, at from publishes order by id limit ${limit}) oldest
    where p.id = oldest.id and oldest.at < ${before}`
  return count
}

/** The drop that was deleted first, if that was before then. */
export async function lockDeletedBefore(sql: Sql, before: Date): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select id from sites where deleted_at < ${before} order by deleted_at limit 1 for update skip locked`
  return row?.id
}

/** Hosts at which the edges still say that this drop is gone: no other drop has taken the name. */
export async function buriedHosts(sql: Sql, siteId: string, hostOf: (slug: string) => string): Promise<string[]> {
  const slugs = await sql<{ slug: string }[]>`select slug from slugs where site_id = ${siteId}`
  const hosts = slugs.map(({ slug }) => hostOf(slug))
  const rows = await sql<{ host: string }[]>`
    select host from routes where host = any(${hosts}) and record ->> 'kind' <> 'none' order by host`
  return rows.map(({ host }) => host)
}

/** Tables whose rows do not go with their drop by themselves, those first that others refer to. */
export const HELD_BY_DROP = [
  'thread_images',
  'thread_messages',
  'threads',
  'access_requests',
  'viewer_invitations',
  'viewer_codes',
  'admissions',
  'guest_links',
  'viewers',
  'publishers',
  'domains',
  'publishes',
  'versions',
  'slugs',
] as const

export async function deleteDrop(sql: Sql, siteId: string): Promise<void> {
  for (const table of HELD_BY_DROP) await sql`delete from ${sql(table)} where site_id = ${siteId}`
  await sql`delete from sites where id = ${siteId}`
}
