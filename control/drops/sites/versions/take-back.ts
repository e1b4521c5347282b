/** What happens to a version that an edge cannot serve. */
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import type { Log } from '../../../../shared/running/log.ts'
import type { Pool, Sql } from '../../../ground/database/sql.ts'
import { changeRoutes, type Changed } from '../../../ground/routing/changes.ts'
import type { Routing } from '../../../ground/routing/routing.ts'
import type { SiteKeptFiles } from '../kept/kept-files.ts'
import { nameAgain } from '../kept/naming.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import type { Propagated } from '../sites.ts'
import type { Before } from './commit.ts'

export interface TakeBackDependencies {
  sql: Pool
  clock: Clock
  log: Log
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  keptFiles: Pick<SiteKeptFiles, 'restore'>
}

export interface WentLive {
  readonly siteId: string
  readonly versionId: string
  readonly before: Before
}

/**
 * Tells the edges. Where one cannot serve the version, everything is as it was before, and the caller hears why; the
 * number is not given again. Where another publish came since, that stands: it replaced this one anyway.
 */
export type PropagateOrTakeBack = <Value>(
  changed: Changed<Value>,
  live: WentLive,
  undo: (tx: Sql) => Promise<void>,
) => Promise<Propagated<Value>>

export function createPropagateOrTakeBack({
  sql,
  clock,
  log,
  routing,
  refreshRoutes,
  keptFiles,
}: TakeBackDependencies): PropagateOrTakeBack {
  return async ({ value, changes }, { siteId, versionId, before }, undo) => {
    const { pending, refused } = await routing.propagate(changes)
    if (refused === undefined) return { value, pending }
    const takenBack = await changeRoutes(sql, async (tx) => {
      await queries.lockSite(tx, siteId)
      const site = await queries.findSite(tx, siteId)
      if (!site || site.live_version_id !== versionId) return false
      const now = new Date(clock.now())
      const { live_version_id, title, published_at, spa_fallback } = before.site
      await queries.updateSite(tx, siteId, { live_version_id, title, published_at, spa_fallback }, now)
      for (const dropped of before.dropped) await queries.retainAgain(tx, dropped)
      await nameAgain(tx, before.previews, now)
      await keptFiles.restore(tx, before.site)
      await undo(tx)
      await refreshRoutes(tx, siteId)
      return true
    })
    if (!takenBack.value) return { value, pending }
    log.error(
      { site: siteId, version: versionId, reason: refused },
      'an edge cannot serve a version; it was taken back',
    )
    await routing.propagate(takenBack.changes)
    throw errors.notServed(refused)
  }
}
