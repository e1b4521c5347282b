/**
 * Forward-only migrations: `migrations/NNNN_name.sql`, applied in order, each in its own transaction.
 * An advisory lock makes it safe when two controls start at once.
 */
import { readdir, readFile } from 'node:fs/promises'
import { transaction, type Pool, type Sql } from './sql.ts'

const LOCK_ID = 7_316_001
const FOLDER = new URL('./migrations/', import.meta.url)

export async function migrate(pool: Pool): Promise<string[]> {
  const names = (await readdir(FOLDER)).filter((file) => file.endsWith('.sql')).toSorted()
  const applied: string[] = []
  for (let name = await applyNext(pool, names); name !== undefined; name = await applyNext(pool, names))
    applied.push(name)
  return applied
}

/** Applies the first migration that was not applied yet; undefined when there is none. */
function applyNext(pool: Pool, names: readonly string[]): Promise<string | undefined> {
  return transaction(pool, async (sql) => {
    // A migration may take as long as it needs, and so may controls that wait for it.
    await sql`set local statement_timeout = 0`
    await sql`select pg_advisory_xact_lock(${LOCK_ID})`
    await sql`create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())`
    const done = new Set((await sql<{ name: string }[]>`select name from schema_migrations`).map((row) => row.name))
    const name = names.find((candidate) => !done.has(candidate))
    if (name === undefined) return undefined
    await sql.unsafe(await readFile(new URL(name, FOLDER), 'utf8'))
    await sql`insert into schema_migrations (name) values (${name})`
    return name
  })
}

export async function appliedMigrations(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select name from schema_migrations`
  return rows.map((row) => row.name)
}
