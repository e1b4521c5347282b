/** Creates the products, prices, portals and the webhook in a Stripe account. Running it again changes nothing. */
import type Stripe from 'stripe'
import { HOUSE_LOOK } from '../../../shared/pages/look.ts'
import { soldPlans, type PricedPlan } from '../../ground/terms/plans.ts'
import { INTERVALS, lookupKeyOf, productOf, type Interval } from './rules.ts'
import { isMissing, isStripeError, stripeLibrary } from './stripe.ts'

/** What `/stripe/webhook` must be sent. */
const WEBHOOK_EVENTS: Stripe.WebhookEndpointCreateParams.EnabledEvent[] = [
  'checkout.session.completed',
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'invoice.paid',
  'invoice.payment_failed',
]

/** Metadata of a portal: which currency its prices are in. A portal shows one price per product and interval. */
const PORTAL_CURRENCY = 'dropway_currency'

export interface SetUp {
  readonly created: readonly string[]
  readonly existing: readonly string[]
  /** Prices whose amount is not the plan table's: an amount cannot be changed, only a new price made in Stripe. */
  readonly differing: readonly string[]
}

export interface WebhookSetUp {
  readonly url: string
  /** The only time that Stripe shows it: it belongs into STRIPE_WEBHOOK_SECRET. */
  readonly secret?: string
  /** Why there is none: Stripe sends to addresses only that it can reach. */
  readonly refused?: string
}

interface StripeSetUpOptions {
  readonly currencies: readonly string[]
  readonly webhookUrl: string
  /** What people read on their invoices. */
  readonly service?: string
}

/** One wish for both: what is sold, and where Stripe tells what became of it. */
export async function setUpStripe(
  stripe: Stripe,
  { currencies, webhookUrl, service = HOUSE_LOOK.name }: StripeSetUpOptions,
): Promise<SetUp & { readonly webhook: WebhookSetUp }> {
  const done = { created: [] as string[], existing: [] as string[], differing: [] as string[] }
  for (const plan of soldPlans()) await ensureProduct(stripe, plan, { service, done })
  for (const currency of currencies) {
    const products: { product: string; prices: string[] }[] = []
    for (const plan of soldPlans()) {
      const prices: string[] = []
      for (const interval of INTERVALS) prices.push(await ensurePrice(stripe, { plan, interval, currency }, done))
      products.push({ product: productOf(plan.name), prices })
    }
    await ensurePortal(stripe, currency, products, done)
  }
  return { ...done, webhook: await ensureWebhook(stripe, webhookUrl, { service, done }) }
}

/** Where customers of that currency may change their plan; undefined: Stripe's default portal. */
export async function portalConfiguration(
  stripe: Stripe,
  currency: string,
): Promise<Stripe.BillingPortal.Configuration | undefined> {
  const { data } = await stripe.billingPortal.configurations.list({ active: true, limit: 100 })
  return data.find(({ metadata }) => metadata?.[PORTAL_CURRENCY] === currency)
}

/** Under which name things are made, and what became of it. */
interface Naming {
  readonly service: string
  readonly done: Done
}

type Done = { created: string[]; existing: string[]; differing: string[] }

async function ensureProduct(stripe: Stripe, plan: PricedPlan, { service, done }: Naming): Promise<void> {
  const id = productOf(plan.name)
  try {
    await stripe.products.retrieve(id)
    done.existing.push(id)
  } catch (error) {
    if (!isMissing(error)) throw error
    await stripe.products.create({ id, name: `${service} ${plan.label}` })
    done.created.push(id)
  }
}

async function ensurePrice(
  stripe: Stripe,
  { plan, interval, currency }: { plan: PricedPlan; interval: Interval; currency: string },
  done: Done,
): Promise<string> {
  const key = lookupKeyOf(plan.name, interval, currency)
  const amount = plan.price[interval] * 100
  const found = (await stripe.prices.list({ lookup_keys: [key], active: true, limit: 1 })).data[0]
  if (found) {
    ;(found.unit_amount === amount ? done.existing : done.differing).push(key)
    return found.id
  }
  const price = await stripe.prices.create({
    product: productOf(plan.name),
    lookup_key: key,
    // An archived price may still hold the name.
    transfer_lookup_key: true,
    currency,
    unit_amount: amount,
    recurring: { interval: interval === 'monthly' ? 'month' : 'year' },
    tax_behavior: 'exclusive',
  })
  done.created.push(key)
  return price.id
}

/**
 * Pinned to the version of Stripe's interface that this release was written for: a newer default of the account must not
 * change what arrives. A pin cannot be moved, so an endpoint with another one is named as differing.
 */
async function ensureWebhook(stripe: Stripe, url: string, { service, done }: Naming): Promise<WebhookSetUp> {
  const { data } = await stripe.webhookEndpoints.list({ limit: 100 })
  const known = data.filter((endpoint) => endpoint.url === url && endpoint.status === 'enabled')
  const pinned = known.find(({ api_version }) => api_version === stripeLibrary().API_VERSION)
  if (pinned) {
    if (WEBHOOK_EVENTS.some((event) => !pinned.enabled_events.includes(event)))
      await stripe.webhookEndpoints.update(pinned.id, { enabled_events: WEBHOOK_EVENTS })
    done.existing.push('webhook')
    return { url }
  }
  const [other] = known
  if (other) {
    done.differing.push(`webhook ${other.id} (version ${other.api_version ?? 'of the account'})`)
    return { url }
  }
  try {
    const made = await stripe.webhookEndpoints.create({
      url,
      enabled_events: WEBHOOK_EVENTS,
      api_version: stripeLibrary().API_VERSION as Stripe.WebhookEndpointCreateParams.ApiVersion,
      description: service,
    })
    done.created.push('webhook')
    return { url, secret: made.secret }
  } catch (error) {
    if (!isStripeError(error, 'StripeInvalidRequestError')) throw error
    return { url, refused: error.message }
  }
}

async function ensurePortal(
  stripe: Stripe,
  currency: string,
  products: { product: string; prices: string[] }[],
  done: Done,
): Promise<void> {
  const name = `portal_${currency}`
  if (await portalConfiguration(stripe, currency)) {
    done.existing.push(name)
    return
  }
  await stripe.billingPortal.configurations.create({
    metadata: { [PORTAL_CURRENCY]: currency },
    features: {
      customer_update: { enabled: true, allowed_updates: ['address', 'email', 'name', 'tax_id'] },
      invoice_history: { enabled: true },
      payment_method_update: { enabled: true },
      subscription_cancel: { enabled: true, mode: 'at_period_end' },
      subscription_update: {
        enabled: true,
        default_allowed_updates: ['price'],
        proration_behavior: 'always_invoice',
        products,
      },
    },
  })
  done.created.push(name)
}
