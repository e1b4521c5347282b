/**
 * Forward-only migrations: `migrations/NNNN_name.sql`, applied in order, each in its own transaction.
 * An advisory lock makes it safe when two controls start at once.
 */
import { readdir, readFile } from 'node:fs/promises'
import type { Pool } from './sql.ts'

const LOCK_ID = 7_316_001
const FOLDER = new URL('./migrations/', import.meta.url)

export async function migrate(pool: Pool): Promise<string[]> {
  const connection = await pool.reserve()
  const applied: string[] = []
  try {
    await connection`select pg_advisory_lock(${LOCK_ID})`
    await connection`create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())`
    const done = new Set(
      (await connection<{ name: string }[]>`select name from schema_migrations`).map((row) => row.name),
    )
    for (const name of (await readdir(FOLDER)).filter((file) => file.endsWith('.sql')).toSorted()) {
      if (done.has(name)) continue
      const text = await readFile(new URL(name, FOLDER), 'utf8')
      await connection.unsafe(`begin;\n${text}\n;insert into schema_migrations (name) values ('${name}');\ncommit;`)
      applied.push(name)
    }
  } finally {
    await connection`select pg_advisory_unlock(${LOCK_ID})`.catch(() => {})
    connection.release()
  }
  return applied
}
