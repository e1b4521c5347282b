/** Trust and safety: takedown and restore, abuse reports, the review queue. */
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { parseAuthority, siteHost } from '../../../shared/http/hosts.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { Actor } from '../../ground/actor.ts'
import type { Inspection } from './phishing.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { setRoute } from '../../ground/routing/outbox.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { RateLimiter } from '../../ground/http/limits/rate-limit.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import { closedRouteOf } from '../sites/rules.ts'
import * as queries from './queries.ts'

interface TrustDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate' | 'isServed'>
  refreshRoutes: RefreshRoutes
  enqueueMail: EnqueueMail
  limiter: RateLimiter
  config: Pick<ControlConfig, 'baseUrl' | 'sitesDomain' | 'publicPort' | 'mailFrom'>
}

/** A member of staff, or the operator at the machine. */
export type Moderator = Actor | { readonly system: 'operator' }

export const REPORT_REASONS = ['phishing', 'malware', 'copyright', 'illegal', 'spam', 'other'] as const
export type ReportReason = (typeof REPORT_REASONS)[number]

const REPORTS_PER_HOUR = 10
const MAX_QUEUE_ROWS = 200
const MAX_FOUND_ROWS = 50

export interface AbuseReport {
  readonly url: string
  readonly reason: ReportReason
  readonly detail: string
  readonly contact: string
  readonly ip: string
}

export interface Trust {
  /** `address`: a slug, a host or a URL; any that an edge serves. The owner gets the reason by mail. */
  takedown(moderator: Moderator, address: string, reason: string): Promise<{ pending: boolean }>
  restore(moderator: Moderator, slug: string): Promise<{ pending: boolean }>
  /** Everyone may report an address of ours. */
  report(report: AbuseReport): Promise<{ id: string }>
  /** Puts a published page into the review queue, in the publish's transaction. */
  queue(sql: Sql, siteId: string, inspection: Inspection): Promise<void>
  openQueue(moderator: Moderator): Promise<(queries.QueueEntry & { address: string })[]>
  dismiss(moderator: Moderator, id: string): Promise<void>
  /** By slug, domain or the owner's e-mail address; nothing for an empty text. */
  search(moderator: Moderator, text: string): Promise<queries.FoundSite[]>
}

