/**
 * The bill follows the owner. When an organisation changes hands, Stripe's customer gets the new owner's address, and
 * the former owner's means of payment are taken off it: a person who may no longer cancel is not charged. Noted in
 * the transaction of the transfer and done afterwards, again and again until Stripe has done it.
 */
import type Stripe from 'stripe'
import type { Clock } from '../../../shared/running/clock.ts'
import { plans } from '../../ground/terms/plans.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { Bill } from '../../ground/mail/letters/templates.ts'
import type { Exclusive } from './exclusive.ts'
import * as queries from './queries.ts'
import { orMissing } from './stripe.ts'

export interface Handovers {
  /** Notes that the bill has to follow the organisation's new owner; resolves to what there is to pay, if anything. */
  note(tx: Sql, orgId: string): Promise<Bill | undefined>
  /** Does what was noted, if it was. The way to the portal waits for it: a card that is added stays. */
  carryOut(orgId: string): Promise<void>
}

/** Stripe's largest page. Checkout and the portal cannot have added more than these. */
const PAGE = 100

export function createHandovers({
  exclusive,
  clock,
  client,
}: {
  exclusive: Exclusive
  clock: Clock
  client: () => Stripe
}): Handovers {
  async function handOver(tx: Sql, orgId: string, customer: string): Promise<void> {
    const organisation = await queries.findOrganisation(tx, orgId)
    if (!organisation || organisation.is_deleted) return
    const { email, name } = organisation
    if (!(await orMissing(client().customers.update(customer, { email, name })))) return
    const { data: means } = await client().customers.listPaymentMethods(customer, { limit: PAGE })
    for (const { id } of means) await orMissing(client().paymentMethods.detach(id))
  }

  return {
    async note(tx, orgId) {
      if (!(await queries.customerOf(tx, orgId))) return undefined
      await queries.noteHandover(tx, orgId, new Date(clock.now()))
      const [bill] = await queries.liveSubscriptions(tx, [orgId])
      return bill && { plan: plans[bill.plan].label, until: bill.until }
    },

    carryOut: (orgId) =>
      exclusive.run(orgId, async (tx) => {
        if (!(await queries.takeHandover(tx, orgId))) return
        const customer = await queries.customerOf(tx, orgId)
        if (customer) await handOver(tx, orgId, customer)
      }),
  }
}
