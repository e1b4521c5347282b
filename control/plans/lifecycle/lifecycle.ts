/**
 * The clocks of drops. The edge enforces expiry by itself, to the second; these moves tidy up behind it:
 * mark expired → tell owners → remove for good; and clocks begin, stop and begin anew when owners sign in or plans
 * change. When a drop ends is decided in one place (sites/rules.ts, `clockOf`), which refreshing its routes asks.
 * Every move locks what it moves, so that any number of controls may run the jobs at once.
 */
import { MINUTE_MS, type Clock } from '../../../shared/clock.ts'
import { siteHost } from '../../../shared/hosts.ts'
import { plans, isPaid, type PlanName } from '../../../shared/plans.ts'
import { addressOf } from '../../../shared/settings.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { RefreshRoutes } from '../../drops/sites/routing.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import * as queries from './queries.ts'
import { actsAt, dueNotice, mayNotRemove, nextNoticeAt, noticesOf, type Notice, type NoticeSettings } from './rules.ts'

/** No clock is that wrong by accident of the network. */
const MAX_SKEW_MS = MINUTE_MS

export interface LifecycleDependencies {
  sql: Pool
  clock: Clock
  routing: Pick<Routing, 'propagate'>
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
  touchOwner(tx: Sql, userId: string, now: Date): Promise<void>
  /** Another owner has an organisation: its drops' clocks begin anew. */
  ownerChanged(tx: Sql, orgId: string): Promise<void>
  /**
   * A plan begins, changes or ends. Only the move from a paid plan to free pauses drops and stops domains; every other
   * one resumes what fits. Nothing that is retained goes. Passwords stay in force. False when there is no such organisation.
   */
  changePlan(tx: Sql, orgId: string, plan: PlanName): Promise<boolean>
  /**
   * Everything that is due, on Postgres's time, which all controls share. Throws where this machine's clock differs by
   * more than a minute: one of the two is wrong, and what is removed stays removed.
   */
  run(): Promise<LifecycleRun>
  /** The same as of the clock that was handed in. `unbounded`: however many are to be removed. */
  runAsOf(options?: { readonly unbounded?: boolean }): Promise<LifecycleRun>
  /** What would be due now, as of the clock that was handed in; changes nothing. */
  preview(): Promise<LifecyclePreview>
}

export interface LifecycleRun {
  readonly expired: number
  readonly removed: number
  /** Due to be removed, and kept because they are too many at once: something is wrong, or an operator says so. */
  readonly held: number
  readonly closed: number
}

export interface LifecyclePreview {
  readonly would_expire: number
  readonly would_remove: number
  /** More than a run removes without being asked to. */
  readonly would_hold: boolean
  /** Organisations whose owners would get a mail. */
  readonly would_tell: number
}

