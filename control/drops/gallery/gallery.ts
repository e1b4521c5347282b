/** The public gallery: drops whose owners want to be seen. */
import { SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { cardTarget } from '../../../shared/contracts/route-record.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { listGallery } from './queries.ts'

export interface GalleryEntry {
  readonly slug: string
  readonly title: string
  readonly url: string
  readonly views: number
  readonly published_at: string
  /** Where its card is; null while there is none. */
  readonly card_url: string | null
}

export type GalleryOrder = 'newest' | 'popular'

const SIZE = 60
/** Long enough to shield Postgres from a crowd, short enough that a drop made private leaves at once. While a refresh fails the old list stays. */
const FRESH_MS = 2 * SECOND_MS

export interface Gallery {
  /** At most sixty drops, two seconds old at most. */
  list(order: GalleryOrder): Promise<readonly GalleryEntry[]>
}

export function createGallery({
  sql,
  clock,
  config,
}: {
  sql: Pool
  clock: Clock
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}): Gallery {
  const cached = new Map<GalleryOrder, { at: number; entries: readonly GalleryEntry[] }>()

  const addressAt = (slug: string): string => addressOf(config, siteHost(slug, config.sitesDomain))

  async function load(order: GalleryOrder): Promise<readonly GalleryEntry[]> {
    const rows = await listGallery(sql, order, SIZE, new Date(clock.now()))
    return rows.map((row) => ({
      slug: row.slug,
      title: row.title || row.name || row.slug,
      url: addressAt(row.slug),
      views: row.views,
      published_at: row.published_at.toISOString(),
      card_url: row.card_hash === null ? null : addressAt(row.slug) + cardTarget(row.card_hash),
    }))
  }

  return {
    async list(order) {
      const known = cached.get(order)
      if (known && clock.now() - known.at < FRESH_MS) return known.entries
      const entries = await load(order).catch((error: unknown) => {
        if (known) return known.entries
        throw error
      })
      cached.set(order, { at: clock.now(), entries })
      return entries
    },
  }
}
