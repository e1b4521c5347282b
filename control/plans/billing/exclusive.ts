/** Billing work of one organisation happens one after the other, also across controls. */
import type { TransactionSql } from 'postgres'
import { transaction, type Pool } from '../../ground/database/sql.ts'
import { lockBilling } from './queries.ts'

/** Each holds a database connection while Stripe is asked: a slow Stripe must not take them all. */
const AT_ONCE = 4

export type Exclusive = <Result>(orgId: string, work: (tx: TransactionSql) => Promise<Result>) => Promise<Result>

export function createExclusive(sql: Pool): Exclusive {
  const waiting: (() => void)[] = []
  let free = AT_ONCE

  async function enter(): Promise<void> {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
  }

  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else free++
  }

  return async (orgId, work) => {
    await enter()
    try {
      return await transaction(sql, async (tx) => {
        await lockBilling(tx, orgId)
        return work(tx)
      })
    } finally {
      leave()
    }
  }
}
