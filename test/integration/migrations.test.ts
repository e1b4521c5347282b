import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrate } from '../../control/database/migrate.ts'
import { openDatabase } from '../../control/database/sql.ts'
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

test('a migrated database is left alone', async () => {
  await migrate(database.sql)
  expect(await migrate(database.sql)).toEqual([])
})
