import { afterAll, beforeAll, expect, test } from 'vitest'
import { createBillingFixture, PLUS } from '../support/billing.ts'
import type { LedgerEvent, Thing } from '../support/stripe-ledger.ts'

const ORDERS = 20
const REPEATS = 10

let fixture: Awaited<ReturnType<typeof createBillingFixture>>
beforeAll(async () => {
  fixture = await createBillingFixture()
})
afterAll(() => fixture?.close())

/** The same order for the same seed, so that a failure can be seen again. */
function shuffled<Value>(values: readonly Value[], seed: number): Value[] {
  let state = seed + 1
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
  return values
    .map((value) => ({ value, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

const priceOf = (key: string): Thing =>
  [...fixture.ledger.prices.values()].find((price) => price['lookup_key'] === key)!

/** What customers do, what it costs them in receipts, and the plan that it must end in. */
const histories: readonly { name: string; plan: string; receipts: number; live(subscription: Thing): void }[] = [
  {
    name: 'upgraded, then a payment that came late',
    plan: 'business',
    receipts: 3,
    live(subscription) {
      fixture.ledger.changePrice(subscription, priceOf('dropway_business_monthly_eur'))
      fixture.ledger.failPayment(subscription)
      fixture.ledger.payInvoice(subscription)
    },
  },
  {
    name: 'renewed, cancelled, ended',
    plan: 'free',
    receipts: 2,
    live(subscription) {
      fixture.ledger.endPeriod(subscription)
      fixture.ledger.cancelAtPeriodEnd(subscription)
      fixture.ledger.endPeriod(subscription)
    },
  },
]

for (const { name, plan, receipts, live } of histories) {
  test(`${name}: each event ten times, in twenty orders, ends in ${plan}`, async () => {
    const person = await fixture.newAccount()
    for (let seed = 0; seed < ORDERS; seed++) {
      const actor = await fixture.anotherOrganisation(person)
      await fixture.stripe.pay((await fixture.billing.checkout(actor, PLUS)).url)
      // Some orders hear of the beginning early, others of everything only at the end.
      const early = fixture.stripe.undelivered.slice(0, seed % 4)
      for (const event of early) await fixture.deliver(event)
      live(await fixture.subscriptionOf(actor))
      const events = fixture.stripe.undelivered.splice(0)
      await deliverInParallel(shuffled(Array<LedgerEvent[]>(REPEATS).fill(events).flat(), seed))
      expect({ seed, plan: await fixture.planOf(actor) }).toEqual({ seed, plan })
      expect(await fixture.mails(actor, 'receipt')).toHaveLength(receipts * (seed + 1))
    }
  })
}

/** A few at a time, as Stripe does. */
async function deliverInParallel(events: readonly LedgerEvent[]): Promise<void> {
  const queue = [...events]
  const worker = async () => {
    for (let event = queue.shift(); event; event = queue.shift()) await fixture.deliver(event)
  }
  await Promise.all([worker(), worker(), worker()])
}
