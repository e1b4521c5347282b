/** Which drops of an organisation are live when its plan allows fewer than it has. */
import { errors } from '../../../../shared/contracts/errors.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../../ground/routing/changes.ts'
import * as queries from '../queries.ts'
import type { RefreshRoutes } from '../routing.ts'
import { pausedByEnd, resumableDrops, swapForChosen } from '../rules.ts'

/** Makes paused drops live that fit the cap again: whenever their owner makes room, or comes back. */
export async function resumeFitting(
  refreshRoutes: RefreshRoutes,
  tx: RoutingTransaction,
  orgId: string,
  now: Date,
): Promise<void> {
  const plan = await queries.lockOrganisation(tx, orgId)
  if (!plan) return
  const resumed = resumableDrops(await queries.listForCap(tx, orgId, now), plans[plan].activeDrops)
  if (resumed.length === 0) return
  await queries.setPaused(tx, resumed, null)
  for (const id of resumed) await refreshRoutes(tx, id)
}

/** Pauses the drops beyond the cap of a paid plan that has ended. Returns which; their routes are left to the caller. */
export async function pauseBeyondCap(tx: Sql, orgId: string, plan: PlanName, now: Date): Promise<string[]> {
  const paused = pausedByEnd(await queries.listForCap(tx, orgId, now), plans[plan].activeDrops)
  await queries.setPaused(tx, paused, now)
  return paused
}

/** Notes which drops stay live, and swaps paused ones that were chosen for others. Returns what it paused and resumed. */
export async function chooseStaying(
  tx: Sql,
  { orgId, plan, chosen }: { orgId: string; plan: PlanName; chosen: readonly string[] },
  now: Date,
): Promise<ReturnType<typeof swapForChosen>> {
  await queries.setChosen(tx, orgId, [...chosen])
  const swap = swapForChosen(await queries.listForCap(tx, orgId, now), plans[plan].activeDrops)
  await queries.setPaused(tx, swap.pause, now)
  await queries.setPaused(tx, swap.resume, null)
  return swap
}

/** The choice without repetitions; refused when the free plan would not keep as many. */
export function requireChoosable(siteIds: readonly string[]): string[] {
  const chosen = [...new Set(siteIds)]
  if (chosen.length > plans.free.activeDrops)
    throw errors.invalidRequest(`Choose at most ${plans.free.activeDrops} drops: the free plan keeps as many live.`)
  return chosen
}
