import Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CURRENCIES } from '../../control/people/organisations/countries.ts'
import { setUpStripe } from '../../control/plans/billing/setup.ts'
import { createStripe, isAway } from '../../control/plans/billing/stripe.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import { BASE_URL, refusal } from '../support/accounts.ts'
import { BUSINESS, createBillingFixture, PLUS } from '../support/billing.ts'

const MINUTE_MS = 60_000
const WANTED = { currencies: CURRENCIES, webhookUrl: `${BASE_URL}/stripe/webhook` }
const DAY_MS = 86_400_000

let fixture: Awaited<ReturnType<typeof createBillingFixture>>
beforeAll(async () => {
  fixture = await createBillingFixture()
})
afterAll(() => fixture?.close())
beforeEach(() => {
  fixture.stripe.isFailing = false
  fixture.stripe.undelivered.length = 0
})

const openSessions = (customer: unknown) =>
  [...fixture.ledger.sessions.values()].filter(
    (session) => session['status'] === 'open' && session['customer'] === customer,
  )
const subscriptionsOf = (customer: unknown) =>
  [...fixture.ledger.subscriptions.values()].filter((subscription) => subscription['customer'] === customer)
const customerOfUrl = (url: string) => fixture.ledger.sessions.get(url.split('/').at(-1)!)!['customer']

describe('setting up Stripe', () => {
  test('creates two plans in two intervals and three currencies, at the prices of the plan table', () => {
    const prices = [...fixture.ledger.prices.values()]
    expect(prices).toHaveLength(12)
    const amountOf = (key: string) => prices.find((price) => price['lookup_key'] === key)?.['unit_amount']
    expect(amountOf('dropway_plus_monthly_eur')).toBe(1200)
    expect(amountOf('dropway_plus_annual_gbp')).toBe(9900)
    expect(amountOf('dropway_business_monthly_usd')).toBe(4900)
    expect(amountOf('dropway_business_annual_usd')).toBe(49_000)
  })

  test('again changes nothing', async () => {
    const again = await setUpStripe(fixture.client, WANTED)
    expect(again.created).toEqual([])
    expect(again.differing).toEqual([])
    expect(again.existing).toHaveLength(2 + 12 + 3 + 1)
    expect(again.webhook).toEqual({ url: WANTED.webhookUrl })
    expect(fixture.ledger.prices.size).toBe(12)
  })

  test('creates the webhook, pinned to the version that this release speaks, and shows its secret once', async () => {
    const [endpoint] = [...fixture.ledger.webhooks.values()]
    expect(endpoint).toMatchObject({ url: WANTED.webhookUrl, api_version: Stripe.API_VERSION })
    const elsewhere = { ...WANTED, webhookUrl: 'https://other.example/stripe/webhook' }
    expect((await setUpStripe(fixture.client, elsewhere)).webhook.secret).toMatch(/^whsec_/)
    expect((await setUpStripe(fixture.client, elsewhere)).webhook.secret).toBeUndefined()
    // One that was made by hand follows the account's version, whatever that becomes.
    endpoint!['api_version'] = null
    expect((await setUpStripe(fixture.client, WANTED)).differing).toEqual([expect.stringContaining(endpoint!.id)])
    endpoint!['api_version'] = Stripe.API_VERSION
    // An event that a newer release needs is asked for.
    endpoint!['enabled_events'] = ['invoice.paid']
    await setUpStripe(fixture.client, WANTED)
    expect(endpoint!['enabled_events']).toContain('customer.subscription.deleted')
  })

  test('says why there is no webhook where Stripe cannot reach the service', async () => {
    const local = await setUpStripe(fixture.client, { ...WANTED, webhookUrl: 'https://localhost:8443/stripe/webhook' })
    expect(local.webhook.refused).toContain('publicly accessible')
  })

  test('says which price is not what the plan table says', async () => {
    const price = [...fixture.ledger.prices.values()].find((candidate) => candidate['unit_amount'] === 4900)!
    price['unit_amount'] = 4800
    expect((await setUpStripe(fixture.client, WANTED)).differing).toEqual([price['lookup_key']])
    price['unit_amount'] = 4900
  })
})

