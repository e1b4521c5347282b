/**
 * From a site to the route records of every host that leads to it. Runs inside the transaction of every change, so that
 * the drop's clock is settled here too: no caller has to remember it.
 */
import { inOrder, type Sql } from '../../ground/database/sql.ts'
import { setRoute, type NewRoute } from '../../ground/routing/outbox.ts'
import { siteHost } from '../../../shared/hosts.ts'
import { findSite, lockSite, retainedVersions, retireSlugs, setClock, slugsOf } from './queries.ts'
import { clockOf, redirectRouteOf, siteRouteOf, sortSlugs, type Lifetimes, type SiteFacts } from './rules.ts'

/** Routes of a site's custom domains; handed in by the domains capability. */
export type DomainRoutes = (sql: Sql, site: SiteFacts) => Promise<NewRoute[]>

export type RefreshRoutes = (sql: Sql, siteId: string) => Promise<void>

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
  async function settleClock(sql: Sql, site: SiteFacts): Promise<SiteFacts> {
    if (site.deleted_at) return site
    const clock = clockOf(site, now(), lifetimes)
    const isSettled = Object.entries(clock).every(
      ([column, time]) => site[column as keyof typeof clock]?.getTime() === time?.getTime(),
    )
    if (!isSettled) await setClock(sql, site.id, clock, new Date(now()))
    return { ...site, ...clock }
  }

  return async (sql, siteId) => {
    // A change that waited for another writes what that one left behind, not what was there before it.
    const [, found, retained, held] = await inOrder(
      () => lockSite(sql, siteId),
      () => findSite(sql, siteId),
      () => retainedVersions(sql, siteId),
      () => slugsOf(sql, siteId),
    )
    if (!found) return
    const site = await settleClock(sql, found)
    const record = siteRouteOf(site, retained, sitesDomain, now())
    const slugs = sortSlugs(held, site.deleted_at !== null, now())
    for (const slug of slugs.serving) await setRoute(sql, { ...record, host: siteHost(slug, sitesDomain) })
    for (const slug of slugs.redirecting) await setRoute(sql, redirectRouteOf(slug, site, sitesDomain))
    if (slugs.retired.length > 0)
      for (const slug of await retireSlugs(sql, siteId, slugs.retired))
        await setRoute(sql, { kind: 'none', host: siteHost(slug, sitesDomain) })
    for (const route of await domainRoutes(sql, site)) await setRoute(sql, route)
  }
}