export function createTrust(deps: TrustDependencies): Trust {
  const { sql, clock, routing, refreshRoutes, limiter, config } = deps
  const now = (): Date => new Date(clock.now())

  /** Changes a site under its lock and tells the edges. `otherwise`: what to do where no drop of ours is. */
  async function moderate(
    moderator: Moderator,
    address: string,
    change: (tx: Sql, site: queries.FoundSite) => Promise<void>,
    otherwise: (tx: RoutingTransaction, host: string) => Promise<boolean> = async () => false,
  ): Promise<{ pending: boolean }> {
    requireStaff(moderator)
    const host = hostOf(address, config.sitesDomain)
    if (host === undefined) throw errors.notFound()
    const { changes } = await changeRoutes(sql, async (tx) => {
      const site = (await queries.lockSiteBySlug(tx, address)) ?? (await queries.lockSiteByHost(tx, host))
      if (site) {
        await change(tx, site)
        await refreshRoutes(tx, site.id)
      } else if (!(await otherwise(tx, host))) throw errors.notFound()
    })
    return routing.propagate(changes)
  }

  return {
    takedown: (moderator, address, reason) =>
      moderate(
        moderator,
        address,
        (tx, site) => takeDown(deps, moderator, tx, site, reason),
        (tx, host) => takeDownUnknown(deps, moderator, tx, host, reason),
      ),

    restore: (moderator, slug) =>
      moderate(moderator, slug, async (tx, site) => {
        if (!site.taken_down_at) throw errors.invalidRequest(`"${slug}" has not been taken down.`)
        await queries.setTakenDown(tx, site.id, null, null)
        await recordAudit(tx, {
          at: now(),
          orgId: site.org_id,
          actor: moderator,
          action: 'site.restored',
          subject: site.id,
          detail: { slug },
        })
      }),

    async report(input) {
      await limiter.consume('abuse-report', limitKeyOfIp(input.ip), { points: REPORTS_PER_HOUR, windowSeconds: 3600 })
      const host = parseAuthority(input.url.replace(/^https?:\/\//i, '').split('/')[0])
      if (host === undefined) throw errors.invalidRequest('Enter the address of the page you want to report.')
      const id = newId('rep', clock.now())
      const siteId = await queries.findSiteIdByHost(sql, host)
      await queries.insertReport(sql, {
        id,
        site_id: siteId ?? null,
        url: input.url,
        reason: input.reason,
        detail: input.detail,
        contact: input.contact,
        ip: input.ip,
        created_at: now(),
      })
      return { id }
    },

    async queue(tx, siteId, inspection) {
      await queries.insertReview(
        tx,
        { id: newId('rep', clock.now()), site_id: siteId, score: inspection.score, created_at: now() },
        inspection.reasons,
      )
    },

    async openQueue(moderator) {
      requireStaff(moderator)
      const entries = await queries.openQueue(sql, MAX_QUEUE_ROWS)
      return entries.map((entry) => ({ ...entry, address: entry.slug ? urlOf(config, entry.slug) : entry.url }))
    },

    async dismiss(moderator, id) {
      requireStaff(moderator)
      if (!(await queries.resolveEntry(sql, id, 'dismissed', now()))) throw errors.notFound('entry')
    },

    async search(moderator, text) {
      requireStaff(moderator)
      return text.trim() === '' ? [] : queries.searchSites(sql, text.trim(), MAX_FOUND_ROWS)
    },
  }
}

function requireStaff(moderator: Moderator): void {
  if (!('system' in moderator) && !moderator.isStaff) throw errors.notFound('page')
}

/** A slug, a host or a URL. */
function hostOf(address: string, sitesDomain: string): string | undefined {
  if (!address.includes('.')) return parseAuthority(siteHost(address, sitesDomain))
  return parseAuthority(address.replace(/^https?:\/\//i, '').split('/')[0])
}

function urlOf(config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>, slug: string): string {
  return addressOf(config, siteHost(slug, config.sitesDomain))
}

async function takeDown(
  { clock, enqueueMail, config }: TrustDependencies,
  moderator: Moderator,
  tx: Sql,
  site: queries.FoundSite,
  reason: string,
): Promise<void> {
  await queries.setTakenDown(tx, site.id, new Date(clock.now()), reason)
  await queries.resolveAllOf(tx, site.id, 'taken down', new Date(clock.now()))
  await recordAudit(tx, {
    at: new Date(clock.now()),
    orgId: site.org_id,
    actor: moderator,
    action: 'site.taken_down',
    subject: site.id,
    detail: { slug: site.slug, reason },
  })
  if (site.owner_email)
    await enqueueMail(tx, {
      eventKey: `takedown:${site.id}:${clock.now()}`,
      to: site.owner_email,
      template: 'takedown',
      data: { url: urlOf(config, site.slug), reason, contact: `${config.baseUrl}/report` },
    })
}

/**
 * Edges may serve an address that the database does not know, from before it was restored. It has no owner to be told
 * and no content to be given back: it is known to be removed from here on.
 */
async function takeDownUnknown(
  { clock, routing }: TrustDependencies,
  moderator: Moderator,
  tx: RoutingTransaction,
  host: string,
  reason: string,
): Promise<boolean> {
  if ((await queries.leadsSomewhere(tx, host)) || !(await routing.isServed(host))) return false
  await setRoute(tx, closedRouteOf(host, 'unknown', 'removed'))
  const detail = { host, reason }
  await recordAudit(tx, {
    at: new Date(clock.now()),
    orgId: null,
    actor: moderator,
    action: 'site.taken_down',
    subject: host,
    detail,
  })
  return true
}
