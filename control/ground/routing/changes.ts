/**
 * Transactions that write routes. What such a transaction has written is part of its result: the caller hands it to
 * `propagate`, whose answer is about these hosts and no others.
 */
import type { TransactionSql } from 'postgres'
import { transaction, type Pool } from '../database/sql.ts'

export interface RouteChanges {
  /** Hosts whose routes were written. */
  readonly hosts: ReadonlySet<string>
  /** Ids of the histories (shared/contracts/history.ts) that they were written in. */
  readonly histories: ReadonlySet<string>
}

export interface Changed<Value> {
  readonly value: Value
  readonly changes: RouteChanges
}

interface Notes {
  readonly hosts: Set<string>
  readonly histories: Set<string>
}

const NOTES = Symbol('routes that this transaction has written')

/** A transaction that notes which routes it writes. Only `changeRoutes` begins one, and only in one are routes written. */
export type RoutingTransaction = TransactionSql & { readonly [NOTES]: Notes }

export const NO_CHANGES: RouteChanges = { hosts: new Set(), histories: new Set() }

/** Runs `work` in one transaction, as `transaction` does, and resolves to its value and to the routes that it wrote. */
export function changeRoutes<Value>(
  pool: Pool,
  work: (tx: RoutingTransaction) => Promise<Value>,
): Promise<Changed<Value>> {
  return transaction(pool, async (sql) => {
    // Each attempt has notes of its own: what was rolled back is not told.
    const changes: Notes = { hosts: new Set(), histories: new Set() }
    const value = await work(Object.assign(sql, { [NOTES]: changes }))
    return { value, changes }
  })
}

export function noteRoute(tx: RoutingTransaction, host: string, history: string): void {
  tx[NOTES].hosts.add(host)
  tx[NOTES].histories.add(history)
}

/** For a caller who propagates once for several transactions. */
export function allChanges(parts: readonly RouteChanges[]): RouteChanges {
  return {
    hosts: new Set(parts.flatMap(({ hosts }) => [...hosts])),
    histories: new Set(parts.flatMap(({ histories }) => [...histories])),
  }
}
