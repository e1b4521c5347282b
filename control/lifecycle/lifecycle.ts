/**
 * The clocks of drops. The edge enforces expiry by itself, to the second; these moves tidy up behind it:
 * warn → mark expired → remove for good, and restart or stop clocks when owners sign in or plans change.
 * Every move locks what it moves, so that any number of controls may run the jobs at once.
 */
import { DAY_MS, type Clock } from '../../shared/clock.ts'
import { siteHost } from '../../shared/hosts.ts'
import { plans, isPaid, type PlanName } from '../../shared/plans.ts'
import { addressOf } from '../../shared/settings.ts'
import { recordAudit } from '../audit/audit.ts'
import type { ControlConfig } from '../config.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import type { Events } from '../events/publish.ts'
import type { EnqueueMail } from '../mail/mail.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import { expiryOf } from '../sites/rules.ts'
import type { Sites } from '../sites/sites.ts'
import * as queries from './queries.ts'

interface LifecycleDeps {
  sql: Pool
  clock: Clock
  events: Pick<Events, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'remove' | 'find' | 'fitToPlan'>
  enqueueMail: EnqueueMail
  domains: { stop(sql: Sql, orgId: string): Promise<void>; resume(sql: Sql, orgId: string): Promise<void> }
  config: Pick<
    ControlConfig,
    'baseUrl' | 'sitesDomain' | 'publicPort' | 'anonymousLifetimeMs' | 'freeIdleLifetimeMs' | 'recoveryWindowMs'
  >
}

export type Lifecycle = ReturnType<typeof createLifecycle>

/** Owners hear of an expiry this many days before. */
const WARNING_DAYS = [7, 1] as const

export function createLifecycle({
  sql,
  clock,
  events,
  refreshRoutes,
  sites,
  enqueueMail,
  domains,
  config,
}: LifecycleDeps) {
  async function restart(db: Sql, siteIds: readonly string[], expiresAt: Date | null): Promise<void> {
    await queries.restartClock(db, siteIds, expiresAt)
    for (const id of siteIds) await refreshRoutes(db, id)
  }

  async function warn(): Promise<void> {
    for (const [index, days] of WARNING_DAYS.entries()) {
      const after = new Date(clock.now() + (WARNING_DAYS[index + 1] ?? 0) * DAY_MS)
      const until = new Date(clock.now() + days * DAY_MS)
      for (const group of await queries.expiringDrops(sql, after, until)) await warnOwner(group, days)
    }
  }

  /** The event key names the clock, not the run: a clock is warned about once, whoever runs the job. */
  async function warnOwner(group: queries.ExpiringGroup, days: number): Promise<void> {
    await enqueueMail(sql, {
      eventKey: `expiring:${days}:${group.org_id}:${group.expires_at.toISOString()}`,
      to: group.email,
      template: 'expiring',
      data: {
        days,
        drops: group.drops.map((drop) => ({
          name: drop.name,
          url: addressOf(config, siteHost(drop.slug, config.sitesDomain)),
          expiresAt: group.expires_at,
        })),
        signInLink: `${config.baseUrl}/signin`,
      },
    })
  }

  async function expireNext(): Promise<boolean> {
    return transaction(sql, async (db) => {
      const site = await queries.lockExpired(db, new Date(clock.now()))
      if (!site) return false
      await queries.markExpired(db, site.id, site.expires_at)
      await refreshRoutes(db, site.id)
      return true
    })
  }

  async function removeNext(): Promise<boolean> {
    return transaction(sql, async (db) => {
      const id = await queries.lockRemovable(db, new Date(clock.now() - config.recoveryWindowMs))
      const site = id && (await sites.find(db, id))
      if (!site) return false
      await sites.remove(db, site)
      if (site.org_id)
        await recordAudit(db, {
          orgId: site.org_id,
          actor: { system: 'lifecycle' },
          action: 'site.removed',
          subject: site.id,
          detail: { slug: site.slug },
        })
      return true
    })
  }

  return {
    /** An owner's sign-in restarts the clock of free drops and brings expired ones back. */
    async touchOwner(db: Sql, userId: string, now: Date): Promise<void> {
      const ids = await queries.lockSites(db, await queries.lockFreeOrganisations(db, userId))
      await restart(db, ids, expiryOf('free', { publishedAt: 0, ownerSeenAt: now.getTime() }, config))
    },

    /**
     * A plan begins or ends. Down: drops beyond the cap pause, domains stop, the clock starts now.
     * Up: clocks stop, paused drops and domains resume. Passwords stay in force either way.
     */
    async changePlan(db: Sql, orgId: string, plan: PlanName): Promise<boolean> {
      const before = await queries.setPlan(db, orgId, plan)
      if (before === undefined) return false
      const ids = await queries.lockSites(db, [orgId])
      if (plans[plan].lifetime !== plans[before].lifetime)
        await queries.restartClock(db, ids, expiryOf(plan, { publishedAt: 0, ownerSeenAt: clock.now() }, config))
      await sites.fitToPlan(db, orgId, plan)
      await (isPaid(plan) ? domains.resume(db, orgId) : domains.stop(db, orgId))
      for (const id of ids) await refreshRoutes(db, id)
      return true
    },

    /** Everything that is due as of the clock. */
    async run(): Promise<{ expired: number; removed: number }> {
      await warn()
      const expired = await repeat(expireNext)
      const removed = await repeat(removeNext)
      if (expired + removed > 0) await events.propagate()
      return { expired, removed }
    },
  }
}

async function repeat(step: () => Promise<boolean>): Promise<number> {
  let count = 0
  while (await step()) count++
  return count
}
