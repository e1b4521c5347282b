/** How a drop without an account is written, with its first version live: one statement, since nothing in it has to be asked for. */
import { jsonb, one } from '../../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../../ground/routing/changes.ts'
import { noteRoutes, routeParts, type NewRoute } from '../../../ground/routing/outbox.ts'
import { takingSlug } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import type { PublishReport } from '../schemas.ts'
import type { NewSiteRow } from '../settings/reservation.ts'

/** What a new drop is made of, as rows. */
export interface FirstPublish {
  readonly site: NewSiteRow & Pick<SiteFacts, 'live_version_id' | 'next_version_number' | 'title' | 'published_at'>
  readonly version: {
    readonly id: string
    readonly site_id: string
    readonly number: number
    readonly manifest_hash: string
    readonly byte_size: number
    readonly file_count: number
    readonly title: string
    readonly created_at: Date
    readonly compressed_at: Date | null
    readonly refined_at: Date | null
  }
  readonly report: Partial<PublishReport>
  /** Every hash that the version needs, each once. */
  readonly blobs: readonly string[]
  readonly routes: readonly NewRoute[]
}

/** False when the slug is another's: the transaction must not be committed then. */
export async function writeFirstPublish(
  tx: RoutingTransaction,
  { site, version, report, blobs, routes }: FirstPublish,
): Promise<boolean> {
  const { created_at: now } = site
  const written = one(
    await tx<{ history: string; is_taken: boolean }[]>`
      with site as (
        insert into sites (id, slug, name, dns_target, access_until, expires_at, anonymous_id, anonymous_network,
          claim_hash, created_at, updated_at, live_version_id, next_version_number, title, published_at)
        select id, slug, name, dns_target, access_until, expires_at, anonymous_id, anonymous_network,
          claim_hash, created_at, created_at, live_version_id, next_version_number, title, published_at
        from jsonb_populate_record(null::sites, ${jsonb(tx, site)})),
      slug as (${takingSlug(tx, site.slug, site.id, now)}),
      version as (
        insert into versions (id, site_id, number, manifest_hash, spans_of, byte_size, file_count, message, title,
          created_at, compressed_at, refined_at, report)
        select id, site_id, number, manifest_hash, manifest_hash, byte_size, file_count, '', title, created_at,
          compressed_at, refined_at, report
        from jsonb_populate_record(null::versions, ${jsonb(tx, { ...version, report })})),
      blobs as (
        insert into site_blobs (site_id, hash, from_version)
        select ${site.id}, hash, ${version.number} from unnest(${blobs as string[]}::text[]) hash),
      publish as (
        insert into publishes (site_id, version_id, kind, at) values (${site.id}, ${version.id}, 'upload', ${now})),
      ${routeParts(tx, routes)}
      select (select id from history) as history, exists (select from slug) as is_taken`,
  )
  noteRoutes(tx, routes, written.history)
  return written.is_taken
}
