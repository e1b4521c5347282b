/** From a site to the route records of every host that leads to it. Runs inside the transaction of the change. */
import type { Sql } from '../database/sql.ts'
import { setRoute, type NewRoute } from '../events/outbox.ts'
import { siteHost } from '../../shared/hosts.ts'
import { findSite, lockSite, retainedVersions, slugsOf } from './queries.ts'
import { redirectRouteOf, siteRouteOf, type SiteFacts } from './rules.ts'

/** Routes of a site's custom domains; handed in by the domains capability. */
export type DomainRoutes = (sql: Sql, site: SiteFacts) => Promise<NewRoute[]>

export type RefreshRoutes = (sql: Sql, siteId: string) => Promise<void>

export function createRefreshRoutes({
  sitesDomain,
  now,
  domainRoutes,
}: {
  sitesDomain: string
  now: () => number
  domainRoutes: DomainRoutes
}): RefreshRoutes {
  return async (sql, siteId) => {
    // Whoever waited for another change writes what that one left behind, not what was there before it.
    await lockSite(sql, siteId)
    const site = await findSite(sql, siteId)
    if (!site) return
    const record = siteRouteOf(site, await retainedVersions(sql, siteId), sitesDomain, now())
    for (const { slug, kind } of await slugsOf(sql, siteId)) {
      const host = siteHost(slug, sitesDomain)
      await setRoute(sql, kind === 'former' ? redirectRouteOf(slug, site, sitesDomain) : { ...record, host })
    }
    for (const route of await domainRoutes(sql, site)) await setRoute(sql, route)
  }
}
