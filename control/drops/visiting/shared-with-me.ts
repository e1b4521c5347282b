/** What others share with a person who has an account: by the same mail address, which they have verified. */
import { siteHost } from '../../../shared/http/hosts.ts'
import type { Clock } from '../../../shared/running/clock.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Pool } from '../../ground/database/sql.ts'
import { listSharedWith } from './queries.ts'

export interface SharedDropEntry {
  readonly id: string
  readonly url: string
  readonly title: string
  readonly shared_by: string
  readonly role: string
  readonly shared_at: string
  readonly last_opened_at: string | null
}

export interface SharedWithMe {
  /** The newest first; nothing of an organisation that the person belongs to. */
  list(actor: Actor): Promise<SharedDropEntry[]>
}

interface SharedWithMeDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>
}

export function createSharedWithMe({ sql, clock, config }: SharedWithMeDependencies): SharedWithMe {
  return {
    async list(actor) {
      if (!actor.emailVerified) return []
      const rows = await listSharedWith(sql, actor.email.toLowerCase(), actor.userId, new Date(clock.now()))
      return rows
        .toSorted((a, b) => b.shared_at.getTime() - a.shared_at.getTime())
        .map((row) => ({
          id: row.id,
          url: addressOf(config, siteHost(row.slug, config.sitesDomain)),
          title: row.name || row.title || row.slug,
          shared_by: row.owner,
          role: row.role,
          shared_at: row.shared_at.toISOString(),
          last_opened_at: row.last_opened_at?.toISOString() ?? null,
        }))
    },
  }
}
