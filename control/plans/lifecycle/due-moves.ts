/**
 * What the clocks of drops bring about, one transaction for each drop or organisation: expired → told → removed for good.
 * Each run hands its own clock in, and nothing of it is kept for the next one.
 */
import type { Clock } from '../../../shared/running/clock.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { ControlConfig } from '../../ground/config.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { mayNotRemove } from '../../ground/terms/removals.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import {
  allChanges,
  changeRoutes,
  type Changed,
  type RouteChanges,
  type RoutingTransaction,
} from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { RefreshRoutes } from '../../drops/sites/routing.ts'
import type { Previews } from '../../drops/sites/kept/previews.ts'
import type { SiteKeptFiles } from '../../drops/sites/kept/kept-files.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import * as queries from './queries.ts'
import { actsAt, dueNotice, nextNoticeAt, noticesOf, type Notice, type NoticeSettings } from './rules.ts'

export interface DueMovesDependencies {
  sql: Pool
  routing: Pick<Routing, 'propagate'>
  refreshRoutes: RefreshRoutes
  sites: Pick<Sites, 'remove' | 'find'>
  keptFiles: Pick<SiteKeptFiles, 'endNextDue' | 'countDue'>
  previews: Pick<Previews, 'endNextDue' | 'countDue'>
  enqueueMail: EnqueueMail
  /** Tells and closes accounts that were never verified; resolves how many were closed, and the routes of their drops. */
  closeUnverified(): Promise<Changed<number>>
  /** Tells people whose API tokens end soon. */
  tellEndingTokens(clock: Clock): Promise<number>
  config: Pick<ControlConfig, 'baseUrl' | 'sitesDomain' | 'publicPort'> & NoticeSettings
}

export interface LifecycleRun {
  readonly expired: number
  readonly removed: number
  /** Due to be removed, and kept because they are too many at once: something is wrong, or an operator says so. */
  readonly held: number
  readonly closed: number
  /** Drops where files of former versions went. */
  readonly old_files_ended: number
  /** Named previews whose time was over. */
  readonly previews_removed: number
}

export interface LifecyclePreview {
  readonly would_expire: number
  readonly would_remove: number
  /** More than a run removes without being asked to. */
  readonly would_hold: boolean
  /** Organisations whose owners would get a mail. */
  readonly would_tell: number
  /** Drops where files of former versions would go. */
  readonly would_end_old_files: number
  readonly would_remove_previews: number
}

export interface DueMoves {
  /** Everything that is due by this clock. `unbounded`: however many are to be removed. */
  run(clock: Clock, unbounded: boolean): Promise<LifecycleRun>
  /** What would be due by this clock; changes nothing. */
  preview(clock: Clock): Promise<LifecyclePreview>
}

