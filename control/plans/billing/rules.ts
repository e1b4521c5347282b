/** Decisions about plans and payments: no I/O, no clock. */
import { DAY_MS, MINUTE_MS } from '../../../shared/running/clock.ts'
import type { PlanName } from '../../ground/terms/plans.ts'

export const SOLD_PLANS = ['plus', 'business'] as const
export type SoldPlan = (typeof SOLD_PLANS)[number]
export const INTERVALS = ['monthly', 'annual'] as const
export type Interval = (typeof INTERVALS)[number]

/** A missing payment is usually an expired card: time to mend it before anything changes for visitors. */
export const PAST_DUE_GRACE_MS = 7 * DAY_MS
/** Whatever Stripe did not manage to tell us is found within the hour. */
export const CHECK_EVERY_MS = 45 * MINUTE_MS
/** Stripe acts on the end of a period a little after it. */
const AFTER_THE_MOMENT_MS = MINUTE_MS

/** Prices are found in Stripe by this name. */
export function lookupKeyOf(plan: SoldPlan, interval: Interval, currency: string): string {
  return `dropway_${plan}_${interval}_${currency}`
}

export function productOf(plan: SoldPlan): string {
  return `dropway_${plan}`
}

export interface Bought {
  readonly plan: PlanName
  readonly interval: Interval
}

/** What of a Stripe price says which plan it is for. */
export interface PriceFacts {
  readonly lookup_key: string | null
  readonly product: string
  readonly interval: string | undefined
}

const PAID_PLANS = 'plus|business|starter|pro'

/**
 * By the lookup key; a price that was replaced has lost it to its successor and is known by its product.
 * Grandfathered plans are named the same way (`starter_monthly_usd`, product `dropway_starter`), with or without prefix.
 */
export function boughtWith({ lookup_key, product, interval }: PriceFacts): Bought | undefined {
  const key = new RegExp(`^(?:dropway_)?(${PAID_PLANS})_(monthly|annual)_[a-z]{3}$`).exec(lookup_key ?? '')
  if (key) return { plan: key[1] as PlanName, interval: key[2] as Interval }
  const known = new RegExp(`^dropway_(${PAID_PLANS})$`).exec(product)
  return known ? { plan: known[1] as PlanName, interval: interval === 'year' ? 'annual' : 'monthly' } : undefined
}

export interface SubscriptionFacts {
  readonly status: string
  readonly past_due_since: Date | null
}

/** Is the plan in force? `past_due` is until its grace ends. */
export function isEntitled({ status, past_due_since }: SubscriptionFacts, now: number): boolean {
  switch (status) {
    case 'active':
    case 'trialing':
      return true
    case 'past_due':
      return now < graceEnd(past_due_since?.getTime() ?? now)
    default:
      return false
  }
}

export function graceEnd(pastDueSince: number): number {
  return pastDueSince + PAST_DUE_GRACE_MS
}

/** It may still be paid, changed or resumed in the portal: buying another one would be paying twice. */
export const LIVE_STATUSES: readonly string[] = ['active', 'trialing', 'past_due', 'unpaid', 'paused']

export function isLive(status: string): boolean {
  return LIVE_STATUSES.includes(status)
}

/** Never changes again. */
export function hasEnded(status: string): boolean {
  return status === 'canceled' || status === 'incomplete_expired'
}

const RANK: readonly PlanName[] = ['free', 'starter', 'plus', 'pro', 'business']

/** The best plan among what is paid for. A purchase that was never paid says nothing: undefined. */
export function effectivePlan(
  subscriptions: readonly (SubscriptionFacts & { readonly plan: PlanName })[],
  now: number,
): PlanName | undefined {
  const began = subscriptions.filter(({ status }) => status !== 'incomplete' && status !== 'incomplete_expired')
  if (began.length === 0) return undefined
  return began
    .filter((subscription) => isEntitled(subscription, now))
    .reduce<PlanName>((best, { plan }) => (RANK.indexOf(plan) > RANK.indexOf(best) ? plan : best), 'free')
}

/** Regularly, and right after the moments at which something is due. */
export function nextCheck(
  subscription: SubscriptionFacts & { readonly current_period_end: Date | null; readonly ends_at: Date | null },
  now: number,
): Date | null {
  if (hasEnded(subscription.status)) return null
  const { current_period_end, ends_at, past_due_since } = subscription
  const moments = [
    current_period_end?.getTime(),
    ends_at?.getTime(),
    past_due_since && graceEnd(past_due_since.getTime()),
  ]
    .filter((moment) => typeof moment === 'number')
    .map((moment) => moment + AFTER_THE_MOMENT_MS)
    .filter((moment) => moment > now)
  return new Date(Math.min(now + CHECK_EVERY_MS, ...moments))
}

/** Amounts are in the smallest unit of the currency. */
export function formatAmount(amount: number, currency: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 0))
}
