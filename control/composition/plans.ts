/** Plans and clocks: what is paid for, and what ends when. */
import type Stripe from 'stripe'
import type { Tokens } from '../people/access/tokens.ts'
import type { Accounts } from '../people/accounts/contract.ts'
import { createBackups, type Backups } from '../plans/backups/backups.ts'
import { createBilling, type Billing } from '../plans/billing/billing.ts'
import { createStripe } from '../plans/billing/stripe.ts'
import { createLifecycle, type Lifecycle } from '../plans/lifecycle/lifecycle.ts'
import type { Drops } from './drops.ts'
import type { Ground } from './ground.ts'

export interface Plans {
  readonly lifecycle: Lifecycle
  readonly stripe: Stripe | undefined
  readonly billing: Billing
  readonly backups: Backups
}

/** What the clocks of people bring about, by the lifecycle's run. */
export interface ClocksOfPeople {
  readonly closeUnverified: Accounts['closeUnverified']
  readonly tellEndingTokens: Tokens['tellEnding']
}

export function composePlans(ground: Ground, drops: Drops, clocks: ClocksOfPeople): Plans {
  const { config } = ground
  const lifecycle = createLifecycle({ ...ground, ...drops, ...clocks })
  const stripe =
    config.terms.sells && config.stripeSecretKey
      ? createStripe(config.stripeSecretKey, config.stripeApiBase)
      : undefined
  const billing = createBilling({
    ...ground,
    routing: drops.routing,
    baseUrl: config.baseUrl,
    stripe,
    webhookSecrets: config.stripeWebhookSecrets,
    lifecycle,
  })
  return { lifecycle, stripe, billing, backups: createBackups(ground) }
}
