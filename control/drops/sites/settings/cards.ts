/**
 * Cards: the picture that is shown where a drop's address is shared, for owners who want one. It is drawn when something
 * that it shows has changed, in a thread, and stored as a blob by its content; the route names it once it is there. A drop
 * that not everyone may see has none.
 */
import type { Clock } from '../../../../shared/running/clock.ts'
import type { Log } from '../../../../shared/running/log.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { changeRoutes } from '../../../ground/routing/changes.ts'
import type { Routing } from '../../../ground/routing/routing.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { siteHost } from '../../../../shared/http/hosts.ts'
import type { Publishing } from '../../publishing/contract.ts'
import { findSite, lockSite } from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import { cardSource, wantsCard, type SiteFacts } from '../rules.ts'
import { setCard, sitesWithoutCard } from './card-queries.ts'

export interface Cards {
  /** Draws what is due of one drop; when it resolves, every edge shows it. It fails no caller: what is left is drawn later. */
  bringUpToDate(site: Pick<SiteFacts, 'id' | 'card'>): Promise<void>
  /** Draws what no caller has: after a failure, or a change that came another way. Resolves how many. */
  drawDue(stopping: AbortSignal): Promise<number>
}

export interface CardsDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly routing: Pick<Routing, 'propagate'>
  readonly refreshRoutes: RefreshRoutes
  readonly publishing: Pick<Publishing, 'drawCard'>
  readonly config: Pick<ControlConfig, 'sitesDomain'>
}

export function createCards(deps: CardsDependencies): Cards {
  const { sql, log } = deps

  async function draw(siteId: string): Promise<void> {
    await drawOne(deps, siteId).catch((error: unknown) =>
      log.warn({ err: error, site: siteId }, 'a card could not be drawn; it is tried again'),
    )
  }

  return {
    async bringUpToDate({ id, card }) {
      if (card) await draw(id)
    },
    async drawDue(stopping) {
      const due = await sitesWithoutCard(sql)
      let count = 0
      for (const id of due) {
        if (stopping.aborted) break
        await draw(id)
        count++
      }
      return count
    },
  }
}

/** Drawn before anything is locked; what has changed meanwhile is left to the caller who changed it. */
async function drawOne(
  { sql, clock, routing, refreshRoutes, publishing, config }: CardsDependencies,
  siteId: string,
): Promise<void> {
  const site = await findSite(sql, siteId)
  if (!site || site.org_id === null || !isDue(site)) return
  const title = site.title || site.name
  const picture = await publishing.drawCard(site.org_id, { title, host: siteHost(site.slug, config.sitesDomain) })
  const { changes } = await changeRoutes(sql, async (tx) => {
    await lockSite(tx, siteId)
    const now = await findSite(tx, siteId)
    if (!now || !isDue(now) || cardSource(now) !== cardSource(site)) return
    await setCard(tx, now, { source: cardSource(now), picture }, new Date(clock.now()))
    await refreshRoutes(tx, siteId)
  })
  await routing.propagate(changes)
}

function isDue(site: SiteFacts): boolean {
  return wantsCard(site) && site.card_source !== cardSource(site)
}
