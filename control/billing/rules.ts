/** Decisions about plans and payments: no I/O, no clock. */
import type { PlanName } from '../../shared/plans.ts'

export const SOLD_PLANS = ['plus', 'business'] as const
export type SoldPlan = (typeof SOLD_PLANS)[number]
export const INTERVALS = ['monthly', 'annual'] as const
export type Interval = (typeof INTERVALS)[number]

/** Prices are found in Stripe by this name; grandfathered plans keep theirs: `starter_monthly_usd`. */
export function lookupKeyOf(plan: SoldPlan, interval: Interval, currency: string): string {
  return `dropway_${plan}_${interval}_${currency}`
}

export function parseLookupKey(key: string | null): { plan: PlanName; interval: Interval } | undefined {
  const match = /^(?:dropway_)?(plus|business|starter|pro)_(monthly|annual)_[a-z]{3}$/.exec(key ?? '')
  return match ? { plan: match[1] as PlanName, interval: match[2] as Interval } : undefined
}

/** Statuses in which the plan is in force; `past_due` is until its grace ends. */
export function isEntitled(
  subscription: { status: string; pastDueSince: number | undefined },
  now: number,
  graceMs: number,
): boolean {
  switch (subscription.status) {
    case 'active':
    case 'trialing':
      return true
    case 'past_due':
      return now - (subscription.pastDueSince ?? now) < graceMs
    default:
      return false
  }
}

const RANK: readonly PlanName[] = ['free', 'starter', 'plus', 'pro', 'business']

/** The best plan among what is paid for; free when nothing is. */
export function effectivePlan(subscriptions: readonly { plan: PlanName; isEntitled: boolean }[]): PlanName {
  return subscriptions
    .filter((subscription) => subscription.isEntitled)
    .reduce<PlanName>((best, { plan }) => (RANK.indexOf(plan) > RANK.indexOf(best) ? plan : best), 'free')
}

/** Amounts are in the smallest unit of the currency. */
export function formatAmount(amount: number, currency: string): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency: currency.toUpperCase() }).format(amount / 100)
}
