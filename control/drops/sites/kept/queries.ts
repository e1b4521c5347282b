import { type Sql } from '../../../ground/database/sql.ts'

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

/** The blobs that are kept from here on; all others of the site end, and are collected a day later. */
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
      where site_id = ${siteId} and ended_at is null and hash not in (select hash from needed))
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

export async function countKeptDue(sql: Sql, now: Date): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from sites where kept_ends_at <= ${now} and deleted_at is null`
  return row?.count ?? 0
}
