/** Harder compression, some time after a publish: visitors get fewer bytes, and the publish did not wait for it. */
import { MINUTE_MS, type Clock } from '../../../../shared/clock.ts'
import type { Log } from '../../../../shared/log.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { allChanges, changeRoutes, type RouteChanges } from '../../../ground/routing/changes.ts'
import type { Routing } from '../../../ground/routing/routing.ts'
import type { Publishing } from '../../publishing/contract.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'

/** A deploy is often followed by the next one, which compressing must not slow down. */
const REFINE_AFTER_MS = MINUTE_MS
/** The store may be back by then; a manifest that cannot be read costs no more than a look. */
const REFINE_RETRY_MS = 10 * MINUTE_MS

export interface RefinementDependencies {
  sql: Pool
  clock: Clock
  log: Log
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  publishing: Pick<Publishing, 'refine'>
}

export interface Refinement {
  /** Compresses harder what has gone live since the last run. A version keeps its id, number and content. */
  refineDue(stopping: AbortSignal): Promise<number>
}

export function createRefinement({
  sql,
  clock,
  log,
  routing,
  refreshRoutes,
  publishing,
}: RefinementDependencies): Refinement {
  async function refine(due: queries.UnrefinedVersion): Promise<RouteChanges> {
    const refined = await publishing.refine(due.manifest_hash, due.refined_hash)
    const { changes } = await changeRoutes(sql, async (tx) => {
      await queries.lockSite(tx, due.site_id)
      await queries.markRefined(tx, due, refined)
      if (refined) await refreshRoutes(tx, due.site_id)
    })
    return changes
  }

  return {
    async refineDue(stopping) {
      const refined: RouteChanges[] = []
      while (!stopping.aborted) {
        const now = new Date(clock.now())
        const due = await queries.nextUnrefined(sql, now, new Date(clock.now() - REFINE_AFTER_MS))
        if (!due) break
        try {
          refined.push(await refine(due))
        } catch (error) {
          log.warn({ err: error, version: due.id }, 'a version could not be compressed harder; it is tried again')
          await queries.postponeRefinement(sql, due.id, new Date(clock.now() + REFINE_RETRY_MS))
        }
      }
      if (refined.length > 0) await routing.propagate(allChanges(refined))
      return refined.length
    },
  }
}
