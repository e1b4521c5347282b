/**
 * The Stripe customer of an organisation: one, made before anything is bought, so that every later attempt is the same
 * customer's. One that is missing at Stripe (deleted there, or known under other keys) is replaced, once,
 * by the first to notice it; what it had bought is asked about again.
 */
import type Stripe from 'stripe'
import { errors } from '../../../shared/contracts/errors.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { Changed, RouteChanges, RoutingTransaction } from '../../ground/routing/changes.ts'
import type { Exclusive } from './exclusive.ts'
import * as queries from './queries.ts'
import { idempotencyKey, isMissing } from './stripe.ts'

export interface Customers {
  /** Runs the work for the organisation's customer, made if there is none; again with a new one if it is missing. */
  withCustomer<Result>(orgId: string, work: (customer: string) => Promise<Result>): Promise<Result>
}

interface CustomersDependencies {
  readonly exclusive: Exclusive
  readonly client: () => Stripe
  /** What the lost customer had open or bought is gone too: asks again, and makes the plan follow. */
  readonly onReplaced: (tx: RoutingTransaction, orgId: string) => Promise<void>
  /** After the commit: tells the edges. */
  readonly propagate: (changes: RouteChanges) => Promise<unknown>
}

export function createCustomers({ exclusive, client, onReplaced, propagate }: CustomersDependencies): Customers {
  async function create(tx: Sql, orgId: string, replaces: string | undefined): Promise<string> {
    const organisation = await queries.findOrganisation(tx, orgId)
    if (!organisation || organisation.is_deleted) throw errors.notFound('organisation')
    const parameters = { email: organisation.email, name: organisation.name, metadata: { org_id: orgId } }
    const customer = await client().customers.create(parameters, {
      // Stripe answers a repeated key with the old answer, and so with the customer that was lost.
      idempotencyKey: idempotencyKey('customer', replaces === undefined ? parameters : { ...parameters, replaces }),
    })
    await queries.saveCustomer(tx, orgId, customer.id)
    return customer.id
  }

  const ensure = (orgId: string): Promise<string> =>
    exclusive.run(orgId, async (tx) => (await queries.customerOf(tx, orgId)) ?? create(tx, orgId, undefined))

  const replace = (orgId: string, lost: string): Promise<Changed<string>> =>
    exclusive.change(orgId, async (tx) => {
      const known = await queries.customerOf(tx, orgId)
      if (known !== undefined && known !== lost) return known
      const made = await create(tx, orgId, lost)
      await onReplaced(tx, orgId)
      return made
    })

  return {
    async withCustomer(orgId, work) {
      const customer = await ensure(orgId)
      try {
        return await work(customer)
      } catch (error) {
        if (!isMissing(error, 'customer')) throw error
        const { value: replacement, changes } = await replace(orgId, customer)
        await propagate(changes)
        return work(replacement)
      }
    },
  }
}
