/** Sites: reserve, list, change settings, delete. Content arrives through versions/. */
import { recordAudit } from '../../people/audit/audit.ts'
import { randomBytes } from 'node:crypto'
import { DAY_MS, type Clock } from '../../../shared/clock.ts'
import { errors, type ApiError } from '../../../shared/errors.ts'
import { siteHost, SLUG_RULE, slugProblem } from '../../../shared/hosts.ts'
import { newId } from '../../../shared/ids.ts'
import { plans, type PlanName } from '../../../shared/plans.ts'
import { randomSlug, similarSlugs } from '../../../shared/readable-slug.ts'
import { addressOf } from '../../../shared/settings.ts'
import type { Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { inOrder, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import { preparePassword, writePassword } from './protection.ts'
import * as queries from './queries.ts'
import type { RefreshRoutes } from './routing.ts'
import { pausedByEnd, resumable, stateOf, swapForChosen, type SiteFacts } from './rules.ts'
import type { SitePatch, ApiSite } from './schemas.ts'

/** A result, and whether some edge may still serve the state before it. */
export interface Propagated<Value> {
  readonly value: Value
  readonly pending: boolean
}

export interface WantedSite {
  /** Random when omitted. */
  readonly slug?: string | undefined
  readonly name?: string | undefined
}

export interface SitesDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort' | 'anonymousLifetimeMs' | 'slugCooldownMs'>
}

/** Who a new drop belongs to. */
export type SiteOwner =
  | { readonly orgId: string }
  | { readonly anonymousId: string; readonly network: string; readonly claimHash: string }

/** What an organisation uses, and what its plan allows. */
export interface Usage {
  readonly plan: PlanName
  readonly drops: { readonly used: number; readonly limit: number }
  readonly storage_bytes: { readonly used: number; readonly limit: number }
  readonly upload_bytes: { readonly limit: number }
  readonly versions_per_drop: { readonly limit: number }
  readonly paused_drops: number
  readonly views_30d: number
}

/** Callers that hand in a transaction get their work done inside it, and its routes written unless it says otherwise. */
export interface Sites {
  /** Another organisation's site is as absent as a missing one: `not_found`. */
  requireOwn(sql: Sql, actor: Pick<Actor, 'orgId'>, siteId: string): Promise<SiteFacts>
  /** The organisation's site, both locked. */
  lockOwn(tx: Sql, actor: Actor, siteId: string): Promise<SiteFacts>
  /** Before anything is added to an organisation: its plan stays as it is, and it is not deleted, until the commit. */
  lockOrganisation(tx: Sql, orgId: string): Promise<PlanName>
  /** How many more drops may be active. The organisation is locked. */
  roomFor(tx: Sql, orgId: string, plan: PlanName): Promise<number>
  /** Reserves a slug for a new site; its routes are left to the caller. */
  reserve(tx: Sql, owner: SiteOwner, wanted: WantedSite): Promise<SiteFacts>
  /** A new site without content, within the plan's cap; its routes are left to the caller. */
  add(tx: Sql, actor: Actor, wanted: WantedSite): Promise<SiteFacts>
  /** Deletes for good; the address says "gone" from then on. */
  remove(tx: RoutingTransaction, site: SiteFacts): Promise<void>
  /** Its owner's mailbox is proved, or no longer is: what visitors meet at each drop is decided anew. */
  refreshOwned(tx: RoutingTransaction, userId: string): Promise<void>
  /** With its organisation goes every drop. */
  removeAll(tx: RoutingTransaction, orgId: string): Promise<void>
  /** A paid plan has ended: drops beyond the cap pause. Returns which; their routes are left to the caller. */
  pauseBeyondCap(tx: Sql, orgId: string, plan: PlanName): Promise<string[]>
  /** Paused drops that fit the cap again are live: whenever their owner makes room, or comes back. */
  resumeFitting(tx: RoutingTransaction, orgId: string): Promise<void>
  find(sql: Sql, siteId: string): Promise<SiteFacts | undefined>
  showAll(sites: readonly SiteFacts[]): Promise<ApiSite[]>
  get(actor: Actor, siteId: string): Promise<ApiSite>
  /** Why a drop could not have this slug, with free ones that are like it; undefined when it could. Takes nothing. */
  lookAtSlug(
    actor: Actor,
    slug: string,
    siteId: string | undefined,
  ): Promise<{ refusal: ApiError; others: string[] } | undefined>
  /** Whose a drop is, for a person who may belong to several organisations. */
  organisationOf(siteId: string): Promise<string | undefined>
  /** The id of a drop that is named by its slug, its address or the id itself. */
  findId(actor: Pick<Actor, 'orgId'>, name: string): Promise<string>
  list(actor: Actor): Promise<ApiSite[]>
  create(actor: Actor, wanted: WantedSite): Promise<Propagated<ApiSite>>
  /** Features above the plan are refused; taking one away is always allowed. */
  patch(actor: Actor, siteId: string, patch: SitePatch): Promise<Propagated<ApiSite>>
  delete(actor: Actor, siteId: string): Promise<Propagated<undefined>>
  /**
   * The owner's choice of drops that stay live when a plan ends; what was published last fills it up. Where drops are
   * paused already, chosen ones come back at once, in the place of others.
   */
  choose(actor: Actor, siteIds: readonly string[]): Promise<Propagated<ApiSite[]>>
  /** One entry per day, today last. */
  dailyViews(actor: Actor, siteId: string, days: number): Promise<{ day: string; count: number }[]>
  usage(actor: Actor): Promise<Usage>
}

/** Random slugs do not collide in practice; this bounds the impossible. */
const MAX_SLUG_TRIES = 8

export function createSites({ sql, clock, routing, refreshRoutes, config }: SitesDependencies): Sites {
  const now = (): Date => new Date(clock.now())

  function shown(site: SiteFacts, views: number): ApiSite {
    return {
      id: site.id,
      slug: site.slug,
      name: site.name,
      title: site.title,
      url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
      state: stateOf(site, clock.now()),
      access_mode: site.password_hash ? 'password' : 'public',
      has_password: site.password_hash !== null,
      branding_enabled: plans[site.plan].badge,
      spa_fallback: site.spa_fallback,
      gallery: site.in_gallery,
      stays_live: site.stays_live,
      analytics: site.analytics,
      live_version_id: site.live_version_id,
      expires_at: site.expires_at?.toISOString() ?? null,
      created_at: site.created_at.toISOString(),
      updated_at: site.updated_at.toISOString(),
      published_at: site.published_at?.toISOString() ?? null,
      views_30d: views,
    }
  }

  async function showAll(sites: readonly SiteFacts[]): Promise<ApiSite[]> {
    const since = new Date(clock.now() - 30 * DAY_MS).toISOString().slice(0, 10)
    const counts =
      sites.length === 0
        ? new Map<string, number>()
        : await queries.viewsSince(
            sql,
            sites.map((site) => site.id),
            since,
          )
    return sites.map((site) => shown(site, counts.get(site.id) ?? 0))
  }

  async function requireOwn(sql: Sql, actor: Pick<Actor, 'orgId'>, siteId: string): Promise<SiteFacts> {
    const site = await queries.findOwnSite(sql, actor.orgId, siteId)
    if (!site) throw errors.notFound()
    return site
  }

  async function showOwn(actor: Actor, siteId: string): Promise<ApiSite> {
    const [site] = await showAll([await requireOwn(sql, actor, siteId)])
    if (!site) throw errors.notFound()
    return site
  }

  /** Before anything is added to an organisation: its plan stays as it is, and it is not deleted, until the commit. */
  async function lockOrganisation(tx: Sql, orgId: string): Promise<PlanName> {
    const plan = await queries.lockOrganisation(tx, orgId)
    if (!plan) throw errors.notFound('organisation')
    return plan
  }

  /** The organisation's site, both locked. */
  async function lockOwn(tx: Sql, actor: Actor, siteId: string): Promise<SiteFacts> {
    await lockOrganisation(tx, actor.orgId)
    await queries.lockSite(tx, siteId)
    return requireOwn(tx, actor, siteId)
  }

  /** How many more drops may be active. The organisation is locked. */
  async function roomFor(tx: Sql, orgId: string, plan: PlanName): Promise<number> {
    return plans[plan].activeDrops - (await queries.countActiveSites(tx, orgId, now()))
  }

  /** Reserves a slug for a new site inside the caller's transaction. */
  async function reserve(tx: Sql, owner: SiteOwner, wanted: WantedSite): Promise<SiteFacts> {
    const id = newId('st', clock.now())
    const isOwned = 'orgId' in owner
    const slug = wanted.slug ?? randomSlug()
    if (wanted.slug !== undefined) requireUsableSlug(wanted.slug)
    const row = {
      id,
      org_id: isOwned ? owner.orgId : null,
      slug,
      name: wanted.name ?? '',
      dns_target: `t-${randomBytes(8).toString('hex')}`,
      // An owned drop's clock begins with its first content.
      expires_at: isOwned ? null : new Date(clock.now() + config.anonymousLifetimeMs),
      anonymous_id: isOwned ? null : owner.anonymousId,
      anonymous_network: isOwned ? null : owner.network,
      claim_hash: isOwned ? null : owner.claimHash,
      created_at: now(),
    }
    const [, isTaken, site] = await inOrder(
      () => queries.insertSite(tx, row),
      () => queries.takeSlug(tx, slug, id, now()),
      () => queries.findSite(tx, id),
    )
    if (!site) throw new Error(`The drop ${id} was made and is not there`)
    if (isTaken) return site
    if (wanted.slug !== undefined) throw errors.slugTaken(slug)
    return { ...site, slug: await takeRandomSlug(tx, id) }
  }

  /** A new site without content, inside the caller's transaction; its routes are left to the caller. */
  async function add(tx: Sql, actor: Actor, wanted: WantedSite): Promise<SiteFacts> {
    const plan = await lockOrganisation(tx, actor.orgId)
    if ((await roomFor(tx, actor.orgId, plan)) < 1)
      throw errors.planLimit(`Your plan allows ${plans[plan].activeDrops} active drops. Delete one, or upgrade.`)
    const site = await reserve(tx, { orgId: actor.orgId }, wanted)
    await recordAudit(tx, {
      at: now(),
      orgId: actor.orgId,
      actor,
      action: 'site.created',
      subject: site.id,
      detail: { slug: site.slug },
    })
    return site
  }

  async function takeWantedSlug(tx: Sql, slug: string, siteId: string): Promise<void> {
    requireUsableSlug(slug)
    if (!(await queries.takeSlug(tx, slug, siteId, now()))) throw errors.slugTaken(slug)
  }

  function requireUsableSlug(slug: string): void {
    const refusal = refusalOf(slug)
    if (refusal) throw refusal
  }

  function refusalOf(slug: string): ApiError | undefined {
    const problem = slugProblem(slug)
    if (problem === 'invalid') return errors.invalidRequest(`slug: use ${SLUG_RULE}, with no hyphen at either end`)
    if (problem === 'reserved') return errors.slugReserved(slug)
    return problem === 'prefixed' ? errors.slugPrefixed(slug) : undefined
  }

  /** For a drop whose first one was taken already. */
  async function takeRandomSlug(tx: Sql, siteId: string): Promise<string> {
    for (let attempt = 1; attempt < MAX_SLUG_TRIES; attempt++) {
      const slug = randomSlug()
      if (!(await queries.takeSlug(tx, slug, siteId, now()))) continue
      await queries.updateSite(tx, siteId, { slug }, now())
      return slug
    }
    throw new Error('No random address is free')
  }

  /** Paused drops that fit the cap again are live. Whenever their owner does something that makes room, or comes back. */
  async function resumeFitting(tx: RoutingTransaction, orgId: string): Promise<void> {
    const plan = await queries.lockOrganisation(tx, orgId)
    if (!plan) return
    const resumed = resumable(await queries.listForCap(tx, orgId, now()), plans[plan].activeDrops)
    if (resumed.length === 0) return
    await queries.setPaused(tx, resumed, null)
    for (const id of resumed) await refreshRoutes(tx, id)
  }

  /** A paid plan has ended: drops beyond the cap pause. Returns which; their routes are left to the caller. */
  async function pauseBeyondCap(tx: Sql, orgId: string, plan: PlanName): Promise<string[]> {
    const paused = pausedByEnd(await queries.listForCap(tx, orgId, now()), plans[plan].activeDrops)
    await queries.setPaused(tx, paused, now())
    return paused
  }

  /** Deletes for good, inside the caller's transaction; the address says "gone" from then on. */
  async function remove(tx: RoutingTransaction, site: SiteFacts): Promise<void> {
    await queries.markDeleted(tx, site.id, now())
    // There was never anything to see at the address of a drop without content: it is free again at once.
    const wasPublished = site.next_version_number > 1
    const coolsUntil = clock.now() + (wasPublished ? config.slugCooldownMs : 0)
    await queries.releaseSlug(tx, site.slug, 'tombstone', new Date(coolsUntil))
    await queries.buryFormerSlugs(tx, site.id)
    await refreshRoutes(tx, site.id)
  }

  /** Its owner's mailbox is proved, or no longer is: what visitors meet at each drop is decided anew. */
  async function refreshOwned(tx: RoutingTransaction, userId: string): Promise<void> {
    for (const id of await queries.siteIdsOfOwner(tx, userId)) await refreshRoutes(tx, id)
  }

  /** With its organisation goes every drop. */
  async function removeAll(tx: RoutingTransaction, orgId: string): Promise<void> {
    for (const site of await queries.listSites(tx, orgId)) await remove(tx, site)
  }

  async function rename(tx: Sql, site: SiteFacts, slug: string): Promise<void> {
    if (site.taken_down_at)
      throw errors.forbidden('This drop was removed by trust and safety. Its address stays as it is.')
    await takeWantedSlug(tx, slug, site.id)
    await queries.releaseSlug(tx, site.slug, 'former', new Date(clock.now() + config.slugCooldownMs))
  }

  /** Columns that a PATCH sets, besides the password. */
  function columnsOf(site: SiteFacts, patch: SitePatch): queries.SiteChanges {
    if (patch.analytics != null && !plans[site.plan].analytics) throw errors.planFeature('Analytics')
    return {
      ...(patch.name === undefined ? {} : { name: patch.name }),
      ...(patch.slug === undefined ? {} : { slug: patch.slug }),
      ...(patch.spa_fallback === undefined ? {} : { spa_fallback: patch.spa_fallback }),
      ...(patch.gallery === undefined ? {} : { in_gallery: patch.gallery }),
      ...(patch.analytics === undefined ? {} : { analytics: patch.analytics }),
    }
  }

  return {
    requireOwn,
    lockOwn,
    lockOrganisation,
    roomFor,
    reserve,
    add,
    remove,
    refreshOwned,
    removeAll,
    pauseBeyondCap,
    resumeFitting,
    find: queries.findSite,
    showAll,
    get: showOwn,
    async lookAtSlug(actor, slug, siteId) {
      if (siteId !== undefined) await requireOwn(sql, actor, siteId)
      const others = similarSlugs(slug)
      const taken = new Set(await queries.listTakenSlugs(sql, [slug, ...others], siteId, now()))
      const refusal = refusalOf(slug) ?? (taken.has(slug) ? errors.slugTaken(slug) : undefined)
      return refusal ? { refusal, others: others.filter((other) => !taken.has(other)).slice(0, 3) } : undefined
    },
    organisationOf: (siteId) => queries.findOrganisationOf(sql, siteId),

    async findId(actor, name) {
      if (name.startsWith('st_')) return name
      const slug = /^(?:https?:\/\/)?([a-z0-9-]+)(?:[.:/].*)?$/i.exec(name.trim())?.[1]?.toLowerCase()
      const id = slug === undefined ? undefined : await queries.findOwnSlug(sql, actor.orgId, slug)
      if (id === undefined) throw errors.notFound()
      return id
    },

    async list(actor) {
      return showAll(await queries.listSites(sql, actor.orgId))
    },

    async create(actor, wanted) {
      const { value: site, changes } = await changeRoutes(sql, async (tx) => {
        const added = await add(tx, actor, wanted)
        await refreshRoutes(tx, added.id)
        return added
      })
      return { value: shown(site, 0), ...(await routing.propagate(changes)) }
    },

    async patch(actor, siteId, patch) {
      const before = await requireOwn(sql, actor, siteId)
      const password =
        patch.password === undefined ? undefined : await preparePassword(before.plan, before, patch.password)
      const columns = columnsOf(before, patch)
      const { changes } = await changeRoutes(sql, async (tx) => {
        await queries.lockSite(tx, siteId)
        const site = await requireOwn(tx, actor, siteId)
        if (patch.slug !== undefined && patch.slug !== site.slug) await rename(tx, site, patch.slug)
        await queries.updateSite(tx, siteId, columns, now())
        if (password !== undefined) await writePassword(tx, site, password, now())
        await refreshRoutes(tx, siteId)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'site.updated',
          subject: siteId,
          detail: { fields: Object.keys(patch) },
        })
      })
      const { pending } = await routing.propagate(changes)
      return { value: await showOwn(actor, siteId), pending }
    },

    async delete(actor, siteId) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const site = await lockOwn(tx, actor, siteId)
        await remove(tx, site)
        await resumeFitting(tx, actor.orgId)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'site.deleted',
          subject: siteId,
          detail: { slug: site.slug },
        })
      })
      return { value: undefined, ...(await routing.propagate(changes)) }
    },

    async choose(actor, siteIds) {
      const chosen = [...new Set(siteIds)]
      if (chosen.length > plans.free.activeDrops)
        throw errors.invalidRequest(`Choose at most ${plans.free.activeDrops} drops: the free plan keeps as many live.`)
      const { changes } = await changeRoutes(sql, async (tx) => {
        const plan = await lockOrganisation(tx, actor.orgId)
        for (const id of chosen) await requireOwn(tx, actor, id)
        await queries.setChosen(tx, actor.orgId, chosen)
        const all = await queries.listForCap(tx, actor.orgId, now())
        const { pause, resume } = swapForChosen(all, plans[plan].activeDrops)
        await queries.setPaused(tx, pause, now())
        await queries.setPaused(tx, resume, null)
        for (const id of [...pause, ...resume].toSorted()) await refreshRoutes(tx, id)
        await recordAudit(tx, {
          at: now(),
          orgId: actor.orgId,
          actor,
          action: 'site.chosen',
          subject: actor.orgId,
          detail: { chosen, pause, resume },
        })
      })
      const { pending } = await routing.propagate(changes)
      return { value: await showAll(await queries.listSites(sql, actor.orgId)), pending }
    },

    async dailyViews(actor, siteId, days) {
      await requireOwn(sql, actor, siteId)
      const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
      const first = clock.now() - (days - 1) * DAY_MS
      const counts = new Map((await queries.dailyViews(sql, siteId, dayOf(first))).map((row) => [row.day, row.count]))
      return Array.from({ length: days }, (_, index) => dayOf(first + index * DAY_MS)).map((day) => ({
        day,
        count: counts.get(day) ?? 0,
      }))
    },

    async usage(actor) {
      const plan = plans[actor.plan]
      const all = await queries.listSites(sql, actor.orgId)
      return {
        plan: plan.name,
        drops: { used: await queries.countActiveSites(sql, actor.orgId, now()), limit: plan.activeDrops },
        storage_bytes: { used: await queries.storedBytes(sql, actor.orgId), limit: plan.storageBytes },
        upload_bytes: { limit: plan.uploadBytes },
        versions_per_drop: { limit: plan.versionsKept },
        paused_drops: all.filter((site) => site.paused_at).length,
        views_30d: (await showAll(all)).reduce((sum, site) => sum + site.views_30d, 0),
      }
    },
  }
}
