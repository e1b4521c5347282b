/**
 * Subscriptions through Stripe. Cards, invoices and plan changes live in Stripe's own pages; we learn what was paid for
 * by asking Stripe for the subscription whenever an event names it, so that neither order nor repetition matters.
 */
import type Stripe from 'stripe'
import { DAY_MS, MINUTE_MS, type Clock } from '../../../shared/clock.ts'
import { errors } from '../../../shared/errors.ts'
import type { Log } from '../../../shared/log.ts'
import { plans } from '../../../shared/plans.ts'
import { type Actor, requirePermission } from '../../ground/actor.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Bill } from '../../ground/mail/templates.ts'
import { createCheckouts, type Wanted } from './checkouts.ts'
import { createCustomers } from './customers.ts'
import { createExclusive } from './exclusive.ts'
import { createHandovers } from './handovers.ts'
import * as queries from './queries.ts'
import { graceEnd, hasEnded, isEntitled, isLive } from './rules.ts'
import { portalConfiguration } from './setup.ts'
import { idOf, isAway, paymentsAway, paymentsNotConfigured, readEvent, subscriptionOf, orMissing } from './stripe.ts'
import { createSubscriptions } from './subscriptions.ts'

/** What one run of the reconciliation takes on; the next run follows soon. */
const RECONCILE_BATCH = 100
/** A check that failed is made again after this. */
const RETRY_AFTER_MS = 5 * MINUTE_MS
/** Stripe repeats an event for three days. */
const KEEP_EVENTS_MS = 30 * DAY_MS

export interface BillingOverview {
  readonly configured: boolean
  readonly plan: string
  readonly currency: string
  readonly status: string | null
  readonly interval: string | null
  readonly current_period_end: string | null
  readonly cancel_at_period_end: boolean
  readonly past_due_since: string | null
  /** Until when a plan stays although its payment is missing. */
  readonly grace_ends_at: string | null
}

export interface BillingDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly baseUrl: string
  /** Undefined when payments are not configured. */
  readonly stripe: Stripe | undefined
  /** All are good: the next one is added before Stripe signs with it. */
  readonly webhookSecrets: readonly string[]
  readonly lifecycle: Pick<Lifecycle, 'changePlan'>
  readonly routing: Pick<Routing, 'propagate'>
  readonly enqueueMail: EnqueueMail
}

/** Subscriptions at Stripe, and the plans that follow them. */
export interface Billing {
  /** Where to pay. 409 with the portal's address when there is a subscription already. */
  checkout(actor: Actor, wanted: Wanted): Promise<{ url: string }>
  portal(actor: Actor): Promise<{ url: string }>
  /** A person is back from the payment page. What its address says counts nothing; Stripe is asked. */
  returned(actor: Actor): Promise<void>
  overview(actor: Pick<Actor, 'orgId'>): Promise<BillingOverview>
  /**
   * An event is acted on once, in the transaction that remembers it. A failure of any kind is an error here, so that
   * Stripe sends the event again.
   */
  webhook(rawBody: Buffer, signature: string | undefined): Promise<void>
  /** An organisation has a new owner: who is asked to pay, and for what. Inside the transaction of the transfer. */
  ownerChanged(tx: Sql, orgId: string): Promise<Bill | undefined>
  /** What ends when these organisations are deleted. */
  subscriptionsOf(orgIds: readonly string[]): Promise<readonly Bill[]>
  /** Heals lost events, lets bills follow new owners, ends the grace of missing payments and the subscriptions of deleted organisations. */
  reconcile(): Promise<void>
}

