/** Makes an organisation's plan follow what Stripe says about its subscriptions. */
import type Stripe from 'stripe'
import { DAY_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import { plans } from '../../ground/terms/plans.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import * as queries from './queries.ts'
import { boughtWith, effectivePlan, formatAmount, graceEnd, nextCheck, type Bought } from './rules.ts'
import { orMissing, stripeId } from './stripe.ts'

/** A receipt that could not be sent for longer than this is not sent: mails remember for longer what they have told. */
const RECEIPT_WITHIN_MS = 30 * DAY_MS

const ASK_FOR_THE_MISSING_MS = DAY_MS

export interface SubscriptionsDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly billingPage: string
  readonly lifecycle: Pick<Lifecycle, 'changePlan'>
  readonly enqueueMail: EnqueueMail
}

export interface Subscriptions {
  /**
   * Asks Stripe for the subscription, remembers it and makes the plan follow. Whatever named it, and in which order,
   * the outcome is what Stripe says now. True when the plan changed. The caller has the organisation for itself.
   */
  apply(tx: RoutingTransaction, stripe: Stripe, orgId: string, id: string): Promise<boolean>
  /** Sends the receipt of an invoice that may not be the latest one any more. */
  receipt(tx: Sql, orgId: string, id: string, invoice: Stripe.Invoice): Promise<void>
}

type Mails = Pick<SubscriptionsDependencies, 'enqueueMail' | 'billingPage'>

export function createSubscriptions({
  clock,
  log,
  billingPage,
  lifecycle,
  enqueueMail,
}: SubscriptionsDependencies): Subscriptions {
  const mails: Mails = { enqueueMail, billingPage }

  /** The organisation's plan is what its subscriptions pay for. True when it changed. */
  async function follow(tx: RoutingTransaction, orgId: string): Promise<boolean> {
    const plan = effectivePlan(await queries.subscriptionsOf(tx, orgId), clock.now())
    const organisation = await queries.findOrganisation(tx, orgId)
    if (!plan || !organisation || organisation.is_deleted || organisation.plan === plan) return false
    await lifecycle.changePlan(tx, orgId, plan)
    await recordAudit(tx, {
      at: new Date(clock.now()),
      orgId,
      actor: { system: 'stripe' },
      action: 'billing.plan_changed',
      subject: plan,
      detail: { from: organisation.plan },
    })
    return true
  }

  async function tell(tx: Sql, row: queries.SubscriptionRow, invoice: Stripe.Invoice): Promise<void> {
    if (row.past_due_since !== null && invoice.status === 'open')
      await sendPastDue(tx, mails, row, { invoice, since: row.past_due_since })
    const paidAt = invoice.status_transitions.paid_at
    if (invoice.status === 'paid' && paidAt !== null && clock.now() - paidAt * 1000 < RECEIPT_WITHIN_MS)
      await sendReceipt(tx, mails, row, invoice)
  }

  return {
    async apply(tx, stripe, orgId, id) {
      const known = (await queries.subscriptionsOf(tx, orgId)).find((row) => row.id === id)
      const subscription = await orMissing(stripe.subscriptions.retrieve(id, { expand: ['latest_invoice'] }))
      const row = subscription && rowOf(orgId, subscription, known, clock.now())
      if (row) {
        await queries.saveSubscription(tx, row)
        if (typeof subscription.latest_invoice === 'object' && subscription.latest_invoice)
          await tell(tx, row, subscription.latest_invoice)
      } else if (known) await queries.saveSubscription(tx, forgotten(known, clock.now()))
      else log.warn({ subscription: id }, 'a subscription that is not to one of our prices')
      return follow(tx, orgId)
    },

    async receipt(tx, orgId, id, invoice) {
      const row = (await queries.subscriptionsOf(tx, orgId)).find((candidate) => candidate.id === id)
      if (row) await sendReceipt(tx, mails, row, invoice)
    },
  }
}

async function sendReceipt(
  tx: Sql,
  { enqueueMail, billingPage }: Mails,
  row: queries.SubscriptionRow,
  invoice: Stripe.Invoice,
): Promise<void> {
  const organisation = await queries.findOrganisation(tx, row.org_id)
  if (invoice.amount_paid === 0 || !organisation || organisation.is_deleted) return
  await enqueueMail(tx, {
    eventKey: `receipt:${invoice.id}`,
    to: organisation.email,
    template: 'receipt',
    data: {
      plan: plans[row.plan].label,
      amount: formatAmount(invoice.amount_paid, invoice.currency),
      paidAt: new Date((invoice.status_transitions.paid_at ?? invoice.created) * 1000),
      periodEnd: new Date(Math.max(invoice.period_end, ...invoice.lines.data.map((line) => line.period.end)) * 1000),
      invoiceLink: invoice.hosted_invoice_url ?? undefined,
      billingLink: billingPage,
    },
  })
}

async function sendPastDue(
  tx: Sql,
  { enqueueMail, billingPage }: Mails,
  row: queries.SubscriptionRow,
  { invoice, since }: { invoice: Stripe.Invoice; since: Date },
): Promise<void> {
  const organisation = await queries.findOrganisation(tx, row.org_id)
  if (!organisation || organisation.is_deleted) return
  await enqueueMail(tx, {
    eventKey: `past_due:${invoice.id}`,
    to: organisation.email,
    template: 'past_due',
    data: {
      plan: plans[row.plan].label,
      amount: formatAmount(invoice.amount_due, invoice.currency),
      until: new Date(graceEnd(since.getTime())),
      billingLink: billingPage,
    },
  })
}

/** The subscription as it is remembered; undefined when nothing of ours is bought with it. */
function rowOf(
  orgId: string,
  subscription: Stripe.Subscription,
  known: queries.SubscriptionRow | undefined,
  now: number,
): queries.SubscriptionRow | undefined {
  const [item] = subscription.items.data
  const bought: Bought | undefined =
    (item &&
      boughtWith({
        lookup_key: item.price.lookup_key,
        product: stripeId(item.price.product),
        interval: item.price.recurring?.interval,
      })) ??
    (known && { plan: known.plan, interval: known.billing_interval as Bought['interval'] })
  if (!bought) return undefined
  const periodEnd = item ? new Date(item.current_period_end * 1000) : (known?.current_period_end ?? null)
  const facts = {
    status: subscription.status,
    current_period_end: periodEnd,
    ends_at: endOf(subscription, periodEnd),
    past_due_since: subscription.status === 'past_due' ? (known?.past_due_since ?? new Date(now)) : null,
  }
  return {
    id: subscription.id,
    org_id: orgId,
    plan: bought.plan,
    billing_interval: bought.interval,
    ...facts,
    check_at: nextCheck(facts, now),
  }
}

/**
 * Stripe keeps what has ended; what it does not know at all was bought with other keys. It pays for nothing here, but
 * is asked about once a day while it is paid for: an operator may have set the wrong keys and puts the right ones back.
 */
function forgotten(known: queries.SubscriptionRow, now: number): queries.SubscriptionRow {
  const isPaidFor = known.current_period_end !== null && known.current_period_end.getTime() > now
  return {
    ...known,
    status: 'canceled',
    past_due_since: null,
    check_at: isPaidFor ? new Date(now + ASK_FOR_THE_MISSING_MS) : null,
  }
}

/** A cancellation in the portal sets `cancel_at`, one through the API or by Stripe's support the flag. */
function endOf(subscription: Stripe.Subscription, periodEnd: Date | null): Date | null {
  if (subscription.cancel_at !== null) return new Date(subscription.cancel_at * 1000)
  return subscription.cancel_at_period_end ? periodEnd : null
}