export function createLifecycle({
  sql,
  clock,
  routing,
  refreshRoutes,
  sites,
  enqueueMail,
  domains,
  closeUnverified,
  config,
}: LifecycleDependencies): Lifecycle {
  /** How far Postgres's clock is ahead of ours, in a run on its time; less than MAX_SKEW_MS. */
  let offsetMs = 0
  const time = (): number => clock.now() + offsetMs
  const now = (): Date => new Date(time())
  const notices = noticesOf(config)
  const urlOf = (slug: string): string => addressOf(config, siteHost(slug, config.sitesDomain))

  /** One organisation: at most one mail, and the time of the next look at each of its drops. */
  async function tellNext(): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const orgId = await queries.lockNoticeDue(tx, now())
      if (orgId === undefined) return false
      const drops = await queries.lockClockedDrops(tx, orgId)
      const due = dueNotice(notices, drops, time())
      if (due) await tell(tx, orgId, due.notice, due.drops)
      for (const drop of drops) {
        const told = due?.drops.includes(drop) ? [...drop.told, due.notice.kind] : drop.told
        await queries.setNextNotice(tx, drop.id, nextNoticeAt(notices, { ...drop, told }, time()))
      }
      await queries.forgetNotices(tx, orgId)
      return true
    })
  }

  async function tell(tx: Sql, orgId: string, notice: Notice, about: readonly queries.ClockedRow[]): Promise<void> {
    const drops = about.map((drop) => ({ ...drop, url: urlOf(drop.slug), at: actsAt(notice, drop, time()) }))
    for (const { id, at } of drops) await queries.noteTold(tx, id, { kind: notice.kind, actsAt: at, now: now() })
    const [first] = drops
    if (!first) return
    await enqueueMail(tx, {
      eventKey: `${notice.kind}:${first.id}:${first.expires_at.toISOString()}`,
      to: (await queries.findOwner(tx, orgId)).email,
      template: notice.template,
      data: { drops, idleMs: config.freeIdleLifetimeMs, signInLink: `${config.baseUrl}/signin` },
    })
  }

  /** What has no clock any more is settled by it instead, and not expired. */
  async function expireNext(): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const id = await queries.lockExpired(tx, now())
      if (id === undefined) return false
      await queries.markExpired(tx, id)
      await refreshRoutes(tx, id)
      return true
    })
  }

  const removableBefore = (): Date => new Date(time() - config.recoveryWindowMs)

  async function act(unbounded: boolean): Promise<LifecycleRun> {
    const expired = await repeat(expireNext)
    await repeat(tellNext)
    const due = await queries.countRemovable(sql, removableBefore(), now())
    const isHeld = !unbounded && mayNotRemove(due, await queries.countDrops(sql))
    const removed = isHeld ? 0 : await repeat(removeNext)
    const closed = await closeUnverified()
    if (expired + removed + closed > 0) await routing.propagate()
    return { expired, removed, held: isHeld ? due : 0, closed }
  }

  async function removeNext(): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const id = await queries.lockRemovable(tx, removableBefore(), now())
      if (id === undefined) return false
      await refreshRoutes(tx, id)
      const site = await sites.find(tx, id)
      if (!site?.expired_at) return true
      await sites.remove(tx, site)
      if (site.org_id)
        await recordAudit(tx, {
          at: now(),
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
  async function tellOfEnd(tx: Sql, orgId: string, before: PlanName, paused: string[], stopped: string[]) {
    if (paused.length + stopped.length === 0) return
    const { email, organisation } = await queries.findOwner(tx, orgId)
    await enqueueMail(tx, {
      eventKey: `paused:${orgId}:${time()}`,
      to: email,
      template: 'paused',
      data: {
        plan: plans[before].label,
        organisation,
        at: now(),
        drops: (await queries.namesOf(tx, paused)).map(({ name, slug }) => ({ name, url: urlOf(slug) })),
        domains: stopped,
        kept: plans.free.activeDrops,
        chooseLink: `${config.baseUrl}/account/plan`,
      },
    })
  }

  return {
    async touchOwner(tx, userId, at) {
      await queries.noteSignIn(tx, userId, at)
      const organisations = await queries.lockFreeOrganisations(tx, userId)
      for (const id of await queries.lockSites(tx, organisations)) await refreshRoutes(tx, id)
      for (const orgId of organisations) await sites.resumeFitting(tx, orgId)
    },

    async ownerChanged(tx, orgId) {
      const ids = await queries.lockSites(tx, [orgId])
      await queries.forgetClocks(tx, ids)
      for (const id of ids) await refreshRoutes(tx, id)
    },

    async changePlan(tx, orgId, plan) {
      const before = await queries.setPlan(tx, orgId, plan)
      if (before === undefined) return false
      const ids = await queries.lockSites(tx, [orgId])
      if (isPaid(before) && !isPaid(plan)) {
        const paused = await sites.pauseBeyondCap(tx, orgId, plan)
        const stopped = await domains.stop(tx, orgId)
        await tellOfEnd(tx, orgId, before, paused, stopped)
      } else if (isPaid(plan)) {
        await sites.resumeFitting(tx, orgId)
        await domains.resume(tx, orgId, plan)
      }
      for (const id of ids) await refreshRoutes(tx, id)
      return true
    },

    async run() {
      const skewMs = (await queries.databaseTime(sql)) - clock.now()
      if (Math.abs(skewMs) > MAX_SKEW_MS)
        throw new Error(
          `this machine's clock is ${Math.round(skewMs / 1000)} s away from that of Postgres; nothing is done`,
        )
      offsetMs = skewMs
      return act(false)
    },

    async runAsOf({ unbounded = false } = {}) {
      offsetMs = 0
      return act(unbounded)
    },

    async preview() {
      const removable = await queries.countRemovable(sql, removableBefore(), now())
      return {
        would_expire: await queries.countExpired(sql, now()),
        would_remove: removable,
        would_hold: mayNotRemove(removable, await queries.countDrops(sql)),
        would_tell: await queries.countNoticesDue(sql, now()),
      }
    },
  }
}

async function repeat(step: () => Promise<boolean>): Promise<number> {
  let count = 0
  while (await step()) count++
  return count
}
