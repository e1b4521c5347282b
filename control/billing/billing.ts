/**
 * Subscriptions through Stripe. Cards, invoices and plan changes live in Stripe's own pages; we learn what was paid for
 * by asking Stripe for the subscription whenever an event names it, so that neither order nor repetition matters.
 */
import type Stripe from 'stripe'
import { DAY_MS, HOUR_MS, MINUTE_MS, type Clock } from '../../shared/clock.ts'
import { ApiError, errors } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { plans } from '../../shared/plans.ts'
import type { Actor } from '../accounts/actor.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import type { Events } from '../events/publish.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { EnqueueMail } from '../mail/mail.ts'
import { requirePermission } from '../organisations/rules.ts'
import * as queries from './queries.ts'
import {
  effectivePlan,
  formatAmount,
  isEntitled,
  lookupKeyOf,
  parseLookupKey,
  type Interval,
  type SoldPlan,
} from './rules.ts'

/** A missing payment is usually an expired card: time to mend it before anything changes for visitors. */
const PAST_DUE_GRACE_MS = 7 * DAY_MS
/** Lost webhooks are healed within the hour. */
const RECONCILE_AFTER_MS = 45 * MINUTE_MS
const CHECKOUT_LIFETIME_MS = HOUR_MS

export interface BillingOverview {
  readonly configured: boolean
  readonly plan: string
  readonly currency: string
  readonly status: string | null
  readonly interval: string | null
  readonly current_period_end: string | null
  readonly cancel_at_period_end: boolean
  readonly past_due_since: string | null
}

interface BillingDeps {
  sql: Pool
  clock: Clock
  log: Log
  baseUrl: string
  /** Undefined when payments are not configured. */
  stripe: Stripe | undefined
  webhookSecret: string | undefined
  lifecycle: Pick<Lifecycle, 'changePlan'>
  events: Pick<Events, 'propagate'>
  enqueueMail: EnqueueMail
}

export type Billing = ReturnType<typeof createBilling>

