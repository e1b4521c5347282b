/** Billing work of one organisation happens one after the other, also across controls. */
import type { TransactionSql } from 'postgres'
import { createTurns } from '../../../shared/running/turns.ts'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { lockBilling } from './queries.ts'

/** Each holds a database connection while Stripe is asked: a slow Stripe must not take them all. */
const AT_ONCE = 4

export type Exclusive = <Result>(orgId: string, work: (tx: TransactionSql) => Promise<Result>) => Promise<Result>

export function createExclusive(sql: Pool): Exclusive {
  const turns = createTurns(AT_ONCE)
  return (orgId, work) =>
    turns.take(() =>
      transaction(sql, async (tx) => {
        await lockBilling(tx, orgId)
        return work(tx)
      }),
    )
}
