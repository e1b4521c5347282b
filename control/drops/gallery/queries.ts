import type { Sql } from '../../ground/database/sql.ts'
import { cardSource } from '../sites/rules.ts'

interface GalleryRow {
  slug: string
  title: string
  name: string
  published_at: Date
  views: number
  /** The picture that shows what the drop shows now. */
  card_hash: string | null
}

/** Opted in, live, public, by a verified owner; never protected, expired, paused or taken down. */
export async function listGallery(
  sql: Sql,
  order: 'newest' | 'popular',
  limit: number,
  now: Date,
): Promise<GalleryRow[]> {
  const rows = await sql<(GalleryRow & { card: boolean; card_source: string | null })[]>`
    select s.slug, s.title, s.name, s.published_at, s.card, s.card_source, s.card_hash,
           coalesce((select sum(count) from views v where v.site_id = s.id and v.day > (${now}::timestamptz - interval '30 days')), 0)::bigint as views
    from sites s join organisations o on o.id = s.org_id join users u on u.id = o.owner_id
    where s.in_gallery and s.deleted_at is null and s.live_version_id is not null and s.password_hash is null
      and s.taken_down_at is null and s.paused_at is null and s.expired_at is null and (s.expires_at is null or s.expires_at > ${now})
      and (s.access_until is null or s.access_until > ${now})
      and u.email_verified_at is not null
    order by ${order === 'newest' ? sql`s.published_at desc` : sql`views desc, s.published_at desc`} limit ${limit}`
  return rows.map(({ card, card_source, card_hash, ...row }) => ({
    ...row,
    card_hash: card && card_source === cardSource(row) ? card_hash : null,
  }))
}
