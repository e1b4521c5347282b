/** `admin upgrade --check` on an empty, an older, a current and a newer database. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate, migrationNames, readMigration } from '../../control/ground/database/migrate.ts'
import { planUpgrade } from '../../control/operations/admin/upgrade.ts'
import { createBareDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createBareDatabase()
})
afterAll(() => database.close())

test('what will run, what it holds up, and what the release before can still do', async () => {
  const { sql } = database
  const names = await migrationNames()
  expect((await planUpgrade(sql)).pending.map(({ name }) => name)).toEqual(names)

  // A database of an earlier release, with something in it.
  const at = names.indexOf('0190_kept_files.sql')
  await sql`create table schema_migrations (name text primary key, applied_at timestamptz not null default now())`
  for (const name of names.slice(0, at)) {
    await sql.unsafe(await readMigration(name))
    await sql`insert into schema_migrations (name) values (${name})`
  }
  await sql`
    insert into users (id, email, password_hash) select 'u' || n, n || '@example.com', '' from generate_series(1, 5000) n`
  await sql`analyze users`
  const plan = await planUpgrade(sql)
  expect(plan.applied).toBe(at)
  expect(plan.pending.map(({ name }) => name)).toEqual(names.slice(at))
  expect(plan.release_before).toMatch(/goes on beside this one/)
  expect(plan.going_back).toMatch(/edges first/)
  expect(plan.seconds).toBeGreaterThan(0)
  expect(await sql`select name from schema_migrations`).toHaveLength(at)

  await migrate(sql)
  expect(await planUpgrade(sql)).toMatchObject({ pending: [], seconds: 0, of_a_newer_release: [] })
  await sql`insert into schema_migrations (name) values ('9999_later.sql')`
  expect(await planUpgrade(sql)).toMatchObject({ of_a_newer_release: ['9999_later.sql'] })
})
