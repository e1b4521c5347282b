import type { StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import { CARD_DRAWING, type SiteFacts } from '../rules.ts'

/** What a drawn card shows, and its blob; undefined where it could not be drawn. */
export interface DrawnCard {
  readonly source: string
  readonly picture: StoredBlob | undefined
}

/**
 * Gives a site its card, or takes it away. A blob that is no longer needed is collected a day later: an edge may not have
 * heard of its successor yet.
 */
export async function setCard(
  sql: Sql,
  { id, card_hash }: Pick<SiteFacts, 'id' | 'card_hash'>,
  card: DrawnCard | undefined,
  now: Date,
): Promise<void> {
  const { hash = null, size = null } = card?.picture ?? {}
  await sql`
    update sites set card_source = ${card?.source ?? null}, card_hash = ${hash}, card_size = ${size} where id = ${id}`
  if (card_hash !== null && card_hash !== hash)
    await sql`update kept_blobs set ended_at = ${now} where site_id = ${id} and hash = ${card_hash}`
  if (hash !== null)
    await sql`
      insert into kept_blobs (site_id, hash, size) values (${id}, ${hash}, 0)
      on conflict (site_id, hash) do update set ended_at = null`
}

/** Sites that want a card and have none of what they show now; as rules.ts says it (`wantsCard`, `cardSource`). */
export async function sitesWithoutCard(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from sites
    where card and deleted_at is null and taken_down_at is null and live_version_id is not null and password_hash is null
      and org_id is not null and card_source is distinct from concat_ws(E'\n', ${CARD_DRAWING}::text, title, name, slug)
    limit 100`
  return rows.map(({ id }) => id)
}
