/**
 * The clocks of drops. The edge enforces expiry by itself, to the second; these moves tidy up behind it:
 * mark expired → tell owners → remove for good; and clocks begin, stop and begin anew when owners sign in or plans
 * change. When a drop ends is decided in one place (sites/rules.ts, `clockOf`), which refreshing its routes asks.
 * Every move locks what it moves, so that any number of controls may run the jobs at once.
 */
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { siteHost } from '../../../shared/http/hosts.ts'
import { firstPlan, plans, isPaid, type PlanName } from '../../ground/terms/plans.ts'
import { addressOf } from '../../../shared/settings/settings.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Sites } from '../../drops/sites/sites.ts'
import { createDueMoves, type DueMovesDependencies, type LifecyclePreview, type LifecycleRun } from './due-moves.ts'
import * as queries from './queries.ts'

/** No clock is that wrong by accident of the network. */
const MAX_SKEW_MS = MINUTE_MS
/** Organisations that get another plan in one run; the others wait for the next. */
const JOINED_AT_ONCE = 200

export interface LifecycleDependencies extends DueMovesDependencies {
  clock: Clock
  sites: Pick<Sites, 'remove' | 'find' | 'pauseBeyondCap' | 'resumeFitting'>
  domains: {
    /** Resolves the names that are no longer served. */
    stop(tx: RoutingTransaction, orgId: string): Promise<string[]>
    /** As many as the plan has. */
    resume(sql: Sql, orgId: string, plan: PlanName): Promise<void>
  }
}

export interface Lifecycle {
  /** An owner's sign-in, of whatever kind, restarts the clock of free drops, brings expired ones back and resumes what fits. */
  touchOwner(tx: RoutingTransaction, userId: string, now: Date): Promise<void>
  /** Another owner has an organisation: its drops' clocks begin anew. */
  ownerChanged(tx: RoutingTransaction, orgId: string): Promise<void>
  /**
   * A plan begins, changes or ends. Only the move from a paid plan to free pauses drops and stops domains; every other
   * one resumes what fits. Nothing that is retained goes. Passwords stay in force. False when there is no such organisation.
   */
  changePlan(tx: RoutingTransaction, orgId: string, plan: PlanName): Promise<boolean>
  /** Where there is one plan for all, those who were on the free one have it too. A job. */
  joinFirstPlan(): Promise<void>
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

export function createLifecycle({
  sql,
  clock,
  routing,
  refreshRoutes,
  sites,
  keptFiles,
  previews,
  enqueueMail,
  domains,
  closeUnverified,
  tellEndingTokens,
  config,
}: LifecycleDependencies): Lifecycle {
  const moves = createDueMoves({
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
  })

  /** What a plan's end has closed to visitors, in one mail. */
  async function tellOfEnd(tx: Sql, orgId: string, before: PlanName, paused: string[], stopped: string[]) {
    if (paused.length + stopped.length === 0) return
    const { email, organisation } = await queries.findOwner(tx, orgId)
    await enqueueMail(tx, {
      eventKey: `paused:${orgId}:${clock.now()}`,
      to: email,
      template: 'paused',
      data: {
        plan: plans[before].label,
        organisation,
        at: new Date(clock.now()),
        drops: (await queries.namesOf(tx, paused)).map(({ name, slug }) => ({
          name,
          url: addressOf(config, siteHost(slug, config.sitesDomain)),
        })),
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

    async joinFirstPlan() {
      if (firstPlan() === 'free') return
      for (const orgId of await queries.listFreeOrganisations(sql, JOINED_AT_ONCE)) {
        const { changes } = await changeRoutes(sql, (tx) => this.changePlan(tx, orgId, firstPlan()))
        await routing.propagate(changes)
      }
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
      return moves.run({ now: () => clock.now() + skewMs }, false)
    },

    runAsOf: ({ unbounded = false } = {}) => moves.run(clock, unbounded),

    preview: () => moves.preview(clock),
  }
}
