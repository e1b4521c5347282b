/** Billing work of one organisation happens one after the other, also across controls. */
import type { TransactionSql } from 'postgres'
import { createTurns } from '../../../shared/running/turns.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { changeRoutes, type Changed, type RoutingTransaction } from '../../ground/routing/changes.ts'
import { lockBilling } from './queries.ts'

/** Each holds a database connection while Stripe is asked: a slow Stripe must not take them all. */
const AT_ONCE = 4

export interface Exclusive {
  run<Result>(orgId: string, work: (tx: TransactionSql) => Promise<Result>): Promise<Result>
  /** As `run`, for work that may change the plan and, with it, what visitors see. */
  change<Result>(orgId: string, work: (tx: RoutingTransaction) => Promise<Result>): Promise<Changed<Result>>
}

export function createExclusive(sql: Pool): Exclusive {
  const turns = createTurns(AT_ONCE)
  return {
    run: (orgId, work) =>
      turns.take(() =>
        transaction(sql, async (tx) => {
          await lockBilling(tx, orgId)
          return work(tx)
        }),
      ),

    change: (orgId, work) =>
      turns.take(() =>
        changeRoutes(sql, async (tx) => {
          await lockBilling(tx, orgId)
          return work(tx)
        }),
      ),
  }
}
