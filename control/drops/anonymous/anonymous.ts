/** Anonymous drops: publish without an account, find them again, claim them. */
import type { Inspection } from '../trust/phishing.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { HOUR_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { dropCapInWords, orUpgrade, plans, type PlanName } from '../../ground/terms/plans.ts'
import { PROOF_LIFETIME_MS } from '../../../shared/secrets/proof-of-work.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { Actor } from '../../ground/actor.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import type { PreparedVersion, Publishing } from '../publishing/contract.ts'
import { receiveText } from '../publishing/intake/take-in.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import type { PublishReport } from '../sites/schemas.ts'
import type { Propagated, Sites } from '../sites/sites.ts'
import { RandomSlugTaken } from '../sites/versions/commit.ts'
import type { Versions } from '../sites/versions/versions.ts'
import type { BotCheck, Signals } from './bot-check.ts'
import * as queries from './queries.ts'
import type { AnonymousStorage } from './storage.ts'

export interface PageInspector {
  /** `hash`: the blob of the page. `network`: who sent it; senders share the thread. Throws `unavailable` when it could not be decided. */
  inspect(hash: string, network: string): Promise<Inspection>
  /** Puts a published page into the review queue, in the publish's transaction. */
  queue(sql: Sql, siteId: string, inspection: Inspection): Promise<void>
}

export interface Publisher {
  readonly ip: string
  readonly anonymousId: string
  readonly signals: Omit<Signals, 'recentRejections'>
}

export interface AnonymousDrop {
  readonly url: string
  readonly id: string
  readonly slug: string
  readonly claim_url: string
  readonly expires_at: string
  /** What the publisher should know: dead links, rules that do not work. */
  readonly report: PublishReport
}

interface Adoption {
  readonly ids: readonly string[]
  readonly plan: PlanName
  /** How many stay anonymous, because the plan has no room for them. */
  readonly left: number
}

interface AnonymousDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'lockOrganisation' | 'roomFor' | 'showAll' | 'find' | 'remove'>
  versions: Pick<Versions, 'commitUnclaimed' | 'requireStorage'>
  publishing: Pick<Publishing, 'receive'>
  limiter: RateLimiter
  inspector: PageInspector
  storage: AnonymousStorage
  botCheck: BotCheck
  config: Pick<ControlConfig, 'baseUrl' | 'sitesDomain' | 'publicPort' | 'anonymousPerHour' | 'allowsAnonymous'>
}

/** A drop of a browser without an account, as its list shows it. */
export interface RememberedDrop {
  readonly state: 'live' | 'expired' | 'removed'
  readonly claimable: boolean
  readonly id: string
  readonly slug: string
  readonly url: string
  readonly title: string
  readonly created_at: string
  readonly expires_at: string
  readonly views: number
}

export interface AnonymousText {
  readonly filename: string
  readonly content: string
  readonly title?: string | undefined
  /** When visitors meet 410. */
  readonly until?: Date | null | undefined
}

export interface Anonymous {
  /** The most that one upload may hold. */
  readonly capBytes: number
  /** Called before a body is read: whether strangers may publish at all (403 `anonymous_off`), limits, and the bot check, which may wait, refuse or ask for a proof. */
  admit(publisher: Publisher): Promise<void>
  /** Refuses it where there is no room for another drop. `until`: when visitors meet 410, where that is before the end of its clock. */
  publish(
    publisher: Publisher,
    prepared: PreparedVersion,
    name: string,
    until?: Date | null,
  ): Promise<Propagated<AnonymousDrop>>
  publishText(publisher: Publisher, text: AnonymousText): Promise<Propagated<AnonymousDrop>>
  /** What this browser made and has not claimed, also what can no longer be claimed: `claimable` tells them apart. */
  list(anonymousId: string): Promise<RememberedDrop[]>
  /** Immediate and permanent, for whoever has the browser that made it, or the link to claim it. */
  delete(by: { anonymousId: string; siteId: string } | { claim: string }): Promise<void>
  /**
   * What this browser made. A new account gets all of it, as promised, whatever its plan's cap; signing in claims the
   * newest that there is room for, and the others stay as they are. Inside the caller's transaction; returns how many.
   */
  claimBrowser(
    tx: RoutingTransaction,
    from: { anonymousId: string; orgId: string; isNewAccount: boolean },
  ): Promise<number>
  /** What a claim link leads to; undefined when it is used, expired or unknown. */
  findClaim(secret: string): Promise<{ siteId: string; slug: string; url: string; title: string } | undefined>
  /** One-shot: of two racing callers one gets the drop, the other a 404. Without room for it the link stays good. */
  claimLink(actor: Actor, secret: string): Promise<{ siteId: string }>
  /** Forgets proofs of work that no longer hold anyway. */
  sweep(): Promise<void>
}

