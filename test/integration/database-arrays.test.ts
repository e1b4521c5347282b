import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database?.close())

/** Postgres has no character 0. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }).map((value) => value.replaceAll('\0', '')),
  fc.constantFrom('', 'NULL', 'null', '{}', '{a,b}', ',', '"', '\\', '\\"', ' a ', '\n', 'é"\\,{'),
)

test('lists of texts reach Postgres and come back as they were', async () => {
  const lists = fc.array(fc.oneof(text, fc.constant(null)))
  await fc.assert(
    fc.asyncProperty(lists, async (list) => {
      const [row] = await database.sql<{ list: string[]; json: string[] }[]>`
        select given as list, to_json(given) as json from (select ${list as string[]}::text[] as given) as g`
      expect(row).toEqual({ list, json: list })
    }),
    { numRuns: 200 },
  )
})

test('lists of counts and days do so too', async () => {
  const counts = [0, -1, Number.MAX_SAFE_INTEGER]
  const [row] = await database.sql`
    select ${counts}::bigint[] as counts, ${[]}::bigint[] as none, ${['2026-11-15', '0001-01-01']}::date[] as days`
  expect(row).toEqual({ counts, none: [], days: ['2026-11-15', '0001-01-01'] })
})
