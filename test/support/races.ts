/** Races whose order is known: who waits for whom is read off Postgres, not left to chance. */
import { expect } from 'vitest'
import type { Pool } from '../../control/ground/database/sql.ts'
import { changeRoutes, type RoutingTransaction } from '../../control/ground/routing/changes.ts'

/**
 * Does the first thing in a transaction; lets the others begin, one after the other, until each waits for a lock; then
 * commits. Returns what the others gave or threw. For a database of the test's own.
 */
export async function duringTransaction(
  sql: Pool,
  first: (held: RoutingTransaction) => Promise<unknown>,
  ...others: (() => Promise<unknown>)[]
): Promise<unknown[]> {
  const begun: Promise<unknown>[] = []
  await changeRoutes(sql, async (held) => {
    await first(held)
    for (const other of others) {
      begun.push(other().catch((error: unknown) => error))
      await expect.poll(() => waiting(sql), { interval: 10 }).toBe(begun.length)
    }
  })
  return Promise.all(begun)
}

async function waiting(sql: Pool): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return row!.count
}
