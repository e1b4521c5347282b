/** Plans and clocks: what is paid for, and what ends when. */
import type Stripe from 'stripe'
import type { Accounts } from '../people/accounts/contract.ts'
import { createBilling, type Billing } from '../plans/billing/billing.ts'
import { createStripe } from '../plans/billing/stripe.ts'
import { createLifecycle, type Lifecycle } from '../plans/lifecycle/lifecycle.ts'
import type { Drops } from './drops.ts'
import type { Ground } from './ground.ts'

export interface Plans {
  readonly lifecycle: Lifecycle
  readonly stripe: Stripe | undefined
  readonly billing: Billing
}

export function composePlans(ground: Ground, drops: Drops, closeUnverified: Accounts['closeUnverified']): Plans {
  const { config } = ground
  const lifecycle = createLifecycle({ ...ground, ...drops, closeUnverified })
  const stripe = config.stripeSecretKey ? createStripe(config.stripeSecretKey, config.stripeApiBase) : undefined
  const billing = createBilling({
    ...ground,
    routing: drops.routing,
    baseUrl: config.baseUrl,
    stripe,
    webhookSecrets: config.stripeWebhookSecrets,
    lifecycle,
  })
  return { lifecycle, stripe, billing }
}