/** How long a refused page keeps its network suspicious. */
const REJECTION_MEMORY_MS = HOUR_MS
const MAX_REMEMBERED_REJECTIONS = 10_000

export function createAnonymous(deps: AnonymousDependencies): Anonymous {
  const { sql, clock, routing, sites, versions, publishing, config } = deps
  const capBytes = plans.anonymous.uploadBytes
  const admission = createAdmission(deps)
  const publish = createPublishAnonymously(deps, admission)

  return {
    capBytes,
    admit: admission.admit,
    publish,

    async publishText(publisher, text) {
      const limits = { owner: { kind: 'network', ip: publisher.ip }, capBytes } as const
      return publish(publisher, await receiveText(publishing, limits, text), text.title ?? '', text.until)
    },

    async list(anonymousId) {
      const drops = await queries.listAnonymousSites(sql, anonymousId)
      return drops.map((drop) => ({
        ...standing(drop, clock.now()),
        id: drop.id,
        slug: drop.slug,
        url: addressOf(config, siteHost(drop.slug, config.sitesDomain)),
        title: drop.title || drop.name,
        created_at: drop.created_at.toISOString(),
        expires_at: drop.expires_at.toISOString(),
        views: drop.views,
      }))
    },

    async delete(by) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const id = await queries.lockUnclaimed(tx, 'claim' in by ? { claimHash: hashSecret(by.claim) } : by)
        const site = id === undefined ? undefined : await sites.find(tx, id)
        if (!site) throw errors.notFound()
        await sites.remove(tx, site)
      })
      await routing.propagate(changes)
    },

    async claimBrowser(tx, from) {
      const cap = from.isNewAccount ? 'uncapped' : 'capped'
      return (await adopt(deps, tx, from.orgId, { anonymousId: from.anonymousId }, cap)).ids.length
    },

    async findClaim(secret) {
      const drop = await queries.findByClaim(sql, hashSecret(secret), new Date(clock.now()))
      return (
        drop && {
          siteId: drop.id,
          slug: drop.slug,
          title: drop.title,
          url: addressOf(config, siteHost(drop.slug, config.sitesDomain)),
        }
      )
    },

    async claimLink(actor, secret) {
      const { value: siteId, changes } = await changeRoutes(sql, async (tx) => {
        const { ids, plan, left } = await adopt(deps, tx, actor.orgId, { claimHash: hashSecret(secret) }, 'capped')
        const [id] = ids
        if (left > 0)
          throw errors.planLimit(`${dropCapInWords(plan)} Delete one${orUpgrade()}, then use this link again.`)
        if (id === undefined) throw errors.notFound('unclaimed drop')
        await versions.requireStorage(tx, actor.orgId, plan)
        return id
      })
      await routing.propagate(changes)
      return { siteId }
    },

    sweep: () => queries.forgetSpentProofs(sql, new Date(clock.now())),
  }
}

interface Admission {
  admit(publisher: Publisher): Promise<void>
  requireHarmless(publisher: Publisher, prepared: PreparedVersion): Promise<Inspection>
}

/** Who may publish without an account, and what: limits and the bot check before a body is read, the page after it. */
function createAdmission({ sql, clock, limiter, botCheck, inspector, config }: AnonymousDependencies): Admission {
  const rejections = createRejectionMemory(clock)
  return {
    async admit(publisher: Publisher): Promise<void> {
      if (!config.allowsAnonymous) throw errors.anonymousOff()
      const network = limitKeyOfIp(publisher.ip)
      const limit = { points: config.anonymousPerHour, windowSeconds: HOUR_MS / 1000 }
      await limiter.consumeAll([
        { name: 'anonymous-ip', key: network, limit },
        { name: 'anonymous-browser', key: publisher.anonymousId, limit },
      ])
      const now = clock.now()
      const { verdict, waitMs, challenge, spends } = botCheck.check(
        { ...publisher.signals, recentRejections: rejections.count(network) },
        now,
      )
      if (verdict === 'wait') await sleep(waitMs)
      if (verdict === 'reject')
        throw errors.contentRejected('This looks like an automated submission. Sign in to publish.')
      if (verdict === 'prove') throw errors.publishProofRequired(challenge)
      if (spends !== undefined && !(await queries.spendProof(sql, spends, new Date(now + PROOF_LIFETIME_MS))))
        throw errors.publishProofRequired(botCheck.ask(now))
    },

    async requireHarmless(publisher: Publisher, prepared: PreparedVersion): Promise<Inspection> {
      const inspection = await inspector.inspect(prepared.landingHash, limitKeyOfIp(publisher.ip))
      if (inspection.verdict !== 'reject') return inspection
      rejections.add(limitKeyOfIp(publisher.ip))
      throw errors.contentRejected(
        'This page looks like it imitates another service or asks for credentials. Publish it from an account if it is legitimate.',
      )
    },
  }
}

