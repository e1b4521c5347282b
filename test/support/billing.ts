/** Billing on a real Postgres with the real Stripe client against the stand-in, and a clock that the test moves. */
import { NO_CHANGES } from '../../control/ground/routing/changes.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { CURRENCIES } from '../../control/people/organisations/countries.ts'
import { createBilling } from '../../control/plans/billing/billing.ts'
import type { Wanted } from '../../control/plans/billing/checkouts.ts'
import { setUpStripe } from '../../control/plans/billing/setup.ts'
import { createStripe } from '../../control/plans/billing/stripe.ts'
import { createLifecycle } from '../../control/plans/lifecycle/lifecycle.ts'
import { createRefreshRoutes } from '../../control/drops/sites/routing.ts'
import { createSites } from '../../control/drops/sites/sites.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { BASE_URL, createAccountsFixture } from './accounts.ts'
import type { LedgerEvent, Thing } from './stripe-ledger.ts'
import { startStripeStandIn, type SignedEvent } from './stripe-stand-in.ts'

export const PLUS: Wanted = { plan: 'plus', interval: 'monthly' }
export const BUSINESS: Wanted = { plan: 'business', interval: 'annual' }

const config = {
  baseUrl: BASE_URL,
  sitesDomain: 'dropway.test',
  publicPort: undefined,
  anonymousLifetimeMs: 7 * DAY_MS,
  freeIdleLifetimeMs: 30 * DAY_MS,
  recoveryWindowMs: 30 * DAY_MS,
  expiryWarningsMs: [7 * DAY_MS, DAY_MS],
  removalWarningMs: 7 * DAY_MS,
  viewerAdmissionMs: 30 * DAY_MS,
  slugCooldownMs: 30 * DAY_MS,
}

export async function createBillingFixture({ configured = true } = {}) {
  const accounts = await createAccountsFixture()
  const { sql, clock, enqueueMail } = accounts
  const stripe = await startStripeStandIn(clock.now)
  const client = createStripe(stripe.env['STRIPE_SECRET_KEY']!, stripe.url)
  await setUpStripe(client, { currencies: CURRENCIES, webhookUrl: `${BASE_URL}/stripe/webhook` })
  let propagations = 0
  let organisations = 0
  const routing = { propagate: async () => ({ pending: ++propagations < 0 }) }
  const refreshRoutes = createRefreshRoutes({
    sitesDomain: config.sitesDomain,
    lifetimes: config,
    now: clock.now,
    previewLabels: () => '1-aaaaaaaaaaaa',
    lockDomainRoutes: async () => async () => [],
  })
  // Nothing is published here.
  const keptFiles = { refit: async () => {}, endNextDue: async () => undefined, countDue: async () => 0 }
  const cards = { bringUpToDate: async () => {} }
  const sites = createSites({ sql, clock, routing, refreshRoutes, keptFiles, cards, enqueueMail, config })
  const domains = { stop: async () => [], resume: async () => {} }
  const lifecycle = createLifecycle({
    sql,
    clock,
    routing,
    refreshRoutes,
    sites,
    keptFiles,
    previews: keptFiles,
    enqueueMail,
    domains,
    closeUnverified: async () => ({ value: 0, changes: NO_CHANGES }),
    tellEndingTokens: async () => 0,
    config,
  })
  const billing = createBilling({
    sql,
    clock,
    log: silentLog,
    baseUrl: BASE_URL,
    stripe: configured ? client : undefined,
    webhookSecrets: configured ? ['whsec_of_tomorrow', stripe.env['STRIPE_WEBHOOK_SECRET']!] : [],
    lifecycle,
    routing,
    enqueueMail,
  })

  const receive = ({ body, signature }: Pick<SignedEvent, 'body' | 'signature'>): Promise<void> =>
    billing.webhook(Buffer.from(body), signature)

  /** Everything that Stripe wanted to say so far. */
  async function deliverAll(): Promise<void> {
    for (const event of stripe.undelivered.splice(0)) await receive(stripe.sign(event))
  }

  async function subscriptionOf({ orgId }: Pick<Actor, 'orgId'>): Promise<Thing> {
    const [row] = await sql<
      { customer_id: string }[]
    >`select customer_id from billing_customers where org_id = ${orgId}`
    return stripe.ledger.liveSubscriptionOf(row!.customer_id)!
  }

  return {
    ...accounts,
    stripe,
    ledger: stripe.ledger,
    client,
    billing,
    sites,
    receive,
    deliver: (event: LedgerEvent) => receive(stripe.sign(event)),
    deliverAll,
    subscriptionOf,
    propagations: () => propagations,

    /** A further organisation of the same person: cheaper than a further person, whose password is hashed. */
    async anotherOrganisation(actor: Actor): Promise<Actor> {
      const orgId = `${actor.orgId}_${++organisations}`
      await sql`
        insert into organisations (id, name, personal, country, currency, owner_id, created_at)
        select ${orgId}, name, false, country, currency, owner_id, created_at from organisations where id = ${actor.orgId}`
      return { ...actor, orgId }
    },

    /** A new account that paid; Stripe's events about it have not arrived. */
    async buyer(wanted: Wanted = PLUS): Promise<Actor> {
      const actor = await accounts.newAccount()
      await stripe.pay((await billing.checkout(actor, wanted)).url)
      return actor
    },

    async subscriber(wanted: Wanted = PLUS): Promise<Actor> {
      const actor = await this.buyer(wanted)
      await deliverAll()
      return actor
    },

    async planOf({ orgId }: Pick<Actor, 'orgId'>): Promise<string> {
      const [row] = await sql<{ plan: string }[]>`select plan from organisations where id = ${orgId}`
      return row!.plan
    },

    async mails({ email }: Pick<Actor, 'email'>, template: 'receipt' | 'past_due') {
      return (await accounts.mailsTo(email)).filter((mail) => mail.template === template)
    },

    async close(): Promise<void> {
      await stripe.stop()
      await accounts.close()
    },
  }
}
