/** Compression after a publish: visitors get fewer bytes, and the publish did not wait for it. */
import { MINUTE_MS, type Clock } from '../../../../../shared/running/clock.ts'
import type { Log } from '../../../../../shared/running/log.ts'
import type { Pool } from '../../../../ground/database/sql.ts'
import { changeRoutes, type Changed } from '../../../../ground/routing/changes.ts'
import type { Routing } from '../../../../ground/routing/routing.ts'
import type { Publishing, Recompressed } from '../../../publishing/contract.ts'
import type { SiteKeptFiles } from '../../kept/kept-files.ts'
import { queueState, type QueueState } from '../../../../ground/watching/queue.ts'
import { lockSite } from '../../queries.ts'
import type { RefreshRoutes } from '../../routing.ts'
import * as queries from './queries.ts'

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
  keptFiles: Pick<SiteKeptFiles, 'refit'>
  publishing: Pick<Publishing, 'compress' | 'refine'>
}

export interface Refinement {
  /** Compresses what went live without variants, live versions first; each is served so at once. */
  compressDue(stopping: AbortSignal): Promise<number>
  /** Compresses harder what has gone live since the last run, in the same order. A version keeps its id, number and content. */
  refineDue(stopping: AbortSignal): Promise<number>
  /** Versions that wait to be compressed. */
  queue(): Promise<QueueState>
}

type Step = 'compressed_at' | 'refined_at'

export function createRefinement(deps: RefinementDependencies): Refinement {
  const { sql, clock } = deps
  return {
    compressDue: (stopping) =>
      recompressDue(deps, stopping, 'compressed_at', () => queries.nextUncompressed(sql, new Date(clock.now()))),

    refineDue: (stopping) =>
      recompressDue(deps, stopping, 'refined_at', () => {
        const now = clock.now()
        return queries.nextUnrefined(sql, new Date(now), new Date(now - REFINE_AFTER_MS))
      }),

    async queue() {
      const now = new Date(clock.now())
      return queueState(await queries.uncompressedQueue(sql, now), now)
    },
  }
}

/** Takes what `next` finds until there is nothing left. One that fails is put off, and keeps no other waiting. */
async function recompressDue(
  deps: RefinementDependencies,
  stopping: AbortSignal,
  step: Step,
  next: () => Promise<queries.UnrefinedVersion | undefined>,
): Promise<number> {
  const { sql, clock, log } = deps
  let count = 0
  while (!stopping.aborted) {
    const due = await next()
    if (!due) break
    try {
      await recompress(deps, stopping, due, step)
      count++
    } catch (error) {
      log.warn({ err: error, version: due.id }, 'a version could not be compressed; it is tried again')
      await queries.postponeRefinement(sql, due.id, new Date(clock.now() + REFINE_RETRY_MS))
    }
  }
  return count
}

/** Visitors have each part before the next one is begun. What is stopped is taken up again where it was. */
async function recompress(
  deps: RefinementDependencies,
  stopping: AbortSignal,
  due: queries.UnrefinedVersion,
  step: Step,
): Promise<void> {
  const { publishing, routing } = deps
  const work = step === 'compressed_at' ? publishing.compress : publishing.refine
  let served = due
  for await (const part of work(due.manifest_hash, due.refined_hash)) {
    const { value: isChanged, changes } = await replace(deps, served, step, part)
    if (isChanged) await routing.propagate(changes)
    if (stopping.aborted) return
    served = { ...served, manifest_hash: part.smaller?.manifestHash ?? served.manifest_hash }
  }
}

function replace(
  { sql, keptFiles, refreshRoutes }: RefinementDependencies,
  served: queries.UnrefinedVersion,
  step: Step,
  part: Recompressed,
): Promise<Changed<boolean>> {
  return changeRoutes(sql, async (tx) => {
    await lockSite(tx, served.site_id)
    await queries.markRefined(tx, served, step, part)
    if (!part.smaller) return false
    await keptFiles.refit(tx, served.site_id)
    await refreshRoutes(tx, served.site_id)
    return true
  })
}