/** Publishes a page, and takes the drop back where an edge cannot serve it. */
function createPublishAnonymously(
  { sql, routing, sites, versions, inspector, storage, config }: AnonymousDependencies,
  { requireHarmless }: Pick<Admission, 'requireHarmless'>,
): Anonymous['publish'] {
  return async (publisher, prepared, name, until) => {
    if (!config.allowsAnonymous) throw errors.anonymousOff()
    const inspection = await requireHarmless(publisher, prepared)
    const claimSecret = randomSecret()
    const owner = {
      anonymousId: publisher.anonymousId,
      network: storage.networkOf(publisher.ip),
      claimHash: hashSecret(claimSecret),
    }
    const { value: site, changes } = await withFreeSlug(() =>
      changeRoutes(sql, async (tx) => {
        const requireRoom = () => storage.requireRoom(tx, owner.network, prepared.byteSize)
        const wanted = { name, accessUntil: until }
        const { site: added, report } = await versions.commitUnclaimed(tx, owner, wanted, prepared, requireRoom)
        if (inspection.verdict === 'review') await inspector.queue(tx, added.id, inspection)
        return { ...added, report }
      }),
    )
    const drop = {
      url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
      id: site.id,
      slug: site.slug,
      // In the query, never in the path: access logs keep paths.
      claim_url: `${config.baseUrl}/claim?token=${claimSecret}`,
      expires_at: site.expires_at!.toISOString(),
      report: site.report,
    }
    const { pending, refused } = await routing.propagate(changes)
    if (refused === undefined) return { value: drop, pending }
    const takenBack = await changeRoutes(sql, async (tx) => {
      // One that was claimed meanwhile is its owner's.
      const id = await queries.lockUnclaimed(tx, { anonymousId: publisher.anonymousId, siteId: site.id })
      const found = id === undefined ? undefined : await sites.find(tx, id)
      if (found) await sites.remove(tx, found)
      return found !== undefined
    })
    if (!takenBack.value) return { value: drop, pending }
    await routing.propagate(takenBack.changes)
    throw errors.notServed(refused)
  }
}

/** Random slugs do not collide in practice; this bounds the impossible. */
const MAX_SLUG_TRIES = 8

/** Each attempt makes a drop with another random slug. */
async function withFreeSlug<Made>(make: () => Promise<Made>): Promise<Made> {
  for (let attempt = 1; ; attempt++)
    try {
      return await make()
    } catch (error) {
      if (!(error instanceof RandomSlugTaken) || attempt === MAX_SLUG_TRIES) throw error
    }
}

/** Moves drops into an organisation: same address, the clock of its plan, no claim link any more. */
async function adopt(
  { clock, sites, refreshRoutes }: AnonymousDependencies,
  tx: RoutingTransaction,
  orgId: string,
  by: queries.Claim,
  cap: 'capped' | 'uncapped',
): Promise<Adoption> {
  const plan = await sites.lockOrganisation(tx, orgId)
  const now = new Date(clock.now())
  const claimable = await queries.lockClaimable(tx, by, { orgId, now })
  const room = cap === 'capped' ? Math.max(0, await sites.roomFor(tx, orgId, plan)) : claimable.length
  const ids = claimable.slice(0, room)
  for (const id of ids) {
    await queries.adoptSite(tx, id, { orgId, now })
    await refreshRoutes(tx, id)
  }
  return { ids, plan, left: claimable.length - ids.length }
}

/** The conditions of `lockClaimable`, as something to show. */
function standing(
  drop: Pick<queries.AnonymousRow, 'expired_at' | 'expires_at' | 'taken_down_at'>,
  now: number,
): { state: 'live' | 'expired' | 'removed'; claimable: boolean } {
  if (drop.taken_down_at) return { state: 'removed', claimable: false }
  if (drop.expired_at || drop.expires_at.getTime() <= now) return { state: 'expired', claimable: false }
  return { state: 'live', claimable: true }
}

/** Which networks had pages refused lately; bounded, in memory: forgetting is harmless. */
function createRejectionMemory(clock: Clock) {
  const seen = new Map<string, { count: number; until: number }>()
  return {
    count(network: string): number {
      const entry = seen.get(network)
      return entry && entry.until > clock.now() ? entry.count : 0
    },
    add(network: string): void {
      const [oldest] = seen.keys()
      if (oldest !== undefined && seen.size >= MAX_REMEMBERED_REJECTIONS) seen.delete(oldest)
      seen.set(network, { count: this.count(network) + 1, until: clock.now() + REJECTION_MEMORY_MS })
    },
  }
}
