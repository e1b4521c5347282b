import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { migrate } from '../../control/ground/database/migrate.ts'
import { openDatabase } from '../../control/ground/database/sql.ts'
import { referencedBlobs } from '../../control/drops/sites/queries.ts'
import { createBareDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await createBareDatabase()
})
afterEach(() => database.close())

test('two controls that start at once apply each migration exactly once', async () => {
  const other = openDatabase({ url: database.url, maxConnections: 2 })
  const [first, second] = await Promise.all([migrate(database.sql), migrate(other)])
  await other.end()
  const applied = await database.sql<{ name: string }[]>`select name from schema_migrations order by name`
  expect(applied.length).toBeGreaterThan(3)
  expect([...first, ...second].toSorted()).toEqual(applied.map(({ name }) => name))
})

test('a migration that does not get its table lets readers pass, and comes back', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-migrations-'))
  const reader = openDatabase({ url: database.url, maxConnections: 2 })
  onTestFinished(async () => {
    await reader.end()
    await rm(folder, { recursive: true })
  })
  await writeFile(path.join(folder, '0001_first.sql'), 'alter table busy add column more text;')
  await reader`create table busy (id integer)`
  const backup = await reader.reserve()
  await backup`begin`
  await backup`select from busy`
  let attempts = 0
  const applied = await migrate(database.sql, pathToFileURL(`${folder}/`), async () => {
    attempts++
    expect(await reader`select from busy`).toEqual([])
    await backup`commit`
    backup.release()
  })
  expect([attempts, applied]).toEqual([1, ['0001_first.sql']])
})

test('a migrated database is left alone', async () => {
  await migrate(database.sql)
  expect(await migrate(database.sql)).toEqual([])
})

test('what versions and open uploads needed before blobs were kept by spans is needed afterwards', async () => {
  const { sql } = database
  await migrateUpTo('0061_blob_spans.sql')
  await sql`insert into users (id, email, password_hash) values ('user', 'user@example.com', '')`
  await sql`insert into organisations (id, name, owner_id) values ('org', 'Org', 'user')`
  await sql`insert into sites (id, org_id, slug, dns_target, next_version_number) values ('site', 'org', 'site', 'site', 4)`
  await sql`
    insert into versions (id, site_id, number, manifest_hash, byte_size, file_count, dropped_at)
    values ('v1', 'site', 1, '', 0, 0, '2020-01-01'), ('v2', 'site', 2, '', 0, 0, null), ('v3', 'site', 3, '', 0, 0, null)`
  await sql`
    insert into version_blobs (version_id, hash)
    values ('v1', 'old'), ('v1', 'both'), ('v2', 'both'), ('v2', 'second'), ('v3', 'both'), ('v3', 'third')`
  await sql`insert into uploads (id, site_id, expires_at) values ('upload', 'site', now() + interval '1 hour')`
  await sql`
    insert into upload_files (upload_id, path, hash, size, stored)
    values ('upload', 'b', 'sent', 5, true), ('upload', 'a', 'sent', 5, true), ('upload', 'c', 'awaited', 7, false)`

  await migrate(sql)

  const hashes = ['old', 'both', 'second', 'third', 'sent', 'awaited', 'never']
  expect(await referencedBlobs(sql, hashes, new Date())).toEqual(
    new Set(['both', 'second', 'third', 'sent', 'awaited']),
  )
  const [upload] = await sql<{ files: unknown }[]>`select files from uploads`
  expect(upload!.files).toEqual([
    ['a', 'sent', 5],
    ['b', 'sent', 5],
    ['c', 'awaited', 7],
  ])
  const open = await sql`select hash from site_blobs where to_version is null order by hash`
  expect(open.map(({ hash }) => hash)).toEqual(['both', 'third'])
})

/** The state of an installation just before `next` is applied. */
async function migrateUpTo(next: string): Promise<void> {
  const folder = new URL('../../control/ground/database/migrations/', import.meta.url)
  await database.sql`create table schema_migrations (name text primary key, applied_at timestamptz not null default now())`
  for (const name of (await readdir(folder)).toSorted().filter((file) => file < next)) {
    await database.sql.unsafe(await readFile(new URL(name, folder), 'utf8'))
    await database.sql`insert into schema_migrations (name) values (${name})`
  }
}