describe('checkout', () => {
  test('is refused before the e-mail is verified, and to whom the bill is none of', async () => {
    const actor = await fixture.newAccount()
    expect(await refusal(fixture.billing.checkout({ ...actor, emailVerified: false }, PLUS))).toBe('email_not_verified')
    expect(await refusal(fixture.billing.checkout({ ...actor, role: 'admin' }, PLUS))).toBe('forbidden')
    expect(await refusal(fixture.billing.portal({ ...actor, role: 'member' }))).toBe('forbidden')
    expect(await refusal(fixture.billing.portal(actor))).toBe('invalid_request')
  })

  test('is a subscription in the currency of the account, with tax and VAT numbers', async () => {
    const actor = await fixture.newAccount()
    const { url } = await fixture.billing.checkout(actor, BUSINESS)
    const session = fixture.ledger.sessions.get(url.split('/').at(-1)!)!
    expect(session).toMatchObject({
      client_reference_id: actor.orgId,
      automatic_tax: { enabled: true },
      tax_id_collection: { enabled: true },
      subscription_metadata: { org_id: actor.orgId },
    })
    expect(fixture.ledger.prices.get(session['price'])!['lookup_key']).toBe('dropway_business_annual_eur')
  })

  test('while Stripe fails or cannot be reached, callers are told to come back', async () => {
    const actor = await fixture.subscriber()
    fixture.stripe.isFailing = true
    const away = { status: 503, code: 'payments_unavailable', headers: { 'retry-after': expect.any(String) } }
    await expect(fixture.billing.checkout(actor, PLUS)).rejects.toMatchObject(away)
    await expect(fixture.billing.portal(actor)).rejects.toMatchObject(away)

    // No one may listen there but the system, which does not.
    const unreachable = createStripe('sk_test_x', 'http://127.0.0.1:1')
    const error: unknown = await unreachable.prices.list().catch((reason: unknown) => reason)
    expect(isAway(error)).toBe(true)
  })

  test('coming back from it proves nothing; paying does', async () => {
    const actor = await fixture.newAccount()
    const { url } = await fixture.billing.checkout(actor, PLUS)
    await fixture.billing.returned(actor)
    expect(await fixture.planOf(actor)).toBe('free')
    await fixture.stripe.pay(url)
    await fixture.billing.returned(actor)
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(await fixture.billing.overview(actor)).toMatchObject({ plan: 'plus', status: 'active', interval: 'monthly' })
  })

  test('paid: the plan, its clock and one receipt; the edges hear of it once', async () => {
    const actor = await fixture.buyer()
    const before = fixture.propagations()
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(fixture.propagations()).toBe(before + 1)
    const receipts = await fixture.mails(actor, 'receipt')
    expect(receipts).toHaveLength(1)
    expect(receipts[0]!.subject).toBe('Receipt for Dropway Plus: €12.00')
  })

  test('two at once end in one subscription', async () => {
    for (const other of [PLUS, BUSINESS]) {
      const actor = await fixture.newAccount()
      const [first, second] = await Promise.all([
        fixture.billing.checkout(actor, PLUS),
        fixture.billing.checkout(actor, other),
      ])
      const customer = customerOfUrl(first.url)
      expect(customerOfUrl(second.url)).toBe(customer)
      expect(openSessions(customer)).toHaveLength(1)
      const payments = await Promise.allSettled([fixture.stripe.pay(first.url), fixture.stripe.pay(second.url)])
      expect(payments.filter((payment) => payment.status === 'fulfilled')).toHaveLength(1)
      await fixture.deliverAll()
      expect(subscriptionsOf(customer)).toHaveLength(1)
      expect(await fixture.mails(actor, 'receipt')).toHaveLength(1)
    }
  })

  test('changing one’s mind to and fro leaves one open checkout and one customer', async () => {
    const actor = await fixture.newAccount()
    const urls: string[] = []
    for (const wanted of [PLUS, BUSINESS, PLUS, PLUS]) urls.push((await fixture.billing.checkout(actor, wanted)).url)
    expect(new Set(urls).size).toBe(3)
    expect(urls[3]).toBe(urls[2])
    expect(new Set(urls.map(customerOfUrl)).size).toBe(1)
    expect(openSessions(customerOfUrl(urls[0]!)).map((session) => session['url'])).toEqual([urls[2]])
  })

  test('a second one while there is a subscription answers 409 with the portal, known or not yet known', async () => {
    for (const actor of [await fixture.subscriber(), await fixture.buyer()]) {
      for (const wanted of [PLUS, BUSINESS]) {
        const error = await fixture.billing.checkout(actor, wanted).catch((reason: unknown) => reason as ApiError)
        expect(error).toBeInstanceOf(ApiError)
        expect(error).toMatchObject({ status: 409, code: 'subscription_exists' })
        expect((error as ApiError).fields['portal_url']).toMatch(`${fixture.stripe.url}/portal/`)
      }
      expect(await fixture.planOf(actor)).toBe('plus')
    }
  })

  test('paid at the very moment at which another is asked for: still one subscription', async () => {
    const actor = await fixture.newAccount()
    const { url } = await fixture.billing.checkout(actor, PLUS)
    const session = fixture.ledger.sessions.get(url.split('/').at(-1)!)!
    const expire = fixture.ledger.expire.bind(fixture.ledger)
    // Between our look and our closing it, the customer presses the button.
    fixture.ledger.expire = (closing) => {
      if (closing === session && session['status'] === 'open') fixture.ledger.complete(session)
      return expire(closing)
    }
    try {
      expect(await refusal(fixture.billing.checkout(actor, BUSINESS))).toBe('subscription_exists')
    } finally {
      fixture.ledger.expire = expire
    }
    expect(subscriptionsOf(session['customer'])).toHaveLength(1)
    expect(await fixture.planOf(actor)).toBe('plus')
  })

  test('news of an old subscription does not forget a new open checkout', async () => {
    const actor = await fixture.subscriber()
    const old = await fixture.subscriptionOf(actor)
    fixture.ledger.cancelNow(old)
    await fixture.billing.reconcile()
    await fixture.deliverAll()
    const { url } = await fixture.billing.checkout(actor, PLUS)
    fixture.ledger.emit('customer.subscription.deleted', old)
    await fixture.deliverAll()
    expect((await fixture.billing.checkout(actor, PLUS)).url).toBe(url)
    expect(openSessions(old['customer'])).toHaveLength(1)
  })
})

