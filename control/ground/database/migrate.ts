/**
 * Forward-only migrations: `migrations/NNNN_name.sql`, applied in order, each in its own transaction.
 * An advisory lock makes it safe when two controls start at once.
 *
 * A migration that waits for a table (a backup reads it) makes everyone wait behind it. It gives up soon, lets the others
 * pass, and begins again, until it gets the table.
 */
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { transaction, type Pool, type Sql } from './sql.ts'

const LOCK_ID = 7_316_001
const FOLDER = new URL('./migrations/', import.meta.url)

/** How long callers may have to wait behind a migration that does not get its table. */
const MAX_LOCK_WAIT_MS = 1000
/** Callers have the tables to themselves for this long before the next attempt. */
const PAUSE_MS = 4000
/** Postgres's code for a lock that was not to be had in time. */
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * `folder` holds other texts for the same names in tests of the migrations themselves; `pause` is what is done before an
 * attempt is repeated.
 */
export async function migrate(
  pool: Pool,
  folder = FOLDER,
  pause: () => Promise<unknown> = () => sleep(PAUSE_MS),
): Promise<string[]> {
  const names = await migrationNames(folder)
  const applied: string[] = []
  for (;;) {
    try {
      const name = await applyNext(pool, names, folder)
      if (name === undefined) return applied
      applied.push(name)
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
      await pause()
    }
  }
}

/** Those of this release, in their order. */
export async function migrationNames(folder = FOLDER): Promise<string[]> {
  return (await readdir(folder)).filter((file) => file.endsWith('.sql')).toSorted()
}

export function readMigration(name: string, folder = FOLDER): Promise<string> {
  return readFile(new URL(name, folder), 'utf8')
}

/** Applies the first migration that was not applied yet; undefined when there is none. */
function applyNext(pool: Pool, names: readonly string[], folder: URL): Promise<string | undefined> {
  return transaction(pool, async (sql) => {
    // A migration may take as long as it needs, and so may controls that wait for it.
    await sql`set local statement_timeout = 0`
    await sql`select pg_advisory_xact_lock(${LOCK_ID})`
    await sql`select set_config('lock_timeout', ${String(MAX_LOCK_WAIT_MS)}, true)`
    await sql`create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())`
    const done = new Set((await sql<{ name: string }[]>`select name from schema_migrations`).map((row) => row.name))
    const name = names.find((candidate) => !done.has(candidate))
    if (name === undefined) return undefined
    await sql.unsafe(await readMigration(name, folder))
    await sql`insert into schema_migrations (name) values (${name})`
    return name
  })
}

/** Postgres's code for a table that there is not. */
const UNDEFINED_TABLE = '42P01'

/** None where no control has ever started on this database. */
export async function appliedMigrations(sql: Sql): Promise<string[]> {
  try {
    const rows = await sql<{ name: string }[]>`select name from schema_migrations`
    return rows.map((row) => row.name)
  } catch (error) {
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return []
    throw error
  }
}
