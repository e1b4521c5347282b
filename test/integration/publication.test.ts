/** The outbox's way to Redis while another control is in the way. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sql } from '../../control/ground/database/sql.ts'
import { createEvents } from '../../control/ground/events/publish.ts'
import { lockPublication } from '../../control/ground/events/queries.ts'
import { silentLog } from '../../shared/log.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

let database: TestDatabase
let server: TestRedis
let redis: Redis

beforeAll(async () => {
  ;[database, server] = await Promise.all([createTestDatabase(), startTestRedis()])
  redis = new Redis(server.url)
})
afterAll(async () => {
  redis.disconnect()
  await Promise.all([database.close(), server.stop()])
})

test('a change is answered as pending while a control that said nothing more holds the publication lock', async () => {
  const events = createEvents({ sql: database.sql, redis, publisherRedis: redis, log: silentLog })
  const answer = await database.sql.begin(async (held) => {
    await lockPublication(held)
    return Promise.race([events.propagate(), sleep(15_000, 'still waiting', { ref: false })])
  })
  expect(answer).toEqual({ pending: true })
})

test('Postgres ends a transaction that no one goes on with, soonest one that publishes', async () => {
  const limitMs = async (sql: Sql): Promise<number> => {
    const [row] = await sql<{ ms: number }[]>`
      select setting::int as ms from pg_settings where name = 'idle_in_transaction_session_timeout'`
    return row!.ms
  }
  const publishing = await database.sql.begin(async (held) => {
    await lockPublication(held)
    return limitMs(held)
  })
  const usual = await limitMs(database.sql)
  expect(publishing).toBeGreaterThan(0)
  expect(usual).toBeGreaterThan(publishing)
})