export function createBilling(deps: BillingDependencies): Billing {
  const { sql, clock, log, baseUrl, stripe, webhookSecrets, routing } = deps
  const now = (): Date => new Date(clock.now())
  const billingPage = `${baseUrl}/account/plan`
  const exclusive = createExclusive(sql)
  const subscriptions = createSubscriptions({ ...deps, billingPage })
  const checkouts = createCheckouts({ clock, billingPage, subscriptions })
  const handovers = createHandovers({ exclusive, clock, client })
  const customers = createCustomers({ exclusive, client, onReplaced: askAgain, propagate: () => routing.propagate() })

  function client(): Stripe {
    if (!stripe) throw paymentsNotConfigured('Payments are not configured on this installation.')
    return stripe
  }

  async function requireOrganisation(sql: Sql, orgId: string): Promise<queries.OrganisationRow> {
    const organisation = await queries.findOrganisation(sql, orgId)
    if (!organisation || organisation.is_deleted) throw errors.notFound('organisation')
    return organisation
  }

  /** Everything that the organisation has open or pays for, as Stripe knows it now. */
  async function askAgain(tx: Sql, orgId: string): Promise<void> {
    const open = await queries.openCheckout(tx, orgId)
    if (open) await checkouts.settle(tx, client(), open)
    for (const { id, status } of await queries.subscriptionsOf(tx, orgId))
      if (!hasEnded(status)) await subscriptions.apply(tx, client(), orgId, id)
  }

  async function portalUrl(customer: string, currency: string): Promise<string> {
    const configuration = await portalConfiguration(client(), currency)
    const session = await client().billingPortal.sessions.create({
      customer,
      return_url: billingPage,
      ...(configuration ? { configuration: configuration.id } : {}),
    })
    return session.url
  }

  /** An open checkout that wants the same is used again; any other is closed first. */
  async function enterCheckout(
    tx: Sql,
    orgId: string,
    customer: string,
    wanted: Wanted,
  ): Promise<{ url?: string; currency: string; changed: boolean }> {
    const open = await queries.openCheckout(tx, orgId)
    const settled = open && (await checkouts.settle(tx, client(), open))
    const organisation = await requireOrganisation(tx, orgId)
    const outcome = { currency: organisation.currency, changed: settled?.changed ?? false }
    const isSubscribed = async () => (await queries.subscriptionsOf(tx, orgId)).some((row) => isLive(row.status))
    const fits = open?.plan === wanted.plan && open.billing_interval === wanted.interval
    if (open && settled?.isOpen && fits && !(await isSubscribed())) return { ...outcome, url: open.url }
    if (open && settled?.isOpen) outcome.changed = await checkouts.close(tx, client(), open)
    if (await isSubscribed()) return outcome
    return { ...outcome, url: await checkouts.start(tx, client(), organisation, customer, wanted) }
  }

  /** True when the plan changed. */
  async function act(tx: Sql, orgId: string, event: Stripe.Event): Promise<boolean> {
    const id = subscriptionNamedBy(event)
    if (event.type === 'checkout.session.completed') await queries.deleteCheckout(tx, event.data.object.id)
    const changed = id !== undefined && (await subscriptions.apply(tx, client(), orgId, id))
    if (event.type === 'invoice.paid' && id !== undefined) await subscriptions.receipt(tx, orgId, id, event.data.object)
    return changed
  }

  /** No one is left who could cancel: the subscription of a deleted organisation ends here. */
  async function endIfAbandoned(tx: Sql, orgId: string, id: string): Promise<void> {
    const organisation = await queries.findOrganisation(tx, orgId)
    const row = (await queries.subscriptionsOf(tx, orgId)).find((candidate) => candidate.id === id)
    if (organisation?.is_deleted && row && !hasEnded(row.status)) await orMissing(client().subscriptions.cancel(id))
  }

  const reconcileSubscription = (orgId: string, id: string): Promise<boolean> =>
    exclusive(orgId, async (tx) => {
      await endIfAbandoned(tx, orgId, id)
      return subscriptions.apply(tx, client(), orgId, id)
    })

  const reconcileCheckout = (orgId: string): Promise<boolean> =>
    exclusive(orgId, async (tx) => {
      const open = await queries.openCheckout(tx, orgId)
      if (!open) return false
      const organisation = await queries.findOrganisation(tx, orgId)
      if (organisation?.is_deleted) return checkouts.close(tx, client(), open)
      return (await checkouts.settle(tx, client(), open)).changed
    })

  /** One that fails does not keep the others waiting; it is due again soon. */
  async function attempt(about: object, work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work()
    } catch (error) {
      log.warn({ err: error, ...about }, 'Stripe could not be asked; it is asked again')
      return false
    }
  }

  /** For a caller who waits for the answer. */
  async function forCustomer<Result>(orgId: string, work: (customer: string) => Promise<Result>): Promise<Result> {
    try {
      await handovers.settle(orgId)
      return await customers.withCustomer(orgId, work)
    } catch (error) {
      if (!isAway(error)) throw error
      log.warn({ err: error }, 'Stripe does not answer')
      throw paymentsAway()
    }
  }

  return {
    async checkout(actor, wanted) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      requirePermission(actor.role, 'manage_billing')
      client()
      return forCustomer(actor.orgId, async (customer) => {
        const outcome = await exclusive(actor.orgId, (tx) => enterCheckout(tx, actor.orgId, customer, wanted))
        if (outcome.changed) await routing.propagate()
        if (outcome.url === undefined) throw errors.subscriptionExists(await portalUrl(customer, outcome.currency))
        return { url: outcome.url }
      })
    },

    async portal(actor) {
      requirePermission(actor.role, 'manage_billing')
      client()
      if (!(await queries.customerOf(sql, actor.orgId)))
        throw errors.invalidRequest('There is no subscription yet. Choose a plan first.')
      const { currency } = await requireOrganisation(sql, actor.orgId)
      return forCustomer(actor.orgId, async (customer) => ({ url: await portalUrl(customer, currency) }))
    },

    async returned(actor) {
      if (!stripe) return
      if (await attempt({ org: actor.orgId }, () => reconcileCheckout(actor.orgId))) await routing.propagate()
    },

    async overview(actor) {
      const organisation = await requireOrganisation(sql, actor.orgId)
      const rows = await queries.subscriptionsOf(sql, actor.orgId)
      const current =
        rows.find((row) => isEntitled(row, clock.now())) ?? rows.find((row) => isLive(row.status)) ?? rows.at(-1)
      const grace = current?.past_due_since ? new Date(graceEnd(current.past_due_since.getTime())) : null
      return {
        configured: stripe !== undefined,
        plan: organisation.plan,
        currency: organisation.currency,
        status: current?.status ?? null,
        interval: current?.billing_interval ?? null,
        current_period_end: (current?.ends_at ?? current?.current_period_end)?.toISOString() ?? null,
        cancel_at_period_end: current?.ends_at != null,
        past_due_since: current?.past_due_since?.toISOString() ?? null,
        grace_ends_at: grace?.toISOString() ?? null,
      }
    },

    async webhook(rawBody, signature) {
      if (webhookSecrets.length === 0) throw paymentsNotConfigured('STRIPE_WEBHOOK_SECRET is not set.')
      const event = readEvent(client(), { rawBody, signature, secrets: webhookSecrets, now: clock.now() })
      const subscriptionId = subscriptionNamedBy(event)
      if (subscriptionId === undefined) return
      // Most repetitions end here, without waiting; the note below decides.
      if (await queries.wasActedOn(sql, event.id)) return
      const customerId = idOf((event.data.object as { customer?: string | { id: string } | null }).customer)
      const orgId = await queries.organisationConcerned(sql, { customerId, subscriptionId })
      if (!orgId) return log.warn({ event: event.id }, 'an event of an unknown customer')
      const changed = await exclusive(
        orgId,
        async (tx) => (await queries.noteEvent(tx, event.id, now())) && act(tx, orgId, event),
      )
      if (changed) await routing.propagate()
    },

    ownerChanged: (tx, orgId) => handovers.note(tx, orgId),

    async subscriptionsOf(orgIds) {
      const rows = await queries.liveSubscriptions(sql, orgIds)
      return rows.map(({ plan, until }) => ({ plan: plans[plan].label, until }))
    },

    async reconcile() {
      if (!stripe) return
      const again = new Date(clock.now() + RETRY_AFTER_MS)
      let changed = false
      for (const { org_id } of await queries.takeDueCheckouts(sql, now(), again, RECONCILE_BATCH))
        changed = (await attempt({ org: org_id }, () => reconcileCheckout(org_id))) || changed
      for (const { org_id } of await queries.takeDueHandovers(sql, now(), again, RECONCILE_BATCH))
        await attempt({ org: org_id }, async () => (await handovers.settle(org_id), false))
      for (const { org_id, id } of await queries.takeDueSubscriptions(sql, now(), again, RECONCILE_BATCH))
        changed = (await attempt({ subscription: id }, () => reconcileSubscription(org_id, id))) || changed
      await queries.forgetEvents(sql, new Date(clock.now() - KEEP_EVENTS_MS))
      if (changed) await routing.propagate()
    },
  }
}

/** The subscription that an event is about; undefined for every event that does not concern us. */
function subscriptionNamedBy(event: Stripe.Event): string | undefined {
  switch (event.type) {
    case 'checkout.session.completed':
      return idOf(event.data.object.subscription)
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
    case 'customer.subscription.paused':
    case 'customer.subscription.resumed':
      return event.data.object.id
    case 'invoice.paid':
    case 'invoice.payment_failed':
      return subscriptionOf(event.data.object)
    default:
      return undefined
  }
}