export function createDueMoves({
  sql,
  routing,
  refreshRoutes,
  sites,
  keptFiles,
  previews,
  enqueueMail,
  closeUnverified,
  tellEndingTokens,
  config,
}: DueMovesDependencies): DueMoves {
  const notices = noticesOf(config)
  const removableBefore = (clock: Clock): Date => new Date(clock.now() - config.recoveryWindowMs)

  /** One organisation: at most one mail, and the time of the next look at each of its drops. */
  function tellNext(clock: Clock): Promise<boolean> {
    return transaction(sql, async (tx) => {
      const orgId = await queries.lockNoticeDue(tx, dateOf(clock))
      if (orgId === undefined) return false
      const drops = await queries.lockClockedDrops(tx, orgId)
      const due = dueNotice(notices, drops, clock.now())
      if (due) await tell(tx, clock, orgId, due.notice, due.drops)
      for (const drop of drops) {
        const told = due?.drops.includes(drop) ? [...drop.told, due.notice.kind] : drop.told
        await queries.setNextNotice(tx, drop.id, nextNoticeAt(notices, { ...drop, told }, clock.now()))
      }
      await queries.forgetNotices(tx, orgId)
      return true
    })
  }

  async function tell(
    tx: Sql,
    clock: Clock,
    orgId: string,
    notice: Notice,
    about: readonly queries.ClockedRow[],
  ): Promise<void> {
    const drops = about.map((drop) => ({
      ...drop,
      url: addressOf(config, siteHost(drop.slug, config.sitesDomain)),
      at: actsAt(notice, drop, clock.now()),
    }))
    for (const { id, at } of drops)
      await queries.noteTold(tx, id, { kind: notice.kind, actsAt: at, now: dateOf(clock) })
    const [first] = drops
    if (!first) return
    await enqueueMail(tx, {
      eventKey: `${notice.kind}:${first.id}:${first.expires_at.toISOString()}`,
      to: (await queries.findOwner(tx, orgId)).email,
      template: notice.template,
      data: { drops, idleMs: config.freeIdleLifetimeMs, signInLink: `${config.baseUrl}/signin` },
    })
  }

  function removeNext(clock: Clock): Promise<Changed<boolean>> {
    return changeRoutes(sql, async (tx) => {
      const id = await queries.lockRemovable(tx, removableBefore(clock), dateOf(clock))
      if (id === undefined) return false
      await refreshRoutes(tx, id)
      const site = await sites.find(tx, id)
      if (!site?.expired_at) return true
      await sites.remove(tx, site)
      if (site.org_id)
        await recordAudit(tx, {
          at: dateOf(clock),
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
    async run(clock, unbounded) {
      const expired = await repeat(() => expireNext({ sql, refreshRoutes }, dateOf(clock)))
      while (await tellNext(clock));
      await tellEndingTokens(clock)
      const due = await queries.countRemovable(sql, removableBefore(clock), dateOf(clock))
      const isHeld = !unbounded && mayNotRemove('drops', due, await queries.countDrops(sql))
      const removed = isHeld ? [] : await repeat(() => removeNext(clock))
      const closed = await closeUnverified()
      const ended = await repeat(() => endNext({ sql, refreshRoutes }, keptFiles, dateOf(clock)))
      const gone = await repeat(() => endNext({ sql, refreshRoutes }, previews, dateOf(clock)))
      const changed = [...expired, ...removed, ...ended, ...gone]
      if (changed.length + closed.value > 0) await routing.propagate(allChanges([...changed, closed.changes]))
      return {
        expired: expired.length,
        removed: removed.length,
        held: isHeld ? due : 0,
        closed: closed.value,
        old_files_ended: ended.length,
        previews_removed: gone.length,
      }
    },

    async preview(clock) {
      const removable = await queries.countRemovable(sql, removableBefore(clock), dateOf(clock))
      return {
        would_expire: await queries.countExpired(sql, dateOf(clock)),
        would_remove: removable,
        would_hold: mayNotRemove('drops', removable, await queries.countDrops(sql)),
        would_tell: await queries.countNoticesDue(sql, dateOf(clock)),
        would_end_old_files: await keptFiles.countDue(sql, dateOf(clock)),
        would_remove_previews: await previews.countDue(sql, dateOf(clock)),
      }
    },
  }
}

/** A drop that has no clock any more is not expired: refreshing its routes takes the clock away instead. */
function expireNext(
  { sql, refreshRoutes }: Pick<DueMovesDependencies, 'sql' | 'refreshRoutes'>,
  now: Date,
): Promise<Changed<boolean>> {
  return changeRoutes(sql, async (tx) => {
    const id = await queries.lockExpired(tx, now)
    if (id === undefined) return false
    await queries.markExpired(tx, id)
    await refreshRoutes(tx, id)
    return true
  })
}

/** Files of former versions, or named previews, of one drop. */
function endNext(
  { sql, refreshRoutes }: Pick<DueMovesDependencies, 'sql' | 'refreshRoutes'>,
  kept: { endNextDue(tx: RoutingTransaction, now: Date): Promise<string | undefined> },
  now: Date,
): Promise<Changed<boolean>> {
  return changeRoutes(sql, async (tx) => {
    const id = await kept.endNextDue(tx, now)
    if (id !== undefined) await refreshRoutes(tx, id)
    return id !== undefined
  })
}

const dateOf = (clock: Clock): Date => new Date(clock.now())

/** Takes the step until there is nothing left to do; resolves to the changes of each step that did something. */
async function repeat(step: () => Promise<Changed<boolean>>): Promise<RouteChanges[]> {
  const done: RouteChanges[] = []
  for (;;) {
    const { value: didSomething, changes } = await step()
    if (!didSomething) return done
    done.push(changes)
  }
}