describe('a webhook', () => {
  test('with a bad, old or missing signature, or with other bytes, is refused and changes nothing', async () => {
    const actor = await fixture.buyer()
    const event = fixture.stripe.undelivered.find(({ type }) => type === 'checkout.session.completed')!
    const good = fixture.stripe.sign(event)
    for (const bad of [
      { body: good.body, signature: undefined },
      { body: good.body, signature: '' },
      { body: good.body, signature: good.signature.replace(/.$/, (last) => (last === '0' ? '1' : '0')) },
      { body: `${good.body} `, signature: good.signature },
      fixture.stripe.sign(event, { secret: 'whsec_of_somebody_else' }),
      fixture.stripe.sign(event, { at: fixture.clock.now() - 6 * MINUTE_MS }),
    ]) {
      const error = await fixture.billing
        .webhook(Buffer.from(bad.body), bad.signature)
        .catch((reason: unknown) => reason as ApiError)
      expect(error).toMatchObject({ status: 400 })
    }
    expect(await fixture.planOf(actor)).toBe('free')
    expect(await fixture.sql`select 1 from stripe_events where id = ${event.id}`).toHaveLength(0)
    await fixture.receive(good)
    expect(await fixture.planOf(actor)).toBe('plus')
  })

  test('that comes again, even at the same time, is acted on once', async () => {
    const actor = await fixture.buyer()
    const event = fixture.stripe.undelivered.find(({ type }) => type === 'invoice.paid')!
    const asked = fixture.stripe.calls.length
    await Promise.all([fixture.deliver(event), fixture.deliver(event), fixture.deliver(event)])
    await fixture.deliver(event)
    expect(fixture.stripe.calls.slice(asked)).toHaveLength(1)
    expect(await fixture.planOf(actor)).toBe('plus')
  })

  test('that fails half-way is an error, so that Stripe sends it again, and then it works', async () => {
    const actor = await fixture.buyer()
    const [event] = fixture.stripe.undelivered
    fixture.stripe.isFailing = true
    const error = await fixture.deliver(event!).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(ApiError)
    expect(await fixture.planOf(actor)).toBe('free')
    fixture.stripe.isFailing = false
    await fixture.deliver(event!)
    expect(await fixture.planOf(actor)).toBe('plus')
  })

  test('about strangers, other products and other events is taken and ignored', async () => {
    const actor = await fixture.subscriber()
    const { customer } = await fixture.subscriptionOf(actor)
    const other = fixture.ledger.addOldPrice('mugs_monthly_usd', 'mugs', 900)
    fixture.ledger.subscribe(customer, other)
    fixture.ledger.subscribe('cus_of_nobody', other)
    fixture.ledger.emit('customer.created', { id: customer, customer })
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(await fixture.mails(actor, 'receipt')).toHaveLength(1)
  })
})

