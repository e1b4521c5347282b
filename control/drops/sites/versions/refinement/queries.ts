/** Versions that wait to be compressed, quickly first and then harder. */
import { one, type Sql } from '../../../../ground/database/sql.ts'
import type { QueueRow } from '../../../../ground/watching/queue.ts'
import type { Recompressed } from '../../../publishing/contract.ts'

export interface UnrefinedVersion {
  id: string
  site_id: string
  number: number
  manifest_hash: string
  /** Manifest of the newest version of the site that was refined. */
  refined_hash: string | null
}

/** A retained version with files that have no variants yet; see `byUrgency`. */
export function nextUncompressed(sql: Sql, now: Date): Promise<UnrefinedVersion | undefined> {
  return byUrgency(sql, now, sql`v.compressed_at is null`)
}

/** Versions whose files are not compressed yet and could be now. */
export async function uncompressedQueue(sql: Sql, now: Date): Promise<QueueRow> {
  return one(
    await sql<QueueRow[]>`
      select count(*) as length, min(greatest(created_at, refine_after)) as since from versions
      where refined_at is null and dropped_at is null and compressed_at is null
        and (refine_after is null or refine_after <= ${now})`,
  )
}

/** A retained version from before that time whose files are still compressed the quick way; see `byUrgency`. */
export function nextUnrefined(sql: Sql, now: Date, before: Date): Promise<UnrefinedVersion | undefined> {
  return byUrgency(sql, now, sql`v.compressed_at is not null and v.created_at <= ${before}`)
}

/** How many of those that wait are looked at first: nearly always one of them is live. */
const NEWEST = 50

/**
 * What visitors see comes first, superseded versions come last, and of both the newest is first. A live one among the
 * newest is the newest live one, however many wait behind it; only without one all are looked at.
 */
async function byUrgency(sql: Sql, now: Date, condition: ReturnType<Sql>): Promise<UnrefinedVersion | undefined> {
  const urgent = (limit: ReturnType<Sql>) => sql<(UnrefinedVersion & { is_live: boolean })[]>`
    select v.id, v.site_id, v.number, v.manifest_hash,
      ((select s.live_version_id from sites s where s.id = v.site_id) = v.id) is true as is_live,
      (select r.manifest_hash from versions r
       where r.site_id = v.site_id and r.refined_at is not null and r.dropped_at is null
       order by r.number desc limit 1) as refined_hash
    from (
      select v.id, v.site_id, v.number, v.manifest_hash, v.created_at from versions v
      where v.refined_at is null and v.dropped_at is null and ${condition}
        and (v.refine_after is null or v.refine_after <= ${now})
      order by v.created_at desc ${limit}) v
    order by is_live desc, v.created_at desc limit 1`
  const [newest] = await urgent(sql`limit ${NEWEST}`)
  const [found] = newest === undefined || newest.is_live ? [newest] : await urgent(sql``)
  return found
}

/** One that fails keeps no other waiting. */
export async function postponeRefinement(sql: Sql, versionId: string, until: Date): Promise<void> {
  await sql`update versions set refine_after = ${until} where id = ${versionId}`
}

/**
 * The blobs of the old manifest stay as long as the version, since an edge may still serve from it, and no longer: the next
 * version takes over those of the new one. A version that another control has compressed meanwhile stays as that one left it.
 * The site is locked.
 */
export async function markRefined(
  sql: Sql,
  { id, site_id, number, manifest_hash }: UnrefinedVersion,
  step: 'compressed_at' | 'refined_at',
  { isWhole, smaller }: Recompressed,
): Promise<void> {
  const hash = smaller?.manifestHash ?? manifest_hash
  const marked = await sql`
    update versions set ${isWhole ? sql`${sql(step)} = now(),` : sql``} manifest_hash = ${hash},
      spans_of = case when spans_of = manifest_hash then ${hash} else spans_of end
    where id = ${id} and manifest_hash = ${manifest_hash} returning id`
  if (!smaller || marked.length === 0) return
  await sql`
    with ended as (
      update site_blobs b set to_version = ${number} from sites s
      where b.site_id = ${site_id} and b.to_version is null and b.hash = any(${smaller.gone as string[]}::text[])
        and s.id = b.site_id and s.next_version_number = ${number + 1}),
    -- What a step before it had ended.
    reopened as (
      update site_blobs b set to_version = null from sites s
      where b.site_id = ${site_id} and b.to_version = ${number} and b.hash = any(${smaller.added as string[]}::text[])
        and s.id = b.site_id and s.next_version_number = ${number + 1})
    insert into site_blobs (site_id, hash, from_version, to_version)
    select ${site_id}, needed.hash, ${number}, case when s.next_version_number = ${number + 1} then null else ${number}::integer end
    from unnest(${smaller.added as string[]}::text[]) as needed (hash) join sites s on s.id = ${site_id}
    where not exists (
      select from site_blobs b where b.site_id = ${site_id} and b.hash = needed.hash
      and ${number} between b.from_version and coalesce(b.to_version, ${number}))`
}
