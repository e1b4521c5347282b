/** A control is killed behind every statement of every migration: the next start finishes, and nothing is half. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate, migrationNames, readMigration } from '../../control/ground/database/migrate.ts'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { statementsOf } from '../../control/operations/admin/upgrade-rules.ts'
import { createBareDatabase, type TestDatabase } from '../support/postgres.ts'

const PROGRAM = fileURLToPath(new URL('../support/migrating-process.ts', import.meta.url))
const FOLDER = path.resolve(import.meta.dirname, '../../control/ground/database/migrations')
const NODE = path.resolve(import.meta.dirname, '../../node_modules/.bin/node')
let folder: string
let whole: TestDatabase
let expected: string
/** Holds every migration before the one that is looked at. */
let before: TestDatabase

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-migrations-'))
  ;[whole, before] = await Promise.all([createBareDatabase(), createBareDatabase()])
  await migrate(whole.sql)
  expected = await schemaOf(whole.sql)
})
afterAll(async () => {
  await Promise.all([whole?.close(), before?.close()])
  await rm(folder, { recursive: true, force: true })
})

/** Everything that a migration can make, in one text. */
async function schemaOf(sql: Pool): Promise<string> {
  const columns = await sql`
    select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
    where table_schema = 'public' order by 1, 2`
  const indexes = await sql`select indexdef from pg_indexes where schemaname = 'public' order by 1`
  const constraints = await sql`
    select conrelid::regclass::text as on_table, pg_get_constraintdef(oid) as says from pg_constraint
    where connamespace = 'public'::regnamespace order by 1, 2`
  return JSON.stringify({ columns, indexes, constraints }, undefined, 1)
}

/** The migrations with a pause behind statement `count` of one of them, long enough to be killed in. */
async function folderWithPause(name: string, statements: readonly string[], count: number): Promise<string> {
  const place = await mkdtemp(path.join(folder, 'texts-'))
  await cp(FOLDER, place, { recursive: true })
  const paused = statements.toSpliced(count, 0, 'select pg_sleep(1)')
  await writeFile(path.join(place, name), `${paused.join(';\n')};\n`)
  return pathToFileURL(`${place}/`).href
}

async function killInPause(url: string, texts: string, sql: Pool): Promise<void> {
  const child: ChildProcess = fork(PROGRAM, [url, texts], { execPath: NODE, execArgv: [], stdio: 'ignore' })
  const exited = once(child, 'exit')
  for (let tries = 0; ; tries++) {
    const [pausing] = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
    if (pausing) break
    if (child.exitCode !== null || tries > 3000) throw new Error('the migration ended before it could be killed')
    await sleep(10)
  }
  child.kill('SIGKILL')
  await exited
}

test('each of them', { timeout: 3_600_000 }, async () => {
  const [place = '', base = ''] = before.url.split('?database=')
  const urlOf = (database: string): string => `${place}?database=${database}`
  // A template must have no one in it.
  await before.sql.end({ timeout: 1 })
  const server = openDatabase({ url: urlOf('postgres'), maxConnections: 1 })
  let kills = 0
  for (const name of await migrationNames()) {
    const statements = statementsOf(await readMigration(name))
    for (let count = 0; count <= statements.length; count++) {
      const texts = await folderWithPause(name, statements, count)
      const copy = `killed_${process.pid}_${kills++}`
      await server.unsafe(`create database ${copy} template ${base}`)
      const url = urlOf(copy)
      const sql = openDatabase({ url, maxConnections: 2 })
      try {
        await killInPause(url, texts, sql)
        // Waits for what the killed one still holds, then goes on where it was.
        expect(await migrate(sql)).toContain(name)
        expect(await schemaOf(sql), `${name} behind statement ${count}`).toBe(expected)
      } finally {
        await sql.end({ timeout: 1 })
        await server.unsafe(`drop database ${copy} with (force)`)
        await rm(new URL(texts), { recursive: true, force: true })
      }
    }
    const own = openDatabase({ url: before.url, maxConnections: 1 })
    await own`create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())`
    await own.unsafe(await readMigration(name))
    await own`insert into schema_migrations (name) values (${name})`
    await own.end({ timeout: 1 })
  }
  await server.end({ timeout: 1 })
  expect(kills).toBeGreaterThan(100)
})
