/** Decisions about sites: no I/O, no clock. */
import { plans, type PlanName } from '../../ground/terms/plans.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import type { SiteRoute, SiteState } from '../../../shared/contracts/route-record.ts'
import type { Analytics } from '../../../shared/contracts/analytics.ts'
import type { VisibilityPolicy } from '../../people/organisations/rules.ts'
import type { ThreadMails, ThreadsVisible } from '../threads/rules.ts'
import { accessModeOf } from '../viewers/access.ts'
import type { NewRoute, ToldRoute } from '../../ground/routing/outbox.ts'
import type { WebhookEvent } from '../../ground/routing/webhook-outbox.ts'

/** A site with what its serving depends on. */
export interface SiteFacts {
  id: string
  org_id: string | null
  slug: string
  name: string
  title: string
  /** In the mode `viewers` no hash, but a word (shared/contracts/admission.ts). */
  password_hash: string | null
  password_generation: number
  /** How long files of former versions stay reachable; null: as the service's setting says. */
  keep_old_files_days: number | null
  /** Who may see versions that are not live. */
  previews: PreviewAccess
  /** Who sees comments besides members, and how soon the owner is told of them. */
  threads_visible: ThreadsVisible
  thread_mails: ThreadMails
  /** The live version's manifest with files of former versions beside it, and the live manifest that it was made of. */
  served_manifest_hash: string | null
  served_for: string | null
  kept_files: number
  kept_bytes: number
  kept_until: Date | null
  kept_ends_at: Date | null
  /** Visitors meet 410 from then on. */
  access_until: Date | null
  /** Strangers may ask the owner to be let in. */
  access_requests: boolean
  /** How long a browser is let in; null: as long as the service says. */
  admission_ms: number | null
  /** Machines find a list of its pages at /llms.txt, where it has none of its own. */
  llms_txt: boolean
  /** What its owner allows machines to do with it. */
  ai: AiUse
  /** Its owner wants a picture for where its address is shared. */
  card: boolean
  /** What the drawn card shows (`cardSource`), and its blob; null where there is none. */
  card_source: string | null
  card_hash: string | null
  card_size: number | null
  analytics: Analytics | null
  spa_fallback: boolean
  in_gallery: boolean
  /** The owner wants it among those that stay live when a plan ends. */
  stays_live: boolean
  live_version_id: string | null
  next_version_number: number
  expires_at: Date | null
  expired_at: Date | null
  /** When the present clock began, where neither a publish nor a sign-in did: live again, or a plan that ended. */
  clock_started_at: Date | null
  paused_at: Date | null
  taken_down_at: Date | null
  taken_down_reason: string | null
  deleted_at: Date | null
  dns_target: string
  created_at: Date
  updated_at: Date
  published_at: Date | null
  /** `anonymous` without an owner. */
  plan: PlanName
  /** What its organisation allows. */
  visibility_policy: VisibilityPolicy
  owner_verified: boolean
  /** The owner's last sign-in; null without an owner. */
  owner_seen_at: Date | null
}

/** NOT_SERVED is what a drop says of kept files where its version is served as it was published, without any. */
export const NOT_SERVED = {
  served_manifest_hash: null,
  served_for: null,
  kept_files: 0,
  kept_bytes: 0,
  kept_until: null,
  kept_ends_at: null,
} as const

/** What a drop without an owner is before anything was set: the defaults of its columns in Postgres. */
export const UNSET: Omit<
  SiteFacts,
  'id' | 'slug' | 'name' | 'access_until' | 'expires_at' | 'dns_target' | 'created_at' | 'updated_at'
> = {
  org_id: null,
  title: '',
  password_hash: null,
  password_generation: 0,
  keep_old_files_days: null,
  previews: 'link',
  threads_visible: 'commenters',
  thread_mails: 'hourly',
  ...NOT_SERVED,
  access_requests: true,
  admission_ms: null,
  llms_txt: true,
  ai: 'allow',
  card: false,
  card_source: null,
  card_hash: null,
  card_size: null,
  analytics: null,
  spa_fallback: false,
  in_gallery: false,
  stays_live: false,
  live_version_id: null,
  next_version_number: 1,
  expired_at: null,
  clock_started_at: null,
  paused_at: null,
  taken_down_at: null,
  taken_down_reason: null,
  deleted_at: null,
  published_at: null,
  plan: 'anonymous',
  visibility_policy: 'open',
  owner_verified: false,
  owner_seen_at: null,
}

