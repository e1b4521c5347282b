/** From a site to the route records of every host that leads to it. Runs inside the transaction of the change. */
import type { Sql } from '../database/sql.ts'
import { setRoute, type NewRoute } from '../events/outbox.ts'
import { siteHost } from '../../shared/hosts.ts'
import { findSite, lockSite, retainedVersions, retireSlugs, slugsOf } from './queries.ts'
import { redirectRouteOf, siteRouteOf, sortSlugs, type SiteFacts } from './rules.ts'

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
    const slugs = sortSlugs(await slugsOf(sql, siteId), site.deleted_at !== null, now())
    for (const slug of slugs.serving) await setRoute(sql, { ...record, host: siteHost(slug, sitesDomain) })
    for (const slug of slugs.redirecting) await setRoute(sql, redirectRouteOf(slug, site, sitesDomain))
    if (slugs.retired.length > 0)
      for (const slug of await retireSlugs(sql, siteId, slugs.retired))
        await setRoute(sql, { kind: 'none', host: siteHost(slug, sitesDomain) })
    for (const route of await domainRoutes(sql, site)) await setRoute(sql, route)
  }
}
