/** What calls about drops are answered: their slugs and settings, and which of them stay live. */
import { plans } from '../../../control/ground/terms/plans.ts'
import { ownSite, type Acting } from './access.ts'
import { refuse, type Expected } from './answers.ts'
import type { Patch } from './calls.ts'
import { newSite, type Org, type Site, type World } from './world.ts'

const MAX_STAYING_LIVE = 3

export function listSites(world: World, { org }: Acting): Expected {
  return {
    status: 200,
    body: world
      .sitesOf(org)
      .toReversed()
      .map((site) => siteView(world, site)),
  }
}

export function listDropsOfBrowser(world: World, call: { browser: number }): Expected {
  const own = world.sites.filter((site) => site.browser === call.browser).toReversed()
  const body = own.map((site) => ({ id: site.id, slug: site.slug, state: world.stateOf(site) }))
  return { status: 200, body }
}

export function readSite(world: World, acting: Acting, call: { site: number }): Expected {
  return { status: 200, body: siteView(world, ownSite(acting, world.site(call.site))) }
}

export function createSite(
  world: World,
  { org }: Acting,
  call: { slug: string | undefined; name: string | undefined },
): Expected {
  if (world.activeCount(org) >= plans[org.plan].activeDrops) throw refuse.planLimit()
  if (call.slug !== undefined) requireSlug(world, call.slug, undefined)
  const { time } = world
  return {
    status: 201,
    body: {
      ...(call.slug === undefined ? {} : { slug: call.slug }),
      name: call.name ?? '',
      state: 'reserved',
      access_mode: 'public',
      has_password: false,
      branding_enabled: plans[org.plan].badge,
      live_version_id: null,
    },
    learn: ({ id, slug }: { id: string; slug: string }) => {
      world.sites.push(newSite({ id, slug, org: org.id, name: call.name ?? '', since: time }))
      world.slugs.set(slug, { site: id, kind: 'current', isFree: false })
    },
  }
}

export function changeSite(world: World, acting: Acting, call: { site: number; patch: Patch }): Expected {
  const site = ownSite(acting, world.site(call.site))
  const { patch } = call
  const plan = world.planOf(site)
  if (patch.password != null && !plan.password) throw refuse.planFeature()
  if (patch.analytics != null && !plan.analytics) throw refuse.planFeature()
  const renamed = patch.slug !== undefined && patch.slug !== site.slug ? patch.slug : undefined
  if (renamed !== undefined) {
    if (site.takenDown) throw refuse.forbidden()
    requireSlug(world, renamed, site.id)
  }
  const changed: Site = {
    ...site,
    ...(patch.name === undefined ? {} : { name: patch.name }),
    ...(renamed === undefined ? {} : { slug: renamed }),
    ...(patch.password === undefined ? {} : { hasPassword: patch.password !== null }),
    ...(patch.analytics === undefined ? {} : { analytics: patch.analytics }),
    ...(patch.spa_fallback === undefined ? {} : { spaFallback: patch.spa_fallback }),
    ...(patch.gallery === undefined ? {} : { gallery: patch.gallery }),
  }
  return {
    status: 200,
    body: siteView(world, changed),
    learn: () => {
      if (renamed !== undefined) {
        world.slugs.set(site.slug, { site: site.id, kind: 'former', isFree: false })
        world.slugs.set(renamed, { site: site.id, kind: 'current', isFree: false })
      }
      Object.assign(site, changed)
    },
  }
}

export function deleteSite(world: World, acting: Acting, call: { site: number }): Expected {
  const site = ownSite(acting, world.site(call.site))
  return {
    status: 204,
    learn: () => {
      removeSite(world, site)
      resumeFitting(world, acting.org)
    },
  }
}

export function removeSite(world: World, site: Site): void {
  site.deleted = true
  site.live = null
  for (const upload of world.uploads) if (upload.site === site.id) upload.open = false
  for (const [slug, held] of world.slugs)
    if (held.site === site.id) {
      held.kind = 'tombstone'
      if (slug === site.slug) held.isFree = site.nextNumber === 1
    }
}

export function chooseStayingLive(world: World, acting: Acting, call: { sites: readonly number[] }): Expected {
  const wanted = [...new Set(call.sites.map((index) => world.site(index)))]
  if (wanted.length > MAX_STAYING_LIVE) throw refuse.invalid()
  const chosen = new Set(wanted.map((site) => ownSite(acting, site)))
  const { org } = acting
  const counted = world.countedOf(org)
  const live = counted.filter((site) => !site.paused)
  // As many as are live now stay live: chosen ones first, then those that are.
  const places = Math.max(plans[org.plan].activeDrops, live.length)
  const order = worthiestFirst(counted, chosen).toSorted(
    (a, b) => Number(chosen.has(b)) - Number(chosen.has(a)) || Number(a.paused) - Number(b.paused),
  )
  const kept = new Set(order.slice(0, places))
  const after = new Map(counted.map((site) => [site, !kept.has(site)]))
  const all = world.sitesOf(org)
  const changed = all.map((site) => ({
    site,
    chosen: chosen.has(site),
    paused: after.get(site) ?? site.paused,
  }))
  return {
    status: 200,
    body: changed.toReversed().map(({ site, ...change }) => siteView(world, { ...site, ...change })),
    learn: () => {
      for (const { site, ...change } of changed) Object.assign(site, change)
    },
  }
}

export function pauseBeyondCap(world: World, org: Org): void {
  const live = world.countedOf(org).filter((site) => !site.paused)
  for (const site of worthiestFirst(live).slice(plans[org.plan].activeDrops)) site.paused = true
}

export function resumeFitting(world: World, org: Org): void {
  const counted = world.countedOf(org)
  const paused = worthiestFirst(counted.filter((site) => site.paused))
  const room = plans[org.plan].activeDrops - (counted.length - paused.length)
  for (const site of paused.slice(0, Math.max(0, room))) site.paused = false
}

/** Chosen ones, then those with content, then what was published last. */
function worthiestFirst(sites: readonly Site[], chosen?: ReadonlySet<Site>): Site[] {
  const isChosen = (site: Site): boolean => chosen?.has(site) ?? site.chosen
  return sites.toSorted(
    (a, b) =>
      Number(isChosen(b)) - Number(isChosen(a)) ||
      Number(a.live === null) - Number(b.live === null) ||
      b.since - a.since,
  )
}

function requireSlug(world: World, slug: string, siteId: string | undefined): void {
  const problem = world.slugFacts.get(slug)?.problem
  if (problem === 'invalid') throw refuse.invalid()
  if (problem === 'reserved') throw refuse.conflict('slug_reserved')
  const held = world.slugs.get(slug)
  const isOwn = held?.site === siteId
  if (held && (held.kind === 'current' || !(held.isFree || isOwn))) throw refuse.conflict('slug_taken')
}

function siteView(world: World, site: Site): object {
  return {
    id: site.id,
    slug: site.slug,
    name: site.name,
    title: site.title,
    state: world.stateOf(site),
    access_mode: site.hasPassword ? 'password' : 'public',
    has_password: site.hasPassword,
    branding_enabled: world.planOf(site).badge,
    spa_fallback: site.spaFallback,
    gallery: site.gallery,
    stays_live: site.chosen,
    analytics: site.analytics,
    live_version_id: site.live,
  }
}
