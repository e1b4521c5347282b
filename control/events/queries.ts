import type { RouteRecord } from '../../shared/route-record.ts'
import type { Sql } from '../database/sql.ts'

const PUBLICATION_LOCK = 7_316_002
/** A publisher that says nothing for this long has vanished; waiting for Redis takes it a second. */
const MAX_SILENCE_MS = 30_000

export interface OutboxRow {
  id: number
  kind: 'route' | 'domain' | 'certificate'
  name: string
  value: string
}

/** Held until the transaction ends. One publisher at a time, across all controls. */
export async function lockPublication(sql: Sql): Promise<void> {
  await sql`
    select set_config('idle_in_transaction_session_timeout', ${String(MAX_SILENCE_MS)}, true),
      pg_advisory_xact_lock(${PUBLICATION_LOCK})`
}

export async function readOutbox(sql: Sql, limit: number): Promise<OutboxRow[]> {
  return sql<OutboxRow[]>`select id, kind, name, value from outbox order by id limit ${limit}`
}

export async function deleteOutboxRows(sql: Sql, ids: readonly number[]): Promise<void> {
  await sql`delete from outbox where id = any(${ids as number[]})`
}

export async function routesAfter(
  sql: Sql,
  host: string,
  limit: number,
): Promise<{ host: string; record: RouteRecord }[]> {
  return sql<
    { host: string; record: RouteRecord }[]
  >`select host, record from routes where host > ${host} order by host limit ${limit}`
}
