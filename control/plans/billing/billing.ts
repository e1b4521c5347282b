/**
 * Subscriptions through Stripe. Cards, invoices and plan changes live in Stripe's own pages; we learn what was paid for
 * by asking Stripe for the subscription whenever an event names it, so that neither order nor repetition matters.
 */
import type Stripe from 'stripe'
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { plans, soldPlans } from '../../ground/terms/plans.ts'
import { type Actor, requirePermission } from '../../ground/actor.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Bill } from '../../ground/mail/letters/templates.ts'
import { createCheckouts, type Wanted } from './checkouts.ts'
import { createCustomers } from './customers.ts'
import { createExclusive } from './exclusive.ts'
import { createHandovers } from './handovers.ts'
import * as queries from './queries.ts'
import { createReconciliation } from './reconciliation.ts'
import { graceEnd, isEntitled, isLive } from './rules.ts'
import { portalConfiguration } from './setup.ts'
import { isAway, paymentsAway, paymentsNotConfigured, readEvent } from './stripe.ts'
import { createSubscriptions } from './subscriptions.ts'

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
  const billingPage = `${baseUrl}/account/plan`
  const exclusive = createExclusive(sql)
  const subscriptions = createSubscriptions({ ...deps, billingPage })
  const checkouts = createCheckouts({ clock, billingPage, subscriptions })
  const handovers = createHandovers({ exclusive, clock, client })
  const parts = { client, exclusive, checkouts, handovers, subscriptions }
  const reconciliation = createReconciliation({ sql, clock, log, routing, ...parts })
  const { propagate } = routing
  const customers = createCustomers({ exclusive, client, onReplaced: reconciliation.askAgain, propagate })

  function client(): Stripe {
    if (!stripe) throw paymentsNotConfigured('Payments are not configured on this installation.')
    return stripe
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
    tx: RoutingTransaction,
    orgId: string,
    customer: string,
    wanted: Wanted,
  ): Promise<{ url?: string; currency: string; changed: boolean }> {
    const open = await queries.openCheckout(tx, orgId)
    const found = open && (await checkouts.followUp(tx, client(), open))
    const organisation = await requireOrganisation(tx, orgId)
    const outcome = { currency: organisation.currency, changed: found?.changed ?? false }
    const isSubscribed = async () => (await queries.subscriptionsOf(tx, orgId)).some((row) => isLive(row.status))
    const fits = open?.plan === wanted.plan && open.billing_interval === wanted.interval
    if (open && found?.isOpen && fits && !(await isSubscribed())) return { ...outcome, url: open.url }
    if (open && found?.isOpen) outcome.changed = await checkouts.close(tx, client(), open)
    if (await isSubscribed()) return outcome
    return { ...outcome, url: await checkouts.start(tx, client(), organisation, customer, wanted) }
  }

  /** For a caller who waits for the answer. */
  async function forCustomer<Result>(orgId: string, work: (customer: string) => Promise<Result>): Promise<Result> {
    try {
      await handovers.carryOut(orgId)
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
      if (!soldPlans().some(({ name }) => name === wanted.plan))
        throw errors.invalidRequest(`plan: ${plans[wanted.plan].label} is not for sale.`)
      return forCustomer(actor.orgId, async (customer) => {
        const { value: outcome, changes } = await exclusive.change(actor.orgId, (tx) =>
          enterCheckout(tx, actor.orgId, customer, wanted),
        )
        if (outcome.changed) await propagate(changes)
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
      if (stripe) await reconciliation.checkCheckout(actor.orgId)
    },

    async overview(actor) {
      const organisation = await requireOrganisation(sql, actor.orgId)
      const rows = await queries.subscriptionsOf(sql, actor.orgId)
      return { configured: stripe !== undefined, ...overviewOf(organisation, rows, clock.now()) }
    },

    async webhook(rawBody, signature) {
      if (webhookSecrets.length === 0) throw paymentsNotConfigured('STRIPE_WEBHOOK_SECRET is not set.')
      const event = readEvent(client(), { rawBody, signature, secrets: webhookSecrets, now: clock.now() })
      await reconciliation.receive(event)
    },

    ownerChanged: (tx, orgId) => handovers.note(tx, orgId),

    async subscriptionsOf(orgIds) {
      const rows = await queries.liveSubscriptions(sql, orgIds)
      return rows.map(({ plan, until }) => ({ plan: plans[plan].label, until }))
    },

    async reconcile() {
      if (stripe) await reconciliation.run()
    },
  }
}

async function requireOrganisation(sql: Sql, orgId: string): Promise<queries.BilledOrganisation> {
  const organisation = await queries.findOrganisation(sql, orgId)
  if (!organisation || organisation.is_deleted) throw errors.notFound('organisation')
  return organisation
}

/** What an organisation pays for, and until when; its latest subscription where none is paid for. */
function overviewOf(
  organisation: queries.BilledOrganisation,
  rows: readonly queries.SubscriptionRow[],
  now: number,
): Omit<BillingOverview, 'configured'> {
  const current = rows.find((row) => isEntitled(row, now)) ?? rows.find((row) => isLive(row.status)) ?? rows.at(-1)
  const grace = current?.past_due_since ? new Date(graceEnd(current.past_due_since.getTime())) : null
  return {
    plan: organisation.plan,
    currency: organisation.currency,
    status: current?.status ?? null,
    interval: current?.billing_interval ?? null,
    current_period_end: (current?.ends_at ?? current?.current_period_end)?.toISOString() ?? null,
    cancel_at_period_end: current?.ends_at != null,
    past_due_since: current?.past_due_since?.toISOString() ?? null,
    grace_ends_at: grace?.toISOString() ?? null,
  }
}
