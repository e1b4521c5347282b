/** Creates the products and prices in a Stripe account. Running it again changes nothing. */
import type Stripe from 'stripe'
import { plans } from '../../shared/plans.ts'
import { INTERVALS, lookupKeyOf, SOLD_PLANS, type Interval, type SoldPlan } from './rules.ts'

export async function setUpStripe(
  stripe: Stripe,
  currencies: readonly string[],
): Promise<{ created: string[]; existing: string[] }> {
  const created: string[] = []
  const existing: string[] = []
  for (const plan of SOLD_PLANS) {
    const product = await ensureProduct(stripe, plan)
    for (const interval of INTERVALS) {
      for (const currency of currencies) {
        const key = lookupKeyOf(plan, interval, currency)
        const isNew = await ensurePrice(stripe, { key, product, plan, interval, currency })
        ;(isNew ? created : existing).push(key)
      }
    }
  }
  return { created, existing }
}

async function ensureProduct(stripe: Stripe, plan: SoldPlan): Promise<string> {
  const id = `dropway_${plan}`
  const known = await stripe.products.retrieve(id).catch((error: { code?: string }) => {
    if (error.code !== 'resource_missing') throw error
  })
  return (known ?? (await stripe.products.create({ id, name: `Dropway ${plans[plan].label}` }))).id
}

async function ensurePrice(
  stripe: Stripe,
  wanted: { key: string; product: string; plan: SoldPlan; interval: Interval; currency: string },
): Promise<boolean> {
  const found = await stripe.prices.list({ lookup_keys: [wanted.key], limit: 1 })
  if (found.data.length > 0) return false
  await stripe.prices.create(
    {
      product: wanted.product,
      lookup_key: wanted.key,
      currency: wanted.currency,
      unit_amount: plans[wanted.plan].price![wanted.interval] * 100,
      recurring: { interval: wanted.interval === 'monthly' ? 'month' : 'year' },
      tax_behavior: 'exclusive',
    },
    { idempotencyKey: `price:${wanted.key}` },
  )
  return true
}
