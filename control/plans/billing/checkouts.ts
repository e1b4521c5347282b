/** At most one open checkout per organisation, so that two tabs cannot buy twice. */
import type Stripe from 'stripe'
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import * as queries from './queries.ts'
import { lookupKeyOf, type Interval, type SoldPlan } from './rules.ts'
import { idempotencyKey, stripeId, orMissing, paymentsNotConfigured } from './stripe.ts'
import type { Subscriptions } from './subscriptions.ts'

/** A payment whose event was lost is found this long after the checkout began, and then again and again. */
const CHECK_EVERY_MS = 15 * MINUTE_MS

export interface Wanted {
  readonly plan: SoldPlan
  readonly interval: Interval
}

interface CheckoutsDependencies {
  readonly clock: Clock
  readonly billingPage: string
  readonly subscriptions: Pick<Subscriptions, 'apply'>
}

export interface Checkouts {
  /** Asks what became of it: paid for (the plan follows), over or unknown to Stripe, or still open. */
  followUp(
    tx: RoutingTransaction,
    stripe: Stripe,
    checkout: queries.CheckoutRow,
  ): Promise<{ isOpen: boolean; changed: boolean }>
  /** Closes an open checkout. Stripe refuses while it is being paid; the payment counts instead. True: the plan changed. */
  close(tx: RoutingTransaction, stripe: Stripe, checkout: queries.CheckoutRow): Promise<boolean>
  /** Opens a checkout at Stripe and resolves to its address. */
  start(
    tx: Sql,
    stripe: Stripe,
    organisation: queries.BilledOrganisation,
    customer: string,
    wanted: Wanted,
  ): Promise<string>
}

export function createCheckouts({ clock, billingPage, subscriptions }: CheckoutsDependencies): Checkouts {
  const followUp: Checkouts['followUp'] = async (tx, stripe, checkout) => {
    const session = await orMissing(stripe.checkout.sessions.retrieve(checkout.session_id))
    if (session?.status === 'open') return { isOpen: true, changed: false }
    await queries.deleteCheckout(tx, checkout.session_id)
    const subscription = stripeId(session?.subscription)
    const changed = subscription !== undefined && (await subscriptions.apply(tx, stripe, checkout.org_id, subscription))
    return { isOpen: false, changed }
  }

  const close: Checkouts['close'] = async (tx, stripe, checkout) => {
    try {
      await stripe.checkout.sessions.expire(checkout.session_id)
    } catch (error) {
      const found = await followUp(tx, stripe, checkout)
      if (found.isOpen) throw error
      return found.changed
    }
    await queries.deleteCheckout(tx, checkout.session_id)
    return false
  }

  return {
    followUp,
    close,

    async start(tx, stripe, organisation, customer, wanted) {
      const parameters: Stripe.Checkout.SessionCreateParams = {
        mode: 'subscription',
        customer,
        client_reference_id: organisation.id,
        line_items: [{ price: await priceOf(stripe, wanted, organisation.currency), quantity: 1 }],
        automatic_tax: { enabled: true },
        tax_id_collection: { enabled: true },
        // Tax needs the address, and a VAT number the name, that are entered at the checkout.
        customer_update: { address: 'auto', name: 'auto' },
        subscription_data: { metadata: { org_id: organisation.id } },
        success_url: `${billingPage}?checkout=done`,
        cancel_url: billingPage,
      }
      const name = `checkout:${organisation.id}:${await queries.checkoutsStarted(tx, organisation.id)}`
      const session = await stripe.checkout.sessions.create(parameters, {
        idempotencyKey: idempotencyKey(name, parameters),
      })
      const { url } = session
      if (url === null) throw new Error('Stripe made a checkout without an address')
      await queries.saveCheckout(tx, {
        org_id: organisation.id,
        session_id: session.id,
        url,
        plan: wanted.plan,
        billing_interval: wanted.interval,
        check_at: new Date(clock.now() + CHECK_EVERY_MS),
      })
      return url
    },
  }
}

async function priceOf(stripe: Stripe, { plan, interval }: Wanted, currency: string): Promise<string> {
  const key = lookupKeyOf(plan, interval, currency)
  const { data } = await stripe.prices.list({ lookup_keys: [key], active: true, limit: 1 })
  if (!data[0]) throw paymentsNotConfigured(`Stripe has no price "${key}". Run: npm run admin -- stripe-setup`)
  return data[0].id
}