export interface RetainedVersion {
  id: string
  number: number
  manifest_hash: string
}

/** A version as it is stored, with the manifest whose blobs the open spans of its site were when it was the newest. */
export interface SpannedVersion extends RetainedVersion {
  readonly spans_of: string | null
}

/** `no-training`: models may read it for an answer, not learn from it; `none`: neither. */
export const aiUses = ['allow', 'no-training', 'none'] as const
export type AiUse = (typeof aiUses)[number]

/** `link`: whoever has the address. */
export const previewAccesses = ['link', 'members', 'off'] as const
export type PreviewAccess = (typeof previewAccesses)[number]

/** A name that shows a version which need not be live. */
export interface NamedVersion {
  readonly name: string
  readonly version_number: number
}

/**
 * The one place that says what a visitor meets. The order is the order of severity: what we removed stays removed,
 * what is gone stays gone, and only then do clocks, plans and the owner's mailbox matter.
 */
export function stateOf(site: SiteFacts, now: number): SiteState {
  if (site.deleted_at) return 'gone'
  if (site.taken_down_at) return 'removed'
  if (site.expired_at || (site.expires_at && site.expires_at.getTime() <= now)) return 'expired'
  if (site.paused_at) return 'paused'
  if (!site.live_version_id) return 'reserved'
  if (site.org_id !== null && !site.owner_verified) return 'unverified'
  return isOver(site, now) ? 'expired' : 'live'
}

/** The time is over for which its owner wanted it seen. Nothing is removed by that, and the owner can extend it. */
export function isOver({ access_until }: Pick<SiteFacts, 'access_until'>, now: number): boolean {
  return access_until !== null && access_until.getTime() <= now
}

/** `ended`: admissions and passes of reviewers that were taken back before their end. */
export function siteRouteOf(
  site: SiteFacts,
  versions: readonly RetainedVersion[],
  sitesDomain: string,
  now: number,
  { ended = [], named = [] }: { ended?: readonly [string, number][]; named?: readonly NamedVersion[] } = {},
): Omit<SiteRoute, 'v' | 'revision'> {
  const plan = plans[site.plan]
  const live = versions.find((version) => version.id === site.live_version_id)
  const state = stateOf(site, now)
  // A drop that has only previews is no way around verifying.
  const isHidden = state === 'gone' || (state === 'reserved' && site.org_id !== null && !site.owner_verified)
  return {
    kind: 'site',
    host: siteHost(site.slug, sitesDomain),
    site_id: site.id,
    state,
    manifest: state === 'gone' || !live ? null : servedManifestOf(site, live),
    version_number: live?.number ?? 0,
    versions: isHidden ? [] : versions.map((version) => [version.number, version.manifest_hash]),
    expires_at: earliestOf([site.expires_at, site.access_until])?.getTime() ?? null,
    // A password stays in force when the plan ends: no private drop becomes public by a missed payment.
    password: site.password_hash ? { hash: site.password_hash, generation: site.password_generation } : null,
    ...endedOf(site, [...ended]),
    spa_fallback: site.spa_fallback,
    badge: plan.badge,
    analytics: plan.analytics ? site.analytics : null,
    ...(site.previews === 'link' ? {} : { previews: site.previews }),
    ...(site.llms_txt ? {} : { llms_txt: false as const }),
    ...(site.ai === 'allow' ? {} : { ai: site.ai }),
    ...cardOf(site),
    ...(named.length === 0 || isHidden ? {} : { names: named.map((each) => [each.name, each.version_number]) }),
  }
}

function endedOf(site: SiteFacts, ended: [string, number][]): Pick<SiteRoute, 'viewers' | 'review'> {
  if (accessModeOf(site) === 'viewers') return { viewers: { ended, asks: site.access_requests } }
  return ended.length === 0 ? {} : { review: { generation: site.password_generation, ended } }
}

/** Another number where cards are drawn otherwise: all are drawn anew then. */
export const CARD_DRAWING = '1'

