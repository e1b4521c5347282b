/**
 * The clocks of drops. The edge enforces expiry by itself, to the second; these moves tidy up behind it:
 * mark expired → tell owners → remove for good; and clocks begin, stop and begin anew when owners sign in or plans
 * change. When a drop ends is decided in one place (sites/rules.ts, `clockOf`), which refreshing its routes asks.
 * Every move locks what it moves, so that any number of controls may run the jobs at once.
 */
import type { Clock } from '../../shared/clock.ts'
import { siteHost } from '../../shared/hosts.ts'
import { plans, isPaid, type PlanName } from '../../shared/plans.ts'
import { addressOf } from '../../shared/settings.ts'
import { recordAudit } from '../audit/audit.ts'
import type { ControlConfig } from '../config.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import type { Events } from '../events/publish.ts'
import type { EnqueueMail } from '../mail/mail.ts'
import type { RefreshRoutes } from '../sites/routing.ts'
import type { Sites } from '../sites/sites.ts'
import * as queries from './queries.ts'
import { actsAt, dueNotice, nextNoticeAt, noticesOf, type Notice, type NoticeSettings } from './rules.ts'

export interface LifecycleDeps {
  sql: Pool
  clock: Clock
  events: Pick<Events, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'remove' | 'find' | 'pauseBeyondCap' | 'resumeFitting'>
  enqueueMail: EnqueueMail
  domains: {
    /** Resolves the names that are no longer served. */
    stop(sql: Sql, orgId: string): Promise<string[]>
    /** As many as the plan has. */
    resume(sql: Sql, orgId: string, plan: PlanName): Promise<void>
  }
  /** Tells and closes accounts that were never verified; resolves how many were closed. */
  closeUnverified(): Promise<number>
  config: Pick<ControlConfig, 'baseUrl' | 'sitesDomain' | 'publicPort'> & NoticeSettings
}

export interface Lifecycle {
  /** An owner's sign-in, of whatever kind, restarts the clock of free drops, brings expired ones back and resumes what fits. */
  touchOwner(db: Sql, userId: string, now: Date): Promise<void>
  /** Another owner has an organisation: its drops' clocks begin anew. */
  ownerChanged(db: Sql, orgId: string): Promise<void>
  /**
   * A plan begins, changes or ends. Only the move from a paid plan to free pauses drops and stops domains; every other
   * one resumes what fits. Nothing that is retained goes. Passwords stay in force. False when there is no such organisation.
   */
  changePlan(db: Sql, orgId: string, plan: PlanName): Promise<boolean>
  /** Everything that is due as of the clock. */
  run(): Promise<{ expired: number; removed: number; closed: number }>
}

export function createLifecycle({
  sql,
  clock,
  events,
  refreshRoutes,
  sites,
  enqueueMail,
  domains,
  closeUnverified,
  config,
}: LifecycleDeps): Lifecycle {
  const now = (): Date => new Date(clock.now())
  const notices = noticesOf(config)
  const urlOf = (slug: string): string => addressOf(config, siteHost(slug, config.sitesDomain))

  /** One organisation: at most one mail, and the time of the next look at each of its drops. */
  async function tellNext(): Promise<boolean> {
    return transaction(sql, async (db) => {
      const orgId = await queries.lockNoticeDue(db, now())
      if (orgId === undefined) return false
      const drops = await queries.lockClockedDrops(db, orgId)
      const due = dueNotice(notices, drops, clock.now())
      if (due) await tell(db, orgId, due.notice, due.drops)
      for (const drop of drops) {
        const told = due?.drops.includes(drop) ? [...drop.told, due.notice.kind] : drop.told
        await queries.setNextNotice(db, drop.id, nextNoticeAt(notices, { ...drop, told }, clock.now()))
      }
      await queries.forgetNotices(db, orgId)
      return true
    })
  }

  async function tell(db: Sql, orgId: string, notice: Notice, about: readonly queries.ClockedRow[]): Promise<void> {
    const drops = about.map((drop) => ({ ...drop, url: urlOf(drop.slug), at: actsAt(notice, drop, clock.now()) }))
    for (const { id, at } of drops) await queries.noteTold(db, id, { kind: notice.kind, actsAt: at, now: now() })
    const [first] = drops
    await enqueueMail(db, {
      eventKey: `${notice.kind}:${first!.id}:${first!.expires_at.toISOString()}`,
      to: (await queries.findOwner(db, orgId)).email,
      template: notice.template,
      data: { drops, idleMs: config.freeIdleLifetimeMs, signInLink: `${config.baseUrl}/signin` },
    })
  }

  /** What has no clock any more is settled by it instead, and not expired. */
  async function expireNext(): Promise<boolean> {
    return transaction(sql, async (db) => {
      const id = await queries.lockExpired(db, now())
      if (id === undefined) return false
      await queries.markExpired(db, id)
      await refreshRoutes(db, id)
      return true
    })
  }

  async function removeNext(): Promise<boolean> {
    return transaction(sql, async (db) => {
      const id = await queries.lockRemovable(db, new Date(clock.now() - config.recoveryWindowMs), now())
      if (id === undefined) return false
      await refreshRoutes(db, id)
      const site = await sites.find(db, id)
      if (!site?.expired_at) return true
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

  /** What a plan's end has closed to visitors, in one mail. */
  async function tellOfEnd(db: Sql, orgId: string, before: PlanName, paused: string[], stopped: string[]) {
    if (paused.length + stopped.length === 0) return
    const { email, organisation } = await queries.findOwner(db, orgId)
    await enqueueMail(db, {
      eventKey: `paused:${orgId}:${clock.now()}`,
      to: email,
      template: 'paused',
      data: {
        plan: plans[before].label,
        organisation,
        at: now(),
        drops: (await queries.namesOf(db, paused)).map(({ name, slug }) => ({ name, url: urlOf(slug) })),
        domains: stopped,
        kept: plans.free.activeDrops,
        chooseLink: `${config.baseUrl}/account/plan`,
      },
    })
  }

  return {
    async touchOwner(db, userId, at) {
      await queries.noteSignIn(db, userId, at)
      const organisations = await queries.lockFreeOrganisations(db, userId)
      for (const id of await queries.lockSites(db, organisations)) await refreshRoutes(db, id)
      for (const orgId of organisations) await sites.resumeFitting(db, orgId)
    },

    async ownerChanged(db, orgId) {
      const ids = await queries.lockSites(db, [orgId])
      await queries.forgetClocks(db, ids)
      for (const id of ids) await refreshRoutes(db, id)
    },

    async changePlan(db, orgId, plan) {
      const before = await queries.setPlan(db, orgId, plan)
      if (before === undefined) return false
      const ids = await queries.lockSites(db, [orgId])
      if (isPaid(before) && !isPaid(plan)) {
        const paused = await sites.pauseBeyondCap(db, orgId, plan)
        const stopped = await domains.stop(db, orgId)
        await tellOfEnd(db, orgId, before, paused, stopped)
      } else if (isPaid(plan)) {
        await sites.resumeFitting(db, orgId)
        await domains.resume(db, orgId, plan)
      }
      for (const id of ids) await refreshRoutes(db, id)
      return true
    },

    async run() {
      const expired = await repeat(expireNext)
      await repeat(tellNext)
      const removed = await repeat(removeNext)
      const closed = await closeUnverified()
      if (expired + removed + closed > 0) await events.propagate()
      return { expired, removed, closed }
    },
  }
}

async function repeat(step: () => Promise<boolean>): Promise<number> {
  let count = 0
  while (await step()) count++
  return count
}
