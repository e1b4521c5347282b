import { afterAll, beforeAll, expect, test } from 'vitest'
import { newCall, runAs, type Call } from '../../control/ground/database/call.ts'
import { openDatabase, transaction, type Pool } from '../../control/ground/database/sql.ts'
import { createWriteShares } from '../../control/ground/database/write-shares.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
let pool: Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = openDatabase({ url: database.url, maxConnections: 12 })
})
afterAll(async () => {
  await pool?.end()
  await database?.close()
})

async function lockWaits(): Promise<number> {
  const rows = await database.sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return rows.length
}

const callOf = (who: Partial<Call>): Call => ({ ...newCall(), ...who })

test.each([
  ['network', { network: 'a' }, { network: 'b' }],
  ['organisation', { network: 'c', organisation: 'o' }, { network: 'd', organisation: 'p' }],
])('changes of one %s that wait for a lock leave the pool to others', async (_, one, other) => {
  const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const held = transaction(pool, async (sql) => {
    await sql`select pg_advisory_xact_lock(7)`
    locked.resolve()
    await release.promise
  })
  await locked.promise
  // A deploy of one drop, twenty times at once, from as many addresses as there are in the second case.
  const waiting = Array.from({ length: 20 }, (__, index) => {
    const network = 'organisation' in one ? `${one.network}${index}` : one.network
    return runAs(callOf({ ...one, network }), () => transaction(pool, (sql) => sql`select pg_advisory_xact_lock(7)`))
  })
  const outcomes = Promise.allSettled(waiting)
  // One network, or one organisation, has four of the twelve connections, and the first transaction one.
  await expect.poll(lockWaits).toBe(4)
  const answered = await runAs(callOf(other), () => transaction(pool, (sql) => sql<{ one: number }[]>`select 1 as one`))
  expect(answered[0]!.one).toBe(1)
  release.resolve()
  await held
  expect((await outcomes).map(({ status }) => status)).toEqual(Array(20).fill('fulfilled'))
})

test('who gets no place in time hears 503; a transaction within another needs none', async () => {
  const shares = createWriteShares({ places: 2, placesPerCaller: 1, waiting: 10, waitingPerCaller: 1, waitMs: 100 })
  const release = Promise.withResolvers<void>()
  const first = callOf({ network: 'a' })
  const held = shares.during(first, () => release.promise)
  const refused = { status: 503, headers: { 'retry-after': expect.any(String) } }
  const late = shares.during(callOf({ network: 'a' }), async () => 'late')
  await expect(shares.during(callOf({ network: 'a' }), async () => 'too many')).rejects.toMatchObject(refused)
  await expect(late).rejects.toMatchObject(refused)
  expect(await shares.during(first, async () => 'within')).toBe('within')
  expect(await shares.during(undefined, async () => 'a job')).toBe('a job')
  release.resolve()
  await held
  expect(await shares.during(callOf({ network: 'a' }), async () => 'after')).toBe('after')
})
