/**
 * From a site to the route records of every host that leads to it. Runs inside the transaction of every change, so that
 * the drop's clock is set here too: no caller has to remember it.
 */
import { inOrder, type Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import { setRoutes, toldRouteOf, type NewRoute, type ToldRoute } from '../../ground/routing/outbox.ts'
import { tellWebhooks } from '../../ground/routing/webhook-outbox.ts'
import type { SiteRoute } from '../../../shared/contracts/route-record.ts'
import { isShortenedPreview, previewHost, siteHost } from '../../../shared/http/hosts.ts'
import { endKept } from './kept/kept-files.ts'
import { listPreviews } from './kept/queries.ts'
import { accessModeOf } from '../viewers/access.ts'
import { endedAdmissions } from '../viewers/lists.ts'
import { findSite, lockSite, retainedVersions, retireSlugs, setClock, slugsOf } from './queries.ts'
import { setCard } from './settings/card-queries.ts'
import {
  clockOf,
  eventsOf,
  redirectRouteOf,
  siteRouteOf,
  sortSlugs,
  wantsCard,
  type Lifetimes,
  type RetainedVersion,
  type SiteFacts,
} from './rules.ts'

/** Locks a site's custom domains, in one statement, and tells their routes; handed in by the domains capability. */
export type LockDomainRoutes = (
  tx: RoutingTransaction,
  siteId: string,
) => Promise<(site: SiteFacts) => Promise<NewRoute[]>>

/** Labels of previews by version: the part of an address that no one guesses. */
export type PreviewLabels = (siteId: string, versionNumber: number) => string

export type RefreshRoutes = (tx: RoutingTransaction, siteId: string) => Promise<void>

export function createRefreshRoutes({
  sitesDomain,
  lifetimes,
  now,
  lockDomainRoutes,
  previewLabels,
}: {
  sitesDomain: string
  previewLabels: PreviewLabels
  lifetimes: Lifetimes
  now: () => number
  lockDomainRoutes: LockDomainRoutes
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

  /** What was taken down, deleted or is for viewers from now on keeps nothing of former versions, also afterwards. */
  async function endKeptOf(tx: RoutingTransaction, site: SiteFacts, told: ToldRoute | undefined): Promise<SiteFacts> {
    const wasPublic = told !== undefined && told.viewers === undefined && told.password === null
    const isClosed = accessModeOf(site) === 'viewers' && wasPublic
    const isOver = site.deleted_at !== null || site.taken_down_at !== null || isClosed
    if (!isOver || site.served_manifest_hash === null) return site
    await endKept(tx, site.id, new Date(now()))
    return { ...site, served_manifest_hash: null, served_for: null }
  }

  /** A card ends with the wish for it, and with the last moment that everyone may see the drop. */
  async function endCardOf(tx: RoutingTransaction, site: SiteFacts): Promise<SiteFacts> {
    if (site.card_hash === null || wantsCard(site)) return site
    await setCard(tx, site, undefined, new Date(now()))
    return { ...site, card_source: null, card_hash: null, card_size: null }
  }

  return async (tx, siteId) => {
    // A change that waited for another writes what that one left behind, not what was there before it.
    const [, found, retained, held, named, ended, told, domainRoutesOf] = await inOrder(
      () => lockSite(tx, siteId),
      () => findSite(tx, siteId),
      () => retainedVersions(tx, siteId),
      () => slugsOf(tx, siteId),
      () => listPreviews(tx, siteId),
      () => endedAdmissions(tx, siteId, new Date(now())),
      () => toldRouteOf(tx, siteId, sitesDomain),
      () => lockDomainRoutes(tx, siteId),
    )
    if (!found) return
    const site = await endCardOf(tx, await endKeptOf(tx, await setClockOf(tx, found), told))
    const record = siteRouteOf(site, retained, sitesDomain, now(), { ended, named })
    const slugs = sortSlugs(held, site.deleted_at !== null, now())
    for (const type of eventsOf(told, record)) await tellWebhooks(tx, { type, siteId, at: new Date(now()) })
    const retired = slugs.retired.length === 0 ? [] : await retireSlugs(tx, siteId, slugs.retired)
    await setRoutes(tx, [
      ...slugs.serving.map((slug) => ({ ...record, host: siteHost(slug, sitesDomain) })),
      ...shortenedPreviews(site, record, sitesDomain, previewLabels),
      ...slugs.redirecting.map((slug) => redirectRouteOf(slug, site, sitesDomain)),
      ...retired.map((slug) => ({ kind: 'none', host: siteHost(slug, sitesDomain) }) as const),
      ...(await domainRoutesOf(site)),
    ])
  }
}

/** The routes of a drop that comes to be with its first version: what they depend on is known without asking. */
export type FirstRoutes = (site: SiteFacts, version: RetainedVersion) => NewRoute[]

export function createFirstRoutes({
  sitesDomain,
  previewLabels,
  now,
}: {
  sitesDomain: string
  previewLabels: PreviewLabels
  now: () => number
}): FirstRoutes {
  return (site, version) => {
    const record = siteRouteOf(site, [version], sitesDomain, now())
    return [record, ...shortenedPreviews(site, record, sitesDomain, previewLabels)]
  }
}

/** Previews whose label and slug do not fit into one name have records of their own. */
function shortenedPreviews(
  site: SiteFacts,
  { host, versions, names = [] }: Omit<SiteRoute, 'v' | 'revision'>,
  sitesDomain: string,
  previewLabels: PreviewLabels,
): NewRoute[] {
  const labels = [...versions.map(([number]) => previewLabels(site.id, number)), ...names.map(([name]) => name)]
  return labels
    .filter((label) => isShortenedPreview(label, site.slug))
    .map((label) => ({ kind: 'preview', host: previewHost(label, site, sitesDomain), to: host, label }))
}