export function createBilling({
  sql,
  clock,
  log,
  baseUrl,
  stripe,
  webhookSecret,
  lifecycle,
  events,
  enqueueMail,
}: BillingDeps) {
  const now = (): Date => new Date(clock.now())
  const billingPage = `${baseUrl}/account/plan`

  function client(): Stripe {
    if (!stripe) throw new ApiError(503, 'payments_not_configured', 'Payments are not configured on this installation.')
    return stripe
  }

  const entitled = (row: queries.SubscriptionRow): boolean =>
    isEntitled({ status: row.status, pastDueSince: row.past_due_since?.getTime() }, clock.now(), PAST_DUE_GRACE_MS)

  async function requireOrganisation(db: Sql, orgId: string): Promise<queries.OrganisationRow> {
    const organisation = await queries.lockOrganisation(db, orgId)
    if (!organisation) throw errors.notFound('organisation')
    return organisation
  }

  async function ensureCustomer(db: Sql, organisation: queries.OrganisationRow): Promise<string> {
    const known = await queries.customerOf(db, organisation.id)
    if (known) return known
    const customer = await client().customers.create(
      { email: organisation.email, name: organisation.name, metadata: { org_id: organisation.id } },
      { idempotencyKey: `customer:${organisation.id}` },
    )
    await queries.insertCustomer(db, organisation.id, customer.id)
    return customer.id
  }

  async function portalUrl(customer: string): Promise<string> {
    return (await client().billingPortal.sessions.create({ customer, return_url: billingPage })).url
  }

  async function priceOf(plan: SoldPlan, interval: Interval, currency: string): Promise<string> {
    const key = lookupKeyOf(plan, interval, currency)
    const prices = await client().prices.list({ lookup_keys: [key], active: true, limit: 1 })
    if (!prices.data[0])
      throw new ApiError(
        503,
        'payments_not_configured',
        `Stripe has no price "${key}". Run: npm run admin -- stripe-setup`,
      )
    return prices.data[0].id
  }

  /** A checkout that is still open and wants the same is used again; another one is closed first. */
  async function reuseCheckout(
    db: Sql,
    orgId: string,
    plan: SoldPlan,
    interval: Interval,
  ): Promise<string | undefined> {
    const open = await queries.openCheckout(db, orgId)
    if (!open) return undefined
    const session = await client().checkout.sessions.retrieve(open.session_id)
    if (session.status === 'complete') await applyOf(db, orgId, idOf(session.subscription))
    if (session.status !== 'open') return undefined
    if (open.plan === plan && open.billing_interval === interval) return open.url
    await client().checkout.sessions.expire(open.session_id)
    return undefined
  }

  async function startCheckout(
    db: Sql,
    organisation: queries.OrganisationRow,
    plan: SoldPlan,
    interval: Interval,
  ): Promise<string> {
    const customer = await ensureCustomer(db, organisation)
    const expiresAt = new Date(clock.now() + CHECKOUT_LIFETIME_MS)
    const session = await client().checkout.sessions.create(
      {
        mode: 'subscription',
        customer,
        client_reference_id: organisation.id,
        line_items: [{ price: await priceOf(plan, interval, organisation.currency), quantity: 1 }],
        automatic_tax: { enabled: true },
        tax_id_collection: { enabled: true },
        customer_update: { address: 'auto', name: 'auto' },
        subscription_data: { metadata: { org_id: organisation.id } },
        expires_at: Math.floor(expiresAt.getTime() / 1000),
        success_url: `${billingPage}?checkout=done`,
        cancel_url: billingPage,
      },
      { idempotencyKey: `checkout:${organisation.id}:${plan}:${interval}:${Math.floor(clock.now() / MINUTE_MS)}` },
    )
    await queries.saveCheckout(db, {
      org_id: organisation.id,
      session_id: session.id,
      url: session.url!,
      plan,
      billing_interval: interval,
      expires_at: expiresAt,
    })
    return session.url!
  }

  /** Asks Stripe for the subscription and makes the organisation's plan follow. The caller holds the organisation's lock. */
  async function applyOf(db: Sql, orgId: string, subscriptionId: string | undefined): Promise<void> {
    if (subscriptionId === undefined) return
    const subscription = await client().subscriptions.retrieve(subscriptionId)
    const item = subscription.items.data[0]
    const bought = parseLookupKey(item?.price.lookup_key ?? null)
    if (!item || !bought) return log.warn({ subscription: subscriptionId }, 'a subscription without one of our prices')
    const before = (await queries.subscriptionsOf(db, orgId)).find((row) => row.id === subscriptionId)
    await queries.saveSubscription(db, {
      id: subscriptionId,
      org_id: orgId,
      plan: bought.plan,
      billing_interval: bought.interval,
      status: subscription.status,
      current_period_end: new Date(item.current_period_end * 1000),
      cancel_at_period_end: subscription.cancel_at_period_end,
      past_due_since: subscription.status === 'past_due' ? (before?.past_due_since ?? now()) : null,
      checked_at: now(),
    })
    if (subscription.status !== 'incomplete') await queries.deleteCheckout(db, orgId)
    await follow(db, orgId)
  }

  async function follow(db: Sql, orgId: string): Promise<void> {
    const organisation = await requireOrganisation(db, orgId)
    const rows = await queries.subscriptionsOf(db, orgId)
    const plan = effectivePlan(rows.map((row) => ({ plan: row.plan, isEntitled: entitled(row) })))
    if (plan === organisation.plan) return
    await lifecycle.changePlan(db, orgId, plan)
    await recordAudit(db, {
      orgId,
      actor: { system: 'stripe' },
      action: 'billing.plan_changed',
      subject: plan,
      detail: { from: organisation.plan },
    })
  }

  async function act(db: Sql, event: Stripe.Event): Promise<void> {
    const subject = event.data.object as { customer?: unknown; client_reference_id?: string | null }
    const customer = idOf(subject.customer as string | { id: string } | null)
    const orgId = subject.client_reference_id ?? (customer && (await queries.organisationOfCustomer(db, customer)))
    if (!orgId || !(await queries.lockOrganisation(db, orgId)))
      return log.warn({ event: event.id }, 'an event of nobody we know')
    switch (event.type) {
      case 'checkout.session.completed':
        return applyOf(db, orgId, idOf(event.data.object.subscription))
      case 'customer.subscription.created':
      case 'customer.subscription.updated':
      case 'customer.subscription.deleted':
      case 'customer.subscription.paused':
      case 'customer.subscription.resumed':
        return applyOf(db, orgId, event.data.object.id)
      case 'invoice.paid':
        await applyOf(db, orgId, subscriptionOf(event.data.object))
        return sendReceipt(db, orgId, event.data.object)
      case 'invoice.payment_failed':
        await applyOf(db, orgId, subscriptionOf(event.data.object))
        return sendPastDue(db, orgId, event.data.object)
      default:
        return undefined
    }
  }

  async function sendReceipt(db: Sql, orgId: string, invoice: Stripe.Invoice): Promise<void> {
    if (invoice.amount_paid === 0) return
    const organisation = await requireOrganisation(db, orgId)
    await enqueueMail(db, {
      eventKey: `receipt:${invoice.id}`,
      to: organisation.email,
      template: 'receipt',
      data: {
        plan: plans[organisation.plan].label,
        amount: formatAmount(invoice.amount_paid, invoice.currency),
        paidAt: new Date((invoice.status_transitions?.paid_at ?? invoice.created) * 1000),
        periodEnd: new Date((invoice.lines.data[0]?.period.end ?? invoice.period_end) * 1000),
        invoiceLink: invoice.hosted_invoice_url ?? undefined,
        billingLink: billingPage,
      },
    })
  }

  async function sendPastDue(db: Sql, orgId: string, invoice: Stripe.Invoice): Promise<void> {
    const organisation = await requireOrganisation(db, orgId)
    await enqueueMail(db, {
      eventKey: `past_due:${invoice.id}`,
      to: organisation.email,
      template: 'past_due',
      data: {
        plan: plans[organisation.plan].label,
        amount: formatAmount(invoice.amount_due, invoice.currency),
        billingLink: billingPage,
      },
    })
  }

  /** In its own transaction, under the organisation's lock. */
  async function reconcileOne(orgId: string, subscriptionId: string | undefined): Promise<void> {
    await transaction(sql, async (db) => {
      if (await queries.lockOrganisation(db, orgId)) await applyOf(db, orgId, subscriptionId)
    })
  }

  async function reconcileCheckout(checkout: queries.CheckoutRow): Promise<void> {
    const session = await client().checkout.sessions.retrieve(checkout.session_id)
    if (session.status === 'complete') return reconcileOne(checkout.org_id, idOf(session.subscription))
    if (session.status === 'expired') await queries.deleteCheckout(sql, checkout.org_id)
  }

  return {
    isConfigured: stripe !== undefined,

    /** Where to pay. 409 with the portal's address when there is a subscription already. */
    async checkout(actor: Actor, wanted: { plan: SoldPlan; interval: Interval }): Promise<{ url: string }> {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      requirePermission(actor.role, 'manage_billing')
      client()
      const outcome = await transaction(sql, async (db) => {
        const organisation = await requireOrganisation(db, actor.orgId)
        const reused = await reuseCheckout(db, actor.orgId, wanted.plan, wanted.interval)
        if ((await queries.subscriptionsOf(db, actor.orgId)).some(entitled))
          return { customer: (await queries.customerOf(db, actor.orgId))! }
        return { url: reused ?? (await startCheckout(db, organisation, wanted.plan, wanted.interval)) }
      })
      if (outcome.customer !== undefined) throw errors.subscriptionExists(await portalUrl(outcome.customer))
      return { url: outcome.url }
    },

    async portal(actor: Actor): Promise<{ url: string }> {
      requirePermission(actor.role, 'manage_billing')
      const customer = await queries.customerOf(sql, actor.orgId)
      if (!customer) throw errors.invalidRequest('There is no subscription yet. Choose a plan first.')
      return { url: await portalUrl(customer) }
    },

    async overview(actor: Actor): Promise<BillingOverview> {
      const [organisation] = await sql<
        { plan: string; currency: string }[]
      >`select plan, currency from organisations where id = ${actor.orgId}`
      const rows = await queries.subscriptionsOf(sql, actor.orgId)
      const current = rows.find(entitled) ?? rows.at(-1)
      return {
        configured: stripe !== undefined,
        plan: organisation!.plan,
        currency: organisation!.currency,
        status: current?.status ?? null,
        interval: current?.billing_interval ?? null,
        current_period_end: current?.current_period_end?.toISOString() ?? null,
        cancel_at_period_end: current?.cancel_at_period_end ?? false,
        past_due_since: current?.past_due_since?.toISOString() ?? null,
      }
    },

    /** The raw body, because the signature is over its bytes. An event is acted on once, whatever its order. */
    async webhook(rawBody: Buffer, signature: string | undefined): Promise<void> {
      const event = verify(client(), rawBody, signature, webhookSecret)
      await transaction(sql, async (db) => {
        if (await queries.claimEvent(db, event.id, now())) await act(db, event)
      })
      await events.propagate()
    },

    /** Heals lost webhooks and ends the grace of missing payments. */
    async reconcile(): Promise<void> {
      if (!stripe) return
      for (const checkout of await queries.listCheckouts(sql)) await reconcileCheckout(checkout)
      for (const stale of await queries.staleSubscriptions(sql, new Date(clock.now() - RECONCILE_AFTER_MS)))
        await reconcileOne(stale.org_id, stale.id)
      await events.propagate()
    },
  }
}

function verify(
  stripe: Stripe,
  rawBody: Buffer,
  signature: string | undefined,
  secret: string | undefined,
): Stripe.Event {
  if (secret === undefined) throw new ApiError(503, 'payments_not_configured', 'STRIPE_WEBHOOK_SECRET is not set.')
  try {
    return stripe.webhooks.constructEvent(rawBody, signature ?? '', secret)
  } catch {
    throw errors.invalidRequest('The signature of this webhook is missing, wrong or too old.')
  }
}

function idOf(reference: string | { id: string } | null | undefined): string | undefined {
  return typeof reference === 'string' ? reference : (reference?.id ?? undefined)
}

function subscriptionOf(invoice: Stripe.Invoice): string | undefined {
  return idOf(invoice.parent?.subscription_details?.subscription)
}
