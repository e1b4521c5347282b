/** The row of a new version, and from which version to which its blobs are needed. */
import { jsonb, type Sql } from '../../../ground/database/sql.ts'
import type { BlobChanges } from '../../publishing/manifest/blob-changes.ts'
import type { VersionRow } from '../queries.ts'
import type { PublishReport } from '../schemas.ts'

export type NewVersion = Omit<VersionRow, 'report' | 'created_by_email' | 'is_preview'> & {
  readonly created_by: string | null
  readonly is_preview?: boolean
  /** Paths that were not published because of their content. */
  readonly withheld?: string[]
  /** Hashes of these files. */
  readonly withheld_contents?: string[]
  readonly compressed_at: Date | null
  readonly refined_at: Date | null
}

function insertingVersion(sql: Sql, version: NewVersion, report: Partial<PublishReport>): ReturnType<Sql> {
  const { source } = version
  const spans_of = version.manifest_hash
  return sql`insert into versions ${sql({ ...version, spans_of, report: sql.json(report), source: source && jsonb(sql, source) })}`
}

/**
 * The newest version of a site that is locked, and the blobs that it needs: the spans of all others end, those of new
 * ones begin.
 */
export async function insertVersion(
  sql: Sql,
  version: NewVersion,
  report: Partial<PublishReport>,
  blobs: readonly string[],
): Promise<void> {
  const { site_id, number } = version
  await sql`
    with version as (${insertingVersion(sql, version, report)}),
    needed as materialized (select unnest(string_to_array(${blobs.join(',')}, ',')) as hash),
    ended as (
      update site_blobs set to_version = ${number - 1}
      where site_id = ${site_id} and to_version is null and hash not in (select hash from needed))
    insert into site_blobs (site_id, hash, from_version)
    select ${site_id}, hash, ${number} from needed
    where hash not in (select hash from site_blobs where site_id = ${site_id} and to_version is null)`
}

/**
 * The same, told by what changes of the manifest of the newest version before it, whose blobs the spans that have not ended
 * are (`spans_of`).
 */
export async function insertChangedVersion(
  sql: Sql,
  version: NewVersion,
  report: Partial<PublishReport>,
  { added, gone }: Pick<BlobChanges, 'added' | 'gone'>,
): Promise<void> {
  const { site_id, number } = version
  await sql`
    with version as (${insertingVersion(sql, version, report)}),
    ended as (
      update site_blobs set to_version = ${number - 1}
      where site_id = ${site_id} and to_version is null and hash = any(${gone as string[]}::text[]))
    insert into site_blobs (site_id, hash, from_version)
    select ${site_id}, needed.hash, ${number} from unnest(${added as string[]}::text[]) as needed (hash)
    where not exists (
      select from site_blobs b where b.site_id = ${site_id} and b.hash = needed.hash and b.to_version is null)`
}
