import { randomUUID } from 'node:crypto'
import { one, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { TableSize } from './upgrade-rules.ts'

export interface FoundAccount {
  readonly user_id: string
  readonly email: string
  /** The user's own organisation. */
  readonly org_id: string
}

export async function findAccount(sql: Sql, email: string): Promise<FoundAccount | undefined> {
  const [account] = await sql<FoundAccount[]>`
    select users.id as user_id, users.email, organisations.id as org_id
    from users join organisations on organisations.owner_id = users.id
    where lower(users.email) = lower(${email}) and organisations.personal and organisations.deleted_at is null`
  return account
}

export async function makeStaff(sql: Sql, userId: string): Promise<void> {
  await sql`update users set is_staff = true where id = ${userId}`
}

export interface DatabaseFacts {
  readonly version: string
  readonly now: Date
  /** `0`: none. */
  readonly statement_timeout: string
}

export async function databaseFacts(sql: Sql): Promise<DatabaseFacts> {
  return one(
    await sql<DatabaseFacts[]>`
      select current_setting('server_version') as version, clock_timestamp() as now,
        current_setting('statement_timeout') as statement_timeout`,
  )
}

/** As the last look of Postgres at its tables found them; a table that was never looked at counts by its size. */
export async function tableSizes(sql: Sql): Promise<Map<string, TableSize>> {
  const rows = await sql<(TableSize & { name: string })[]>`
    select relname as name, greatest(reltuples, 0)::bigint as rows, pg_relation_size(oid) as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`
  return new Map(rows.map(({ name, rows: count, bytes }) => [name, { rows: count, bytes }]))
}

class TakenBack extends Error {}

/** Writes a little and takes it back: that the disk is full, or rights are missing, shows only then. */
export async function probeWriting(pool: Pool): Promise<void> {
  try {
    await pool.begin(async (sql) => {
      await sql`
        create table ${sql(`doctor_${randomUUID()}`)} as
        select repeat('x', 1000) as filling from generate_series(1, 100)`
      throw new TakenBack()
    })
  } catch (error) {
    if (!(error instanceof TakenBack)) throw error
  }
}
