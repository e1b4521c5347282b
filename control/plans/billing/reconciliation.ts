/**
 * How we learn what Stripe knows: from its events, and by asking where an event may have been lost. Whatever made us ask,
 * the plan follows what Stripe says at that moment, and the edges are told after the commit.
 */
import type Stripe from 'stripe'
import { DAY_MS, MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Pool, Sql } from '../../ground/database/sql.ts'
import { allChanges, type Changed, type RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Routing } from '../../ground/routing/routing.ts'
import type { Checkouts } from './checkouts.ts'
import type { Exclusive } from './exclusive.ts'
import type { Handovers } from './handovers.ts'
import * as queries from './queries.ts'
import { hasEnded } from './rules.ts'
import { orMissing, stripeId, subscriptionOf } from './stripe.ts'
import type { Subscriptions } from './subscriptions.ts'

/** What one run of the reconciliation takes on; the next run follows soon. */
const RECONCILE_BATCH = 100
/** A check that failed is made again after this. */
const RETRY_AFTER_MS = 5 * MINUTE_MS
/** Stripe repeats an event for three days. */
const KEEP_EVENTS_MS = 30 * DAY_MS

export interface ReconciliationDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly client: () => Stripe
  readonly exclusive: Exclusive
  readonly checkouts: Checkouts
  readonly handovers: Handovers
  readonly subscriptions: Subscriptions
  readonly routing: Pick<Routing, 'propagate'>
}

export interface Reconciliation {
  /** Acts on an event once. Any failure is an error, so that Stripe sends the event again. */
  receive(event: Stripe.Event): Promise<void>
  /** Asks what became of an organisation's open checkout. A Stripe that does not answer is asked again by `run`. */
  checkCheckout(orgId: string): Promise<void>
  /** Everything that an organisation has open or pays for, as Stripe knows it now. Inside the caller's transaction. */
  askAgain(tx: RoutingTransaction, orgId: string): Promise<void>
  /** Everything that is due. */
  run(): Promise<void>
}

export function createReconciliation({
  sql,
  clock,
  log,
  client,
  exclusive,
  checkouts,
  handovers,
  subscriptions,
  routing,
}: ReconciliationDependencies): Reconciliation {
  const now = (): Date => new Date(clock.now())

  /** True when the plan changed. */
  async function act(tx: RoutingTransaction, orgId: string, event: Stripe.Event): Promise<boolean> {
    const id = subscriptionNamedBy(event)
    if (event.type === 'checkout.session.completed') await queries.deleteCheckout(tx, event.data.object.id)
    const changed = id !== undefined && (await subscriptions.apply(tx, client(), orgId, id))
    if (event.type === 'invoice.paid' && id !== undefined) await subscriptions.receipt(tx, orgId, id, event.data.object)
    return changed
  }

  const reconcileSubscription = (orgId: string, id: string): Promise<Changed<boolean>> =>
    exclusive.change(orgId, async (tx) => {
      await endIfAbandoned(tx, client(), orgId, id)
      return subscriptions.apply(tx, client(), orgId, id)
    })

  const reconcileCheckout = (orgId: string): Promise<Changed<boolean>> =>
    exclusive.change(orgId, async (tx) => {
      const open = await queries.openCheckout(tx, orgId)
      if (!open) return false
      const organisation = await queries.findOrganisation(tx, orgId)
      if (organisation?.is_deleted) return checkouts.close(tx, client(), open)
      return (await checkouts.followUp(tx, client(), open)).changed
    })

  /** One that fails does not keep the others waiting; it is due again soon. */
  async function attempt<Result>(about: object, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work()
    } catch (error) {
      log.warn({ err: error, ...about }, 'Stripe could not be asked; it is asked again')
      return undefined
    }
  }

  /** Tells the edges where a plan changed. */
  async function propagate(outcomes: readonly (Changed<boolean> | undefined)[]): Promise<void> {
    const changes = outcomes.flatMap((outcome) => (outcome?.value ? [outcome.changes] : []))
    if (changes.length > 0) await routing.propagate(allChanges(changes))
  }

  return {
    async receive(event) {
      const subscriptionId = subscriptionNamedBy(event)
      if (subscriptionId === undefined) return
      // Most repetitions end here, without waiting; the note below decides.
      if (await queries.wasActedOn(sql, event.id)) return
      const customerId = stripeId((event.data.object as { customer?: string | { id: string } | null }).customer)
      const orgId = await queries.organisationConcerned(sql, { customerId, subscriptionId })
      if (!orgId) return log.warn({ event: event.id }, 'an event of an unknown customer')
      const outcome = await exclusive.change(
        orgId,
        async (tx) => (await queries.noteEvent(tx, event.id, now())) && act(tx, orgId, event),
      )
      await propagate([outcome])
    },

    async checkCheckout(orgId) {
      await propagate([await attempt({ org: orgId }, () => reconcileCheckout(orgId))])
    },

    async askAgain(tx, orgId) {
      const open = await queries.openCheckout(tx, orgId)
      if (open) await checkouts.followUp(tx, client(), open)
      for (const { id, status } of await queries.subscriptionsOf(tx, orgId))
        if (!hasEnded(status)) await subscriptions.apply(tx, client(), orgId, id)
    },

    async run() {
      const again = new Date(clock.now() + RETRY_AFTER_MS)
      const outcomes: (Changed<boolean> | undefined)[] = []
      for (const { org_id } of await queries.takeDueCheckouts(sql, now(), again, RECONCILE_BATCH))
        outcomes.push(await attempt({ org: org_id }, () => reconcileCheckout(org_id)))
      for (const { org_id } of await queries.takeDueHandovers(sql, now(), again, RECONCILE_BATCH))
        await attempt({ org: org_id }, () => handovers.carryOut(org_id))
      for (const { org_id, id } of await queries.takeDueSubscriptions(sql, now(), again, RECONCILE_BATCH))
        outcomes.push(await attempt({ subscription: id }, () => reconcileSubscription(org_id, id)))
      await queries.forgetEvents(sql, new Date(clock.now() - KEEP_EVENTS_MS))
      await propagate(outcomes)
    },
  }
}

/** No one is left who could cancel: the subscription of a deleted organisation ends here. */
async function endIfAbandoned(tx: Sql, stripe: Stripe, orgId: string, id: string): Promise<void> {
  const organisation = await queries.findOrganisation(tx, orgId)
  const row = (await queries.subscriptionsOf(tx, orgId)).find((candidate) => candidate.id === id)
  if (organisation?.is_deleted && row && !hasEnded(row.status)) await orMissing(stripe.subscriptions.cancel(id))
}

/** The subscription that an event is about; undefined for every event that does not concern us. */
function subscriptionNamedBy(event: Stripe.Event): string | undefined {
  switch (event.type) {
    case 'checkout.session.completed':
      return stripeId(event.data.object.subscription)
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