/** A card is for everyone: a drop that not everyone may see has none, nor one whose content was taken down. */
export function wantsCard(site: SiteFacts): boolean {
  const isShown = site.live_version_id !== null && site.deleted_at === null && site.taken_down_at === null
  return site.card && site.org_id !== null && isShown && accessModeOf(site) === 'public'
}

/** What a card depends on. */
export function cardSource({ title, name, slug }: Pick<SiteFacts, 'title' | 'name' | 'slug'>): string {
  return [CARD_DRAWING, title, name, slug].join('\n')
}

/** One that shows what was there before is no card any more: its title may be what the owner wanted gone. */
export function cardOf(site: SiteFacts): Pick<SiteRoute, 'card'> {
  const { card_hash: hash, card_size: size } = site
  if (hash === null || size === null || !wantsCard(site) || site.card_source !== cardSource(site)) return {}
  return { card: [hash, size] }
}

/** What is kept of former versions is served beside the very manifest that it was put together with, and no other. */
function servedManifestOf(site: SiteFacts, live: RetainedVersion): string {
  return site.served_manifest_hash !== null && site.served_for === live.manifest_hash
    ? site.served_manifest_hash
    : live.manifest_hash
}

const CLOSED_STATES: ReadonlySet<SiteState> = new Set(['expired', 'paused', 'removed'])

/** What arriving at a state is called. Being live is told of a drop that was closed, and of no other. */
const STATE_EVENTS: Partial<Record<SiteState, WebhookEvent>> = {
  gone: 'drop.deleted',
  expired: 'drop.expired',
  paused: 'drop.paused',
  live: 'drop.restored',
}

/** What owners' webhooks hear when a drop's record changes. A new drop has no record yet. */
export function eventsOf(before: ToldRoute | undefined, after: ToldRoute): WebhookEvent[] {
  if (!before) return []
  const isTold = before.state !== after.state && (after.state !== 'live' || CLOSED_STATES.has(before.state))
  const event = isTold ? STATE_EVENTS[after.state] : undefined
  const isSameDoor =
    before.password?.hash === after.password?.hash && (before.viewers === undefined) === (after.viewers === undefined)
  return [
    ...(event ? [event] : []),
    ...(after.state === 'gone' || isSameDoor ? [] : (['drop.access_changed'] as const)),
  ]
}

export interface HeldSlug {
  slug: string
  kind: 'current' | 'former' | 'tombstone'
  /** When others may take it; null while it is in use. */
  free_at: Date | null
}

/** Every change of a site writes one record per slug that still redirects: their number is bounded. */
const MAX_REDIRECTING_SLUGS = 10

/** The slugs of a site by what they answer: the site itself, a redirect to it, or nothing any more. */
export function sortSlugs(
  slugs: readonly HeldSlug[],
  isDeleted: boolean,
  now: number,
): { serving: string[]; redirecting: string[]; retired: string[] } {
  const named = (kind: HeldSlug['kind']): string[] => slugs.filter((held) => held.kind === kind).map(({ slug }) => slug)
  const former = slugs
    .filter(({ kind }) => kind === 'former')
    .map(({ slug, free_at }) => ({ slug, freeAt: free_at?.getTime() ?? 0 }))
    .toSorted((a, b) => b.freeAt - a.freeAt)
  const redirecting = former.filter(({ freeAt }, age) => age < MAX_REDIRECTING_SLUGS && freeAt > now)
  return {
    serving: [...named('current'), ...(isDeleted ? named('tombstone') : [])],
    redirecting: redirecting.map(({ slug }) => slug),
    retired: former.filter((held) => !redirecting.includes(held)).map(({ slug }) => slug),
  }
}

/** Former slugs lead to the current address while they cool down. */
export function redirectRouteOf(formerSlug: string, site: SiteFacts, sitesDomain: string): NewRoute {
  return { kind: 'redirect', host: siteHost(formerSlug, sitesDomain), to: siteHost(site.slug, sitesDomain) }
}

/** A host that shows one of the pages for drops that are closed, and nothing of a drop. */
export function closedRouteOf(host: string, siteId: string, state: 'paused' | 'removed'): NewRoute {
  return {
    kind: 'site',
    host,
    site_id: siteId,
    state,
    manifest: null,
    version_number: 0,
    versions: [],
    expires_at: null,
    password: null,
    spa_fallback: false,
    badge: false,
    analytics: null,
  }
}