describe('reconciliation', () => {
  test('heals a payment and a cancellation of which no event arrived, within the hour', async () => {
    const actor = await fixture.buyer()
    fixture.stripe.undelivered.length = 0
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
    fixture.advance(59 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(await fixture.mails(actor, 'receipt')).toHaveLength(1)

    const subscription = await fixture.subscriptionOf(actor)
    fixture.ledger.cancelNow(subscription)
    fixture.stripe.undelivered.length = 0
    fixture.advance(59 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
    expect(await fixture.mails(actor, 'receipt')).toHaveLength(1)
  })

  test('asks about nothing that is not due, and never again about what has ended', async () => {
    const actor = await fixture.subscriber()
    fixture.ledger.cancelNow(await fixture.subscriptionOf(actor))
    await fixture.deliverAll()
    await settleEverything()
    const asked = fixture.stripe.calls.length
    await fixture.billing.reconcile()
    expect(fixture.stripe.calls.length).toBe(asked)
  })

  test('one that cannot be asked about does not keep the others waiting', async () => {
    const [first, second] = [await fixture.subscriber(), await fixture.subscriber()]
    const broken = await fixture.subscriptionOf(first)
    const kept = broken['items']
    broken['items'] = null
    fixture.ledger.cancelNow(await fixture.subscriptionOf(second))
    fixture.advance(59 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect([await fixture.planOf(first), await fixture.planOf(second)]).toEqual(['plus', 'free'])
    broken['items'] = kept
    fixture.ledger.cancelNow(broken)
    fixture.advance(6 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(first)).toBe('free')
  })

  test('a subscription that vanished from Stripe pays for nothing', async () => {
    const actor = await fixture.subscriber()
    fixture.ledger.subscriptions.delete((await fixture.subscriptionOf(actor)).id)
    fixture.advance(59 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
  })

  test('two controls at once do it once', async () => {
    const actor = await fixture.subscriber()
    fixture.ledger.cancelNow(await fixture.subscriptionOf(actor))
    await settleEverything()
    fixture.advance(59 * MINUTE_MS)
    const asked = fixture.stripe.calls.length
    await Promise.all([fixture.billing.reconcile(), fixture.billing.reconcile()])
    const calls = fixture.stripe.calls.slice(asked)
    expect(new Set(calls).size).toBe(calls.length)
  })

  test('a deleted organisation pays no longer, and its open checkout is closed', async () => {
    const [actor, shopper] = [await fixture.subscriber(), await fixture.newAccount()]
    const subscription = await fixture.subscriptionOf(actor)
    const { url } = await fixture.billing.checkout(shopper, PLUS)
    const mails = await fixture.mails(actor, 'receipt')
    await fixture.sql`update organisations set deleted_at = now() where id in ${fixture.sql([actor.orgId, shopper.orgId])}`
    await fixture.billing.reconcile()
    expect(subscription['status']).toBe('canceled')
    fixture.advance(16 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(openSessions(customerOfUrl(url))).toEqual([])
    expect(await fixture.mails(actor, 'receipt')).toEqual(mails)
  })

  async function settleEverything(): Promise<void> {
    await fixture.sql`update billing_checkouts set check_at = ${new Date(fixture.clock.now() + DAY_MS)}`
    await fixture.sql`update subscriptions set check_at = ${new Date(fixture.clock.now() + 10 * MINUTE_MS)} where check_at is not null`
  }
})

describe('the course of a subscription', () => {
  test('cancelled: the plan stays until the period ends, then free; drops beyond the cap pause; again: they return', async () => {
    const actor = await fixture.subscriber()
    for (let count = 0; count < 5; count++) await fixture.sites.create({ ...actor, plan: 'plus' }, {})
    fixture.ledger.cancelAtPeriodEnd(await fixture.subscriptionOf(actor))
    await fixture.deliverAll()
    const overview = await fixture.billing.overview(actor)
    expect(overview).toMatchObject({ plan: 'plus', status: 'active', cancel_at_period_end: true })
    fixture.advance(Date.parse(overview.current_period_end!) - fixture.clock.now() - MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('plus')
    fixture.advance(2 * MINUTE_MS)
    fixture.ledger.endPeriod(await fixture.subscriptionOf(actor))
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('free')
    expect((await fixture.sites.usage({ ...actor, plan: 'free' })).paused_drops).toBe(2)
    expect(await fixture.billing.overview(actor)).toMatchObject({ plan: 'free', status: 'canceled' })

    await fixture.stripe.pay((await fixture.billing.checkout(actor, BUSINESS)).url)
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('business')
    expect((await fixture.sites.usage({ ...actor, plan: 'business' })).paused_drops).toBe(0)
    expect(await fixture.mails(actor, 'receipt')).toHaveLength(2)
  })

  test('a cancellation taken back renews', async () => {
    const actor = await fixture.subscriber()
    const subscription = await fixture.subscriptionOf(actor)
    fixture.ledger.cancelAtPeriodEnd(subscription)
    fixture.ledger.resume(subscription)
    await fixture.deliverAll()
    expect(await fixture.billing.overview(actor)).toMatchObject({ plan: 'plus', cancel_at_period_end: false })
  })

  test('a missing payment: grace and one mail, then free; paid after all: back', async () => {
    const actor = await fixture.subscriber()
    fixture.ledger.failPayment(await fixture.subscriptionOf(actor))
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(await fixture.billing.overview(actor)).toMatchObject({ plan: 'plus', status: 'past_due' })
    expect(await fixture.mails(actor, 'past_due')).toHaveLength(1)
    for (let day = 1; day <= 6; day++) {
      fixture.advance(DAY_MS)
      await fixture.billing.reconcile()
      expect(await fixture.planOf(actor)).toBe('plus')
    }
    fixture.advance(DAY_MS + 2 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
    expect(await refusal(fixture.billing.checkout(actor, PLUS))).toBe('subscription_exists')
    fixture.ledger.payInvoice(await fixture.subscriptionOf(actor))
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('plus')
    expect(await fixture.mails(actor, 'past_due')).toHaveLength(1)
    expect(await fixture.mails(actor, 'receipt')).toHaveLength(2)
  })

  test('a missing payment of which no event arrived is told and ends all the same', async () => {
    const actor = await fixture.subscriber()
    fixture.ledger.failPayment(await fixture.subscriptionOf(actor))
    fixture.stripe.undelivered.length = 0
    fixture.advance(59 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.mails(actor, 'past_due')).toHaveLength(1)
    fixture.advance(7 * DAY_MS + 2 * MINUTE_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
  })

  test('a grandfathered plan stays what it is while it lasts', async () => {
    for (const plan of ['starter', 'pro']) {
      const actor = await fixture.newAccount()
      await fixture.sql`insert into billing_customers (org_id, customer_id) values (${actor.orgId}, ${`cus_old_${plan}`})`
      fixture.ledger.add(fixture.ledger.customers, { id: `cus_old_${plan}` })
      const price = fixture.ledger.addOldPrice(`${plan}_monthly_usd`, `dropway_${plan}`, 700)
      const subscription = fixture.ledger.subscribe(`cus_old_${plan}`, price)
      await fixture.deliverAll()
      expect(await fixture.planOf(actor)).toBe(plan)
      // A price that lost its name to a successor is still known by its product.
      price['lookup_key'] = null
      fixture.ledger.endPeriod(subscription)
      await fixture.deliverAll()
      expect(await fixture.planOf(actor)).toBe(plan)
      fixture.ledger.cancelNow(subscription)
      await fixture.deliverAll()
      expect(await fixture.planOf(actor)).toBe('free')
    }
  })

  test('a purchase that was never paid takes away nothing that someone was given', async () => {
    const actor = await fixture.newAccount()
    const { url } = await fixture.billing.checkout(actor, PLUS)
    await fixture.sql`update organisations set plan = 'business' where id = ${actor.orgId}`
    const customer = customerOfUrl(url)
    const price = [...fixture.ledger.prices.values()][0]!
    const subscription = fixture.ledger.subscribe(customer, price)
    subscription['status'] = 'incomplete'
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('business')
  })
})
