/**
 * From a site to the route records of every host that leads to it. Runs inside the transaction of every change, so that
 * the drop's clock is set here too: no caller has to remember it.
 */
import { inOrder, type Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import { setRoute, type NewRoute } from '../../ground/routing/outbox.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { endKept } from './kept/kept-files.ts'
import { findSite, lockSite, retainedVersions, retireSlugs, setClock, slugsOf } from './queries.ts'
import { clockOf, redirectRouteOf, siteRouteOf, sortSlugs, type Lifetimes, type SiteFacts } from './rules.ts'

/** Routes of a site's custom domains; handed in by the domains capability. */
export type DomainRoutes = (tx: RoutingTransaction, site: SiteFacts) => Promise<NewRoute[]>

export type RefreshRoutes = (tx: RoutingTransaction, siteId: string) => Promise<void>

export function createRefreshRoutes({
  sitesDomain,
  lifetimes,
  now,
  domainRoutes,
}: {
  sitesDomain: string
  lifetimes: Lifetimes
  now: () => number
  domainRoutes: DomainRoutes
}): RefreshRoutes {
  async function setClockOf(sql: Sql, site: SiteFacts): Promise<SiteFacts> {
    if (site.deleted_at) return site
    const clock = clockOf(site, now(), lifetimes)
    const isSet = Object.entries(clock).every(
      ([column, time]) => site[column as keyof typeof clock]?.getTime() === time?.getTime(),
    )
    if (!isSet) await setClock(sql, site.id, clock, new Date(now()))
    return { ...site, ...clock }
  }

  /** What was taken down or deleted keeps nothing of former versions, also when it is restored. */
  async function endKeptOf(tx: RoutingTransaction, site: SiteFacts): Promise<SiteFacts> {
    const isOver = site.deleted_at !== null || site.taken_down_at !== null
    if (!isOver || site.served_manifest_hash === null) return site
    await endKept(tx, site.id, new Date(now()))
    return { ...site, served_manifest_hash: null, served_for: null }
  }

  return async (tx, siteId) => {
    // A change that waited for another writes what that one left behind, not what was there before it.
    const [, found, retained, held] = await inOrder(
      () => lockSite(tx, siteId),
      () => findSite(tx, siteId),
      () => retainedVersions(tx, siteId),
      () => slugsOf(tx, siteId),
    )
    if (!found) return
    const site = await endKeptOf(tx, await setClockOf(tx, found))
    const record = siteRouteOf(site, retained, sitesDomain, now())
    const slugs = sortSlugs(held, site.deleted_at !== null, now())
    for (const slug of slugs.serving) await setRoute(tx, { ...record, host: siteHost(slug, sitesDomain) })
    for (const slug of slugs.redirecting) await setRoute(tx, redirectRouteOf(slug, site, sitesDomain))
    if (slugs.retired.length > 0)
      for (const slug of await retireSlugs(tx, siteId, slugs.retired))
        await setRoute(tx, { kind: 'none', host: siteHost(slug, sitesDomain) })
    for (const route of await domainRoutes(tx, site)) await setRoute(tx, route)
  }
}
