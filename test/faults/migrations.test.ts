/**
 * A control is killed behind every statement of every migration: the next start finishes it, and nothing is half. Each kill has
 * a database of its own, copied from one that holds all migrations before. The control waits behind the statement for a lock that
 * the test holds, so that no kill comes too early or too late, however busy the machine is.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate, migrationNames, readMigration } from '../../control/ground/database/migrate.ts'
import { openDatabase, type Pool } from '../../control/ground/database/sql.ts'
import { statementsOf } from '../../control/operations/admin/upgrade-rules.ts'
import type { Migrating } from '../support/migrating-process.ts'
import { createBareDatabase, type TestDatabase } from '../support/postgres.ts'

const PROGRAM = fileURLToPath(new URL('../support/migrating-process.ts', import.meta.url))
const NODE = path.resolve(import.meta.dirname, '../../node_modules/.bin/node')
/** Anyone's but that of the migrations. */
const PAUSE_LOCK_ID = 7_316_999
const PAUSE = `select pg_advisory_xact_lock(${PAUSE_LOCK_ID})`

let folder: string
/** Holds every migration before the one that is looked at. */
let before: TestDatabase
let server: Pool
/** The control that is killed next: it starts while the one before is looked at. */
let next: ChildProcess

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-migrations-'))
  before = await createBareDatabase()
  server = openDatabase({ url: urlOf('postgres'), maxConnections: 1 })
  next = startControl()
  // A template must have no one in it.
  await before.sql.end({ timeout: 1 })
})
afterAll(async () => {
  next?.kill('SIGKILL')
  await server?.end({ timeout: 1 })
  await before?.close()
  await rm(folder, { recursive: true, force: true })
})

function urlOf(database: string): string {
  return `${before.url.split('?database=')[0]}?database=${database}`
}

function startControl(): ChildProcess {
  const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'compiled') }
  return fork(PROGRAM, { execPath: NODE, execArgv: [], stdio: 'ignore', env })
}

/** Everything that a migration can make, in one text. */
async function schemaOf(sql: Pool): Promise<string> {
  const columns = await sql`
    select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
    where table_schema = 'public' order by 1, 2`
  const indexes = await sql`
    select pg_get_indexdef(oid) as says, reloptions::text from pg_class
    where relkind = 'i' and relnamespace = 'public'::regnamespace order by 1`
  const constraints = await sql`
    select conrelid::regclass::text as on_table, pg_get_constraintdef(oid) as says from pg_constraint
    where connamespace = 'public'::regnamespace order by 1, 2`
  const functions = await sql`
    select pg_get_functiondef(oid) as says from pg_proc where pronamespace = 'public'::regnamespace order by 1`
  const triggers = await sql`select pg_get_triggerdef(oid) as says from pg_trigger where not tgisinternal order by 1`
  const applied = await sql`select name from schema_migrations order by 1`
  return JSON.stringify({ columns, indexes, constraints, functions, triggers, applied }, undefined, 1)
}

/** A folder with this one migration. */
async function folderOf(name: string, statements: readonly string[]): Promise<URL> {
  const place = await mkdtemp(path.join(folder, 'texts-'))
  await writeFile(path.join(place, name), `${statements.join(';\n')};\n`)
  return pathToFileURL(`${place}/`)
}

/** Lets a control begin a migration that pauses at one place, and kills it there. */
async function killInPause(url: string, texts: URL): Promise<void> {
  const holder = openDatabase({ url, maxConnections: 1 })
  const child = next
  const exited = once(child, 'exit')
  await holder`select pg_advisory_lock(${PAUSE_LOCK_ID})`
  child.send({ url, folder: texts.href } satisfies Migrating)
  next = startControl()
  const isPausing = async (): Promise<boolean> =>
    (
      await holder`
        select from pg_locks where database = (select oid from pg_database where datname = current_database())
          and locktype = 'advisory' and objid = ${PAUSE_LOCK_ID} and not granted`
    ).length > 0
  while (!(await isPausing())) {
    if (child.exitCode !== null) throw new Error('the migration ended before it could be killed')
    await sleep(2)
  }
  child.kill('SIGKILL')
  await exited
  // What was its statement goes on to its end in Postgres, as it does when a machine dies.
  await holder.end({ timeout: 1 })
}

/** Applies a migration where nothing interrupts it; resolves what it makes. */
async function applyTo(database: string, name: string, texts: URL): Promise<string> {
  const sql = openDatabase({ url: urlOf(database), maxConnections: 2 })
  try {
    expect(await migrate(sql, texts)).toEqual([name])
    return await schemaOf(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

test('each of them', { timeout: 3_600_000 }, async () => {
  const base = before.url.split('?database=')[1]!
  let kills = 0
  for (const name of await migrationNames()) {
    const statements = statementsOf(await readMigration(name))
    const texts = await folderOf(name, statements)
    const whole = `whole_${process.pid}`
    await server.unsafe(`create database ${whole} template ${base}`)
    const expected = await applyTo(whole, name, texts)
    for (let count = 0; count <= statements.length; count++) {
      const copy = `killed_${process.pid}_${kills++}`
      await server.unsafe(`create database ${copy} template ${base}`)
      await killInPause(urlOf(copy), await folderOf(name, statements.toSpliced(count, 0, PAUSE)))
      // Waits for what the killed one still holds, then begins again.
      expect(await applyTo(copy, name, texts), `${name} behind statement ${count}`).toBe(expected)
      await server.unsafe(`drop database ${copy} with (force)`)
    }
    await server.unsafe(`drop database ${base} with (force)`)
    await server.unsafe(`alter database ${whole} rename to ${base}`)
  }
  expect(kills).toBeGreaterThan(100)
  // What came about piece by piece is what a new installation has.
  const installed = await createBareDatabase()
  await migrate(installed.sql)
  const pieces = openDatabase({ url: before.url, maxConnections: 1 })
  expect(await schemaOf(pieces)).toBe(await schemaOf(installed.sql))
  await pieces.end({ timeout: 1 })
  await installed.close()
})
