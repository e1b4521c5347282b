/** An organisation changes hands: the former owner is not charged, and the new one is asked to pay. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { createOrganisations } from '../../control/people/organisations/organisations.ts'
import { BASE_URL } from '../support/accounts.ts'
import { createBillingFixture, PLUS } from '../support/billing.ts'

const MINUTE_MS = 60_000

let fixture: Awaited<ReturnType<typeof createBillingFixture>>
let organisations: ReturnType<typeof createOrganisations>
beforeAll(async () => {
  fixture = await createBillingFixture()
  const { sql, clock, enqueueMail, hooks, billing } = fixture
  organisations = createOrganisations({
    sql,
    clock,
    enqueueMail,
    baseUrl: BASE_URL,
    hooks: { ...hooks, onOwnerChanged: async (tx, orgId) => ({ bill: await billing.ownerChanged(tx, orgId) }) },
  })
})
afterAll(() => fixture?.close())

/** A shared organisation with a member, both as actors for it. */
async function sharedOrganisation(): Promise<{ owner: Actor; heir: Actor }> {
  const [founder, member] = [await fixture.newAccount(), await fixture.newAccount()]
  const { id } = await organisations.create(founder, 'Harbour')
  await organisations.invite(founder, id, { email: member.email, role: 'member' })
  const invitation = (await fixture.mailsTo(member.email)).find(({ template }) => template === 'invitation')!
  await organisations.accept(member, invitation.token)
  return { owner: { ...founder, orgId: id, role: 'owner' }, heir: { ...member, orgId: id, role: 'member' } }
}

async function subscribed(): Promise<{ owner: Actor; heir: Actor; customer: string }> {
  const people = await sharedOrganisation()
  await fixture.stripe.pay((await fixture.billing.checkout(people.owner, PLUS)).url)
  await fixture.deliverAll()
  const { customer } = await fixture.subscriptionOf(people.owner)
  return { ...people, customer }
}

const mailOf = async ({ email }: Actor, template: string) =>
  (await fixture.mailsTo(email)).find((mail) => mail.template === template)

test('the bill follows the owner: address, no card of the former one, and both are told', async () => {
  const { owner, heir, customer } = await subscribed()
  expect(fixture.ledger.cardsOf(customer)).toHaveLength(1)
  await organisations.transfer(owner, owner.orgId, heir.userId)
  await fixture.billing.reconcile()

  expect(fixture.ledger.customers.get(customer)).toMatchObject({ email: heir.email, name: 'Harbour' })
  expect(fixture.ledger.cardsOf(customer)).toEqual([])
  expect(await fixture.planOf(owner)).toBe('plus')
  const received = await mailOf(heir, 'organisation_received')
  expect(received!.text).toMatch(/Dropway Plus, paid until \d/)
  expect(received!.text).toContain(`${BASE_URL}/account/plan`)
  expect((await mailOf(owner, 'organisation_handed_over'))!.text).toContain('no longer charged to you')
})

test('while Stripe is away the transfer stands, and the bill follows as soon as it can', async () => {
  const { owner, heir, customer } = await subscribed()
  fixture.stripe.isFailing = true
  await organisations.transfer(owner, owner.orgId, heir.userId)
  await fixture.billing.reconcile()
  expect(fixture.ledger.cardsOf(customer)).toHaveLength(1)
  fixture.stripe.isFailing = false
  fixture.advance(6 * MINUTE_MS)
  await fixture.billing.reconcile()
  expect(fixture.ledger.cardsOf(customer)).toEqual([])
})

test('a card that the new owner adds stays, however soon', async () => {
  const { owner, heir, customer } = await subscribed()
  await organisations.transfer(owner, owner.orgId, heir.userId)
  await fixture.billing.portal({ ...heir, role: 'owner' })
  fixture.ledger.addCard(customer)
  await fixture.billing.reconcile()
  expect(fixture.ledger.cardsOf(customer)).toHaveLength(1)
})

test('without a card the next payment fails, and the new owner hears of it', async () => {
  const { owner, heir } = await subscribed()
  await organisations.transfer(owner, owner.orgId, heir.userId)
  await fixture.billing.reconcile()
  fixture.ledger.failPayment(await fixture.subscriptionOf(owner))
  await fixture.deliverAll()
  expect(await mailOf(heir, 'past_due')).toBeDefined()
  expect(await mailOf(owner, 'past_due')).toBeUndefined()
})

test('without a subscription both are told, and nothing is said of money', async () => {
  const { owner, heir } = await sharedOrganisation()
  await organisations.transfer(owner, owner.orgId, heir.userId)
  for (const mail of [await mailOf(heir, 'organisation_received'), await mailOf(owner, 'organisation_handed_over')])
    expect(mail!.text).not.toMatch(/card|plan\b|paid/)
})

test('a customer that is missing at Stripe holds up no handover', async () => {
  const { owner, heir, customer } = await subscribed()
  fixture.ledger.deleteCustomer(customer)
  await fixture.deliverAll()
  await organisations.transfer(owner, owner.orgId, heir.userId)
  await fixture.billing.reconcile()
  expect(await fixture.sql`select 1 from billing_handovers where org_id = ${owner.orgId}`).toHaveLength(0)
})

test('what ends with an organisation can be named before it is deleted', async () => {
  const { owner, heir } = await subscribed()
  const [bill] = await fixture.billing.subscriptionsOf([owner.orgId])
  expect(bill).toEqual({ plan: 'Plus', until: expect.any(Date) })
  expect(await fixture.billing.subscriptionsOf([(await sharedOrganisation()).heir.orgId])).toEqual([])
  expect(heir.orgId).toBe(owner.orgId)
})

test('an open checkout of a deleted organisation closes with the next look, long before it is due', async () => {
  const shopper = await fixture.newAccount()
  const { url } = await fixture.billing.checkout(shopper, PLUS)
  await fixture.sql`update organisations set deleted_at = now() where id = ${shopper.orgId}`
  await fixture.billing.reconcile()
  await expect(fixture.stripe.pay(url)).rejects.toThrow('closed')
})
