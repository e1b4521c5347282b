/** What Stripe has lost, or never knew under these keys, is made anew: no one is locked out of paying. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BUSINESS, createBillingFixture, PLUS } from '../support/billing.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

let fixture: Awaited<ReturnType<typeof createBillingFixture>>
beforeAll(async () => {
  fixture = await createBillingFixture()
})
afterAll(() => fixture?.close())
beforeEach(() => void (fixture.stripe.undelivered.length = 0))

const customerOfUrl = (url: string): string => fixture.ledger.sessions.get(url.split('/').at(-1)!)!['customer']

/** As a change from test to live keys does it: nothing that was known exists any more, but the set-up does. */
function forgetPeople(): void {
  for (const things of ['customers', 'sessions', 'subscriptions', 'invoices'] as const) fixture.ledger[things].clear()
}

describe('a customer who is missing at Stripe', () => {
  test('is made anew by the next checkout, which can be paid', async () => {
    const actor = await fixture.newAccount()
    const first = await fixture.billing.checkout(actor, PLUS)
    const lost = customerOfUrl(first.url)
    fixture.ledger.deleteCustomer(lost)
    const second = await fixture.billing.checkout(actor, BUSINESS)
    expect(customerOfUrl(second.url)).not.toBe(lost)
    await fixture.stripe.pay(second.url)
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('business')
  })

  test('is made anew by the portal', async () => {
    const actor = await fixture.newAccount()
    const { url } = await fixture.billing.checkout(actor, PLUS)
    fixture.ledger.deleteCustomer(customerOfUrl(url))
    const portal = await fixture.billing.portal(actor)
    expect(portal.url).toMatch(`${fixture.stripe.url}/portal/`)
    // The same one from now on.
    const made = fixture.ledger.customers.size
    await fixture.billing.portal(actor)
    await fixture.billing.checkout(actor, PLUS)
    expect(fixture.ledger.customers.size).toBe(made)
  })

  test('two who notice it at once make one new customer', async () => {
    const actor = await fixture.newAccount()
    fixture.ledger.deleteCustomer(customerOfUrl((await fixture.billing.checkout(actor, PLUS)).url))
    const made = fixture.ledger.customers.size
    await Promise.all([
      fixture.billing.portal(actor),
      fixture.billing.checkout(actor, PLUS),
      fixture.billing.checkout(actor, PLUS),
    ])
    expect(fixture.ledger.customers.size).toBe(made + 1)
  })

  test('took a subscription along: it can be bought again at once, and late news of the old one change nothing', async () => {
    const actor = await fixture.subscriber()
    const old = await fixture.subscriptionOf(actor)
    fixture.ledger.deleteCustomer(old['customer'])
    const news = fixture.stripe.undelivered.splice(0)
    expect(news.map(({ type }) => type)).toContain('customer.subscription.deleted')
    const { url } = await fixture.billing.checkout(actor, BUSINESS)
    expect(await fixture.planOf(actor)).toBe('free')
    await fixture.stripe.pay(url)
    await fixture.deliverAll()
    for (const event of news) await fixture.deliver(event)
    expect(await fixture.planOf(actor)).toBe('business')
  })

  test('news of a subscription reach its organisation although its customer was replaced', async () => {
    const actor = await fixture.subscriber()
    const old = await fixture.subscriptionOf(actor)
    await fixture.sql`update billing_customers set customer_id = 'cus_other' where org_id = ${actor.orgId}`
    fixture.ledger.cancelNow(old)
    await fixture.deliverAll()
    expect(await fixture.planOf(actor)).toBe('free')
  })
})

describe('keys of another Stripe account', () => {
  test('checkout, portal and coming back work; what was bought elsewhere pays for nothing here', async () => {
    const [shopper, subscriber, other] = [
      await fixture.newAccount(),
      await fixture.subscriber(),
      await fixture.subscriber(),
    ]
    await fixture.billing.checkout(shopper, PLUS)
    forgetPeople()
    await fixture.billing.returned(shopper)
    const again = await fixture.billing.checkout(shopper, PLUS)
    await fixture.stripe.pay(again.url)
    await fixture.deliverAll()
    expect(await fixture.planOf(shopper)).toBe('plus')

    const bought = await fixture.billing.checkout(subscriber, PLUS)
    await fixture.stripe.pay(bought.url)
    await fixture.deliverAll()
    expect(await fixture.planOf(subscriber)).toBe('plus')

    expect((await fixture.billing.portal(other)).url).toMatch('/portal/')
    expect(await fixture.planOf(other)).toBe('free')
  })

  test('set by mistake and put back: within a day the plans are what they were', async () => {
    const actor = await fixture.subscriber()
    const subscriptions = new Map(fixture.ledger.subscriptions)
    fixture.ledger.subscriptions.clear()
    fixture.advance(HOUR_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('free')
    for (const [id, subscription] of subscriptions) fixture.ledger.subscriptions.set(id, subscription)
    fixture.advance(DAY_MS)
    await fixture.billing.reconcile()
    expect(await fixture.planOf(actor)).toBe('plus')
  })
})
