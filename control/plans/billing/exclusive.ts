/** Billing work of one organisation happens one after the other, also across controls. */
import type { TransactionSql } from 'postgres'
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

  async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    await enter()
    try {
      return await work()
    } finally {
      leave()
    }
  }

  return {
    run: (orgId, work) =>
      inTurn(() =>
        transaction(sql, async (tx) => {
          await lockBilling(tx, orgId)
          return work(tx)
        }),
      ),

    change: (orgId, work) =>
      inTurn(() =>
        changeRoutes(sql, async (tx) => {
          await lockBilling(tx, orgId)
          return work(tx)
        }),
      ),
  }
}
