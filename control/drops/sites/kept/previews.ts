/** Named previews: versions that are published without going live, each at an address of its name. */
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { requirePreview, type Actor } from '../../../ground/actor.ts'
import type { Pool, Sql } from '../../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../../ground/routing/changes.ts'
import type { Routing } from '../../../ground/routing/routing.ts'
import { recordAudit } from '../../../people/audit/audit.ts'
import type { RefreshRoutes } from '../routing.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiPreview, ApiVersion } from '../schemas.ts'
import type { Propagated, Sites } from '../sites.ts'
import type { PublishVersions } from '../versions/publish-version.ts'
import { previewAddressOf, type AddressConfig } from '../versions/show-version.ts'
import { retainedVersions } from '../queries.ts'
import { unnameVersion } from './naming.ts'
import * as queries from './queries.ts'

export interface Previews {
  list(actor: Actor, siteId: string): Promise<ApiPreview[]>
  /** The version that a preview shows; undefined when there is none of that name. */
  named(siteId: string, name: string): Promise<{ number: number; manifest_hash: string } | undefined>
  /** Makes what a preview shows live; the name stays. */
  promote(actor: Actor, siteId: string, name: string): Promise<Propagated<ApiVersion>>
  remove(actor: Actor, siteId: string, name: string): Promise<Propagated<undefined>>
  /** Removes one whose time is over; resolves to its site, or to undefined when none is due. */
  endNextDue(tx: RoutingTransaction, now: Date): Promise<string | undefined>
  countDue(sql: Sql, now: Date): Promise<number>
}

interface PreviewsDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'requireOwn' | 'lockOwn'>
  versions: Pick<PublishVersions, 'promote'>
  config: AddressConfig
}

export function createPreviews({
  sql,
  clock,
  routing,
  refreshRoutes,
  sites,
  versions,
  config,
}: PreviewsDependencies): Previews {
  return {
    async list(actor, siteId) {
      const site = await sites.requireOwn(sql, actor, siteId)
      return (await queries.listPreviews(sql, siteId)).map((row) => showPreview(config, site, row))
    },

    async named(siteId, name) {
      const preview = await queries.findPreview(sql, siteId, name)
      if (!preview) return undefined
      return (await retainedVersions(sql, siteId)).find(({ id }) => id === preview.version_id)
    },

    async promote(actor, siteId, name) {
      await sites.requireOwn(sql, actor, siteId)
      return versions.promote(actor, siteId, (await requireNamed(sql, siteId, name)).version_id)
    },

    async remove(actor, siteId, name) {
      requirePreview(actor, name)
      const { changes } = await changeRoutes(sql, async (tx) => {
        await sites.lockOwn(tx, actor, siteId)
        const now = new Date(clock.now())
        await unnameVersion(tx, await requireNamed(tx, siteId, name), now)
        await refreshRoutes(tx, siteId)
        await recordAudit(tx, {
          at: now,
          orgId: actor.orgId,
          actor,
          action: 'preview.removed',
          subject: siteId,
          detail: { name },
        })
      })
      return { value: undefined, ...(await routing.propagate(changes)) }
    },

    async endNextDue(tx, now) {
      const due = await queries.lockExpiredPreview(tx, now)
      if (due) await unnameVersion(tx, due, now)
      return due?.site_id
    },

    countDue: queries.countExpiredPreviews,
  }
}

async function requireNamed(sql: Sql, siteId: string, name: string): Promise<queries.PreviewRow> {
  const preview = await queries.findPreview(sql, siteId, name)
  if (!preview) throw errors.notFound('preview')
  return preview
}

function showPreview(config: AddressConfig, site: SiteFacts, row: queries.ListedPreview): ApiPreview {
  return {
    name: row.name,
    url: site.previews === 'off' ? null : previewAddressOf(config, site, row.name),
    version_id: row.version_id,
    version_number: row.version_number,
    file_count: row.file_count,
    byte_size: row.byte_size,
    message: row.message,
    live: row.version_id === site.live_version_id,
    published_at: row.published_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  }
}
