/** Sites: reserve, list, change settings, delete. Content arrives through versions/. */
import { recordAudit } from '../../people/audit/audit.ts'
import { DAY_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { parseDuration } from '../../../shared/settings/env.ts'
import { errors, type ApiError } from '../../../shared/contracts/errors.ts'
import { plans, upgradeFor, type PlanName } from '../../ground/terms/plans.ts'
import { similarSlugs } from '../../../shared/values/readable-slug.ts'
import { reaches, type Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { durationInWords } from '../../ground/terms/durations.ts'
import { accessModeOf, untilOf } from '../viewers/access.ts'
import { eraseThreads } from '../threads/threads.ts'
import { eraseViewers } from '../viewers/lists.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import { chooseStaying, pauseBeyondCap, requireChoosable, resumeFitting } from './settings/active-drops.ts'
import { createReservations, type Reservations, type WantedSite } from './settings/reservation.ts'
import type { Cards } from './settings/cards.ts'
import { showSite } from './settings/show-site.ts'
import { slugRefusal, takeWantedSlug } from './settings/slugs.ts'
import { preparePassword, writePassword } from './settings/protection.ts'
import { requireAccess, sharingBy, writeAccess, type AccessChange } from './settings/sharing-changes.ts'
import { MAX_UPLOADS_UNDER_WAY } from './uploads/under-way.ts'
import * as queries from './queries.ts'
import type { SiteKeptFiles } from './kept/kept-files.ts'
import type { RefreshRoutes } from './routing.ts'
import { dayOf, type SiteFacts } from './rules.ts'
import type { SitePatch, ApiSite } from './schemas.ts'

/** A result, and whether some edge may still serve the state before it. */
export interface Propagated<Value> {
  readonly value: Value
  readonly pending: boolean
}

export interface SitesDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  keptFiles: Pick<SiteKeptFiles, 'refit'>
  enqueueMail: EnqueueMail
  config: Pick<
    ControlConfig,
    'baseUrl' | 'sitesDomain' | 'publicPort' | 'anonymousLifetimeMs' | 'slugCooldownMs' | 'viewerAdmissionMs'
  >
  cards: Pick<Cards, 'bringUpToDate'>
}

/** What an organisation uses, and what its plan allows. */
export interface Usage {
  readonly plan: PlanName
  readonly drops: { readonly used: number; readonly limit: number }
  readonly storage_bytes: { readonly used: number; readonly limit: number }
  readonly uploads_under_way: { readonly used: number; readonly limit: number; readonly bytes: number }
  readonly upload_bytes: { readonly limit: number }
  readonly versions_per_drop: { readonly limit: number }
  readonly previews_per_drop: { readonly limit: number }
  readonly paused_drops: number
  readonly views_30d: number
}

/** Callers that hand in a transaction get their work done inside it, and its routes written unless it says otherwise. */
export interface Sites extends Reservations {
  /** Another organisation's site, or one that the credential is not for, is as absent as a missing one: `not_found`. */
  requireOwn(sql: Sql, actor: Pick<Actor, 'orgId' | 'reach'>, siteId: string): Promise<SiteFacts>
  /** The organisation's site, both locked. */
  lockOwn(tx: Sql, actor: Actor, siteId: string): Promise<SiteFacts>
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
  /** By the name in its address, whoever's it is. */
  findNamed(slug: string): Promise<SiteFacts | undefined>
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
  /** Those of these that are the actor's to see, in this order. */
  showSome(actor: Actor, siteIds: readonly string[]): Promise<ApiSite[]>
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

export function createSites(deps: SitesDependencies): Sites {
  const { sql, clock, routing, refreshRoutes, keptFiles, config } = deps
  const now = (): Date => new Date(clock.now())
  const reservations = createReservations({ clock, config })
  const reading = createReading({ sql, clock, config })
  async function lockOwn(tx: Sql, actor: Actor, siteId: string): Promise<SiteFacts> {
    await reservations.lockOrganisation(tx, actor.orgId)
    await queries.lockSite(tx, siteId)
    return requireOwn(tx, actor, siteId)
  }

  async function remove(tx: RoutingTransaction, site: SiteFacts): Promise<void> {
    await queries.markDeleted(tx, site.id, now())
    await eraseWhatPeopleSaid(tx, site.id)
    // There was never anything to see at the address of a drop without content: it is free again at once.
    const wasPublished = site.next_version_number > 1
    const coolsUntil = clock.now() + (wasPublished ? config.slugCooldownMs : 0)
    await queries.releaseSlug(tx, site.slug, 'tombstone', new Date(coolsUntil))
    await queries.buryFormerSlugs(tx, site.id)
    await refreshRoutes(tx, site.id)
  }

  async function removeAll(tx: RoutingTransaction, orgId: string): Promise<void> {
    for (const site of await queries.listSites(tx, orgId)) await remove(tx, site)
  }

  return {
    ...reservations,
    ...reading,
    requireOwn,
    lockOwn,
    remove,
    async refreshOwned(tx, userId) {
      for (const id of await queries.siteIdsOfOwner(tx, userId)) await refreshRoutes(tx, id)
    },
    removeAll,
    pauseBeyondCap: (tx, orgId, plan) => pauseBeyondCap(tx, orgId, plan, now()),
    resumeFitting: (tx, orgId) => resumeFitting(refreshRoutes, tx, orgId, now()),
    async create(actor, wanted) {
      const { value: site, changes } = await changeRoutes(sql, async (tx) => {
        const added = await reservations.add(tx, actor, wanted)
        await refreshRoutes(tx, added.id)
        return added
      })
      return { value: showSite(config, site, 0, clock.now()), ...(await routing.propagate(changes)) }
    },

    async patch(actor, siteId, patch) {
      const before = await requireOwn(sql, actor, siteId)
      requireAccess(before, accessChangeOf(before, patch, clock.now()))
      const password = patch.password == null ? undefined : await preparePassword(before.plan, before, patch.password)
      const columns = columnsOf(before, patch, config.viewerAdmissionMs)
      const { changes } = await changeRoutes(sql, async (tx) => {
        await queries.lockSite(tx, siteId)
        const site = await requireOwn(tx, actor, siteId)
        if (patch.slug !== undefined && patch.slug !== site.slug)
          await rename(tx, site, patch.slug, { now: now(), cooldownMs: config.slugCooldownMs })
        await queries.updateSite(tx, siteId, columns, now())
        if (password !== undefined) await writePassword(tx, site, password, now())
        const change = accessChangeOf(site, patch, clock.now())
        await writeAccess(tx, site, change, sharingBy(actor, site, now(), deps))
        if (patch.keep_old_files_days !== undefined) await keptFiles.refit(tx, siteId)
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
      await deps.cards.bringUpToDate({ id: siteId, card: patch.card ?? before.card })
      return { value: await reading.get(actor, siteId), pending }
    },

    async delete(actor, siteId) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const site = await lockOwn(tx, actor, siteId)
        await remove(tx, site)
        await resumeFitting(refreshRoutes, tx, actor.orgId, now())
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
      if (actor.reach.sites !== undefined)
        throw errors.forbidden('The choice is about every drop. Use a token that is not bound to some of them.')
      const chosen = requireChoosable(siteIds)
      const { changes } = await changeRoutes(sql, async (tx) => {
        const plan = await reservations.lockOrganisation(tx, actor.orgId)
        for (const id of chosen) await requireOwn(tx, actor, id)
        const { pause, resume } = await chooseStaying(tx, { orgId: actor.orgId, plan, chosen }, now())
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
      return { value: await reading.list(actor), pending }
    },
  }
}

type Reading = Pick<
  Sites,
  | 'find'
  | 'findNamed'
  | 'showAll'
  | 'get'
  | 'lookAtSlug'
  | 'organisationOf'
  | 'findId'
  | 'list'
  | 'showSome'
  | 'dailyViews'
  | 'usage'
>

/** What changes nothing. */
function createReading({ sql, clock, config }: Pick<SitesDependencies, 'sql' | 'clock' | 'config'>): Reading {
  const now = (): Date => new Date(clock.now())
  const shown = (site: SiteFacts, views: number): ApiSite => showSite(config, site, views, clock.now())

  async function viewsOf(siteIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return siteIds.length === 0 ? new Map() : queries.viewsSince(sql, siteIds, dayOf(clock.now() - 30 * DAY_MS))
  }

  async function showAll(sites: readonly SiteFacts[]): Promise<ApiSite[]> {
    const views = await viewsOf(sites.map(({ id }) => id))
    return sites.map((site) => shown(site, views.get(site.id) ?? 0))
  }

  async function showOwn(actor: Actor, siteId: string): Promise<ApiSite> {
    const [site] = await showAll([await requireOwn(sql, actor, siteId)])
    if (!site) throw errors.notFound()
    return site
  }

  return {
    find: queries.findSite,
    findNamed: (slug) => queries.findSiteBySlug(sql, slug),
    showAll,
    get: showOwn,
    async lookAtSlug(actor, slug, siteId) {
      if (siteId !== undefined) await requireOwn(sql, actor, siteId)
      const others = similarSlugs(slug)
      const taken = new Set(await queries.listTakenSlugs(sql, [slug, ...others], siteId, now()))
      const refusal = slugRefusal(slug) ?? (taken.has(slug) ? errors.slugTaken(slug) : undefined)
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
      return showAll(await listReached(sql, actor))
    },

    async showSome(actor, siteIds) {
      if (siteIds.length === 0) return []
      const [found, views] = await Promise.all([queries.listSitesById(sql, actor.orgId, siteIds), viewsOf(siteIds)])
      const own = new Map(found.filter(({ id }) => reaches(actor.reach, id)).map((site) => [site.id, site]))
      return siteIds.flatMap((id) => own.get(id) ?? []).map((site) => shown(site, views.get(site.id) ?? 0))
    },

    async dailyViews(actor, siteId, days) {
      await requireOwn(sql, actor, siteId)
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
      const underWay = await queries.uploadsUnderWay(sql, actor.orgId, now())
      const stored = await queries.storedBytes(sql, actor.orgId)
      return {
        plan: plan.name,
        drops: { used: await queries.countActiveSites(sql, actor.orgId, now()), limit: plan.activeDrops },
        storage_bytes: {
          used: stored.versions + stored.kept + underWay.bytes,
          limit: plan.storageBytes,
        },
        uploads_under_way: { used: underWay.uploads, limit: MAX_UPLOADS_UNDER_WAY, bytes: underWay.bytes },
        upload_bytes: { limit: plan.uploadBytes },
        versions_per_drop: { limit: plan.versionsKept },
        previews_per_drop: { limit: plan.namedPreviews },
        paused_drops: all.filter((site) => site.paused_at).length,
        views_30d: (await showAll(all)).reduce((sum, site) => sum + site.views_30d, 0),
      }
    },
  }
}

async function requireOwn(sql: Sql, actor: Pick<Actor, 'orgId' | 'reach'>, siteId: string): Promise<SiteFacts> {
  const site = await queries.findOwnSite(sql, actor.orgId, siteId)
  if (!site || !reaches(actor.reach, site.id)) throw errors.notFound()
  return site
}

/** The organisation's sites that the credential is for. */
export async function listReached(sql: Sql, actor: Pick<Actor, 'orgId' | 'reach'>): Promise<SiteFacts[]> {
  return (await queries.listSites(sql, actor.orgId)).filter(({ id }) => reaches(actor.reach, id))
}

/** A drop is deleted: who could see it, and what was said about it. */
async function eraseWhatPeopleSaid(tx: Sql, siteId: string): Promise<void> {
  await eraseViewers(tx, siteId)
  await eraseThreads(tx, siteId)
}

async function rename(
  tx: Sql,
  site: SiteFacts,
  slug: string,
  { now, cooldownMs }: { now: Date; cooldownMs: number },
): Promise<void> {
  if (site.taken_down_at)
    throw errors.forbidden('This drop was removed by trust and safety. Its address stays as it is.')
  await takeWantedSlug(tx, slug, site.id, now)
  await queries.releaseSlug(tx, site.slug, 'former', new Date(now.getTime() + cooldownMs))
}

/**
 * What a PATCH says of who may see the drop, and until when. A password that is taken away means everyone; a drop without
 * one, which only its viewers see, stays as it is.
 */
function accessChangeOf(site: SiteFacts, patch: SitePatch, now: number): AccessChange {
  const opens = patch.password === null && accessModeOf(site) === 'password'
  const mode = patch.access_mode ?? (opens ? 'public' : undefined)
  return { wanted: { mode, until: untilOf(patch, now) }, hasPassword: patch.password != null }
}

/** Throws where it is longer than the service lets anyone in. */
function admissionMs(text: string | null, mostMs: number): number | null {
  const ms = text === null ? null : parseDuration(text)
  if (ms === undefined || (ms !== null && (ms < SECOND_MS || ms > mostMs)))
    throw errors.invalidRequest(
      `viewer_admission: send a duration such as 12h or 7d, at most ${durationInWords(mostMs)}.`,
    )
  return ms
}

/** Columns that a PATCH sets, besides those that say who may see the drop. */
function columnsOf(site: SiteFacts, patch: SitePatch, mostAdmissionMs: number): queries.SiteChanges {
  if (patch.analytics != null && !plans[site.plan].analytics)
    throw errors.planFeature(
      'Analytics',
      upgradeFor(({ analytics }) => analytics),
    )
  return {
    ...(patch.name === undefined ? {} : { name: patch.name }),
    ...(patch.slug === undefined ? {} : { slug: patch.slug }),
    ...(patch.spa_fallback === undefined ? {} : { spa_fallback: patch.spa_fallback }),
    ...(patch.gallery === undefined ? {} : { in_gallery: patch.gallery }),
    ...(patch.analytics === undefined ? {} : { analytics: patch.analytics }),
    ...(patch.previews === undefined ? {} : { previews: patch.previews }),
    ...(patch.threads_visible === undefined ? {} : { threads_visible: patch.threads_visible }),
    ...(patch.thread_mails === undefined ? {} : { thread_mails: patch.thread_mails }),
    ...(patch.keep_old_files_days === undefined ? {} : { keep_old_files_days: patch.keep_old_files_days }),
    ...(patch.llms_txt === undefined ? {} : { llms_txt: patch.llms_txt }),
    ...(patch.ai === undefined ? {} : { ai: patch.ai }),
    ...(patch.card === undefined ? {} : { card: patch.card }),
    ...(patch.access_requests === undefined ? {} : { access_requests: patch.access_requests }),
    ...(patch.viewer_admission === undefined
      ? {}
      : { admission_ms: admissionMs(patch.viewer_admission, mostAdmissionMs) }),
  }
}