export interface Lifetimes {
  readonly anonymousLifetimeMs: number
  readonly freeIdleLifetimeMs: number
}

/**
 * Does time count against this drop? Never while visitors do not see it for a reason of ours: a paused drop, one that
 * was taken down, one whose owner has not verified. Nor where there is nothing to show yet.
 */
function hasClock(site: SiteFacts): boolean {
  if (site.deleted_at || !site.live_version_id) return false
  switch (plans[site.plan].lifetime) {
    case 'permanent':
      return false
    case 'fixed':
      return true
    case 'idle':
      return !site.paused_at && !site.taken_down_at && site.owner_verified
  }
}

export type ClockColumns = Pick<SiteFacts, 'expires_at' | 'expired_at' | 'clock_started_at'>

/**
 * The one place that says when a drop ends. An anonymous drop's time is fixed. A free drop's counts from the latest of
 * its owner's last sign-in, its own last publish, and the moment since which it has a clock. What was promised once is
 * never shortened, by a change of the settings either.
 */
export function clockOf(site: SiteFacts, now: number, lifetimes: Lifetimes): ClockColumns {
  if (!hasClock(site)) return { expires_at: null, expired_at: null, clock_started_at: null }
  const clock_started_at = site.expires_at === null ? new Date(now) : site.clock_started_at
  const expires_at =
    plans[site.plan].lifetime === 'fixed'
      ? (site.expires_at ?? new Date(site.created_at.getTime() + lifetimes.anonymousLifetimeMs))
      : latestOf([
          site.expires_at,
          ...[site.owner_seen_at, site.published_at, clock_started_at].map(
            (start) => start && new Date(start.getTime() + lifetimes.freeIdleLifetimeMs),
          ),
        ])
  return { expires_at, expired_at: expires_at.getTime() > now ? null : site.expired_at, clock_started_at }
}

function earliestOf(times: readonly (Date | null)[]): Date | null {
  return times.reduce((first, time) => (first === null || (time !== null && time < first) ? time : first), null)
}

function latestOf(times: readonly (Date | null)[]): Date {
  return new Date(Math.max(...times.map((time) => time?.getTime() ?? 0)))
}

/** What the cap of active drops is held against. */
export interface CappedSite {
  id: string
  paused: boolean
  /** Reserved only: no visitor would miss it. */
  empty: boolean
  /** The owner wants it among those that stay live when a plan ends. */
  chosen: boolean
  publishedAt: number
}

/** Those that the owner chose, then those with content, then what was published last. */
function inOrderOfPrecedence(sites: readonly CappedSite[]): CappedSite[] {
  return sites.toSorted(
    (a, b) => Number(b.chosen) - Number(a.chosen) || Number(a.empty) - Number(b.empty) || b.publishedAt - a.publishedAt,
  )
}

const idsOf = (sites: readonly CappedSite[]): string[] => sites.map((site) => site.id)

/** Which drops pause when a plan ends: all that are live beyond the cap. The only time that a cap acts on what is there. */
export function pausedByEnd(sites: readonly CappedSite[], cap: number): string[] {
  const live = inOrderOfPrecedence(sites.filter((site) => !site.paused))
  return idsOf(live.slice(cap))
}

/** Which paused drops have room again. */
export function resumableDrops(sites: readonly CappedSite[], cap: number): string[] {
  const paused = inOrderOfPrecedence(sites.filter((site) => site.paused))
  return idsOf(paused.slice(0, Math.max(0, cap - (sites.length - paused.length))))
}

/**
 * Which pause and resume once an owner has chosen: chosen ones first, then those that are live. As many are live as
 * before, so that a choice swaps one against another and never costs a place.
 */
export function swapForChosen(sites: readonly CappedSite[], cap: number): { pause: string[]; resume: string[] } {
  const live = sites.filter((site) => !site.paused)
  const byChoice = inOrderOfPrecedence(sites).toSorted(
    (a, b) => Number(b.chosen) - Number(a.chosen) || Number(a.paused) - Number(b.paused),
  )
  const kept = new Set(byChoice.slice(0, Math.max(cap, live.length)))
  return {
    pause: idsOf(live.filter((site) => !kept.has(site))),
    resume: idsOf(sites.filter((site) => site.paused && kept.has(site))),
  }
}

/** The day that a moment's views are counted under, as the edges write it. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
