/** The outbox's way to Redis while another control is in the way. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Sql } from '../../control/ground/database/sql.ts'
import { allChanges, changeRoutes, NO_CHANGES } from '../../control/ground/routing/changes.ts'
import { createRouting } from '../../control/ground/routing/routing.ts'
import { createPublicationStore, lockPublication } from '../../control/ground/routing/queries.ts'
import { createRoutePublisher, createWatchedFacts } from '../../control/ground/routing/route-publisher.ts'
import { setRoute } from '../../control/ground/routing/outbox.ts'
import { keys } from '../../shared/redis/keys.ts'
import { encodeEdgeState } from '../../shared/contracts/live-edges.ts'
import { silentLog } from '../../shared/running/log.ts'
import { decodeRouteRecord } from '../../shared/contracts/route-record.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

/** No log of this test comes as far. */
const FAR_AHEAD = '9999999999999-0'

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
  const routing = createRouting({ sql: database.sql, redis, publisherRedis: redis, log: silentLog })
  const answer = await database.sql.begin(async (held) => {
    await lockPublication(held)
    // However long it takes: Postgres ends a silent publisher, and would let the other one in.
    await held`set local idle_in_transaction_session_timeout = 0`
    return routing.propagate(NO_CHANGES)
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

const isWaitingForLock = async (): Promise<boolean> =>
  (await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    .length > 0

test('of two changes of a host at once, the one that commits later has the higher revision, in the table and in the outbox', async () => {
  const { sql } = database
  const host = 'raced.sites.test'
  const targets = ['new-1', 'new-2', 'known-1', 'known-2'].map((name) => `${name}.sites.test`)
  for (const [first, second] of [targets.slice(0, 2), targets.slice(2)] as [string, string][]) {
    let waiting: Promise<unknown> | undefined
    await changeRoutes(sql, async (tx) => {
      await setRoute(tx, { kind: 'alias', host, to: first })
      waiting = changeRoutes(sql, (other) => setRoute(other, { kind: 'alias', host, to: second }))
      await expect.poll(isWaitingForLock).toBe(true)
    })
    await waiting
    const [row] = await sql<{ record: { to: string }; revision: number }[]>`
      select record, revision from routes where host = ${host}`
    const news = await sql<{ value: string; revision: number }[]>`
      select value, revision from outbox where name = ${host} order by id desc limit 2`
    expect(row).toMatchObject({ record: { to: second, revision: row!.revision } })
    expect(news.map(({ value }) => decodeRouteRecord(value))).toMatchObject([
      { to: second, revision: row!.revision },
      { to: first, revision: news[1]!.revision },
    ])
    expect(news[1]!.revision).toBeLessThan(row!.revision)
  }
})

test('what is announced again never follows the news of what replaced it', async () => {
  const { sql } = database
  const host = 'again.sites.test'
  await changeRoutes(sql, (tx) => setRoute(tx, { kind: 'alias', host, to: 'there.sites.test' }))
  const announceAgain = () => createPublicationStore(sql).locked((publication) => publication.announceAgain([host]))
  await changeRoutes(sql, async (tx) => {
    await setRoute(tx, { kind: 'none', host })
    // All other news would wait for what is not committed.
    expect(await announceAgain()).toEqual([])
  })
  expect(await announceAgain()).toEqual([host])
  const news = await sql<{ value: string }[]>`select value from outbox where name = ${host} order by id desc limit 2`
  expect(news.map(({ value }) => decodeRouteRecord(value).kind)).toEqual(['none', 'none'])
})

test('the report of a host that is being changed stays until the change is committed', async () => {
  const { sql } = database
  const host = 'reported.sites.test'
  const publisher = createRoutePublisher({
    store: createPublicationStore(sql),
    redis,
    watched: createWatchedFacts(undefined),
    log: silentLog,
    newToken: () => 'snapshot',
    republishers: [],
  })
  await changeRoutes(sql, (tx) => setRoute(tx, { kind: 'alias', host, to: 'there.sites.test' }))
  await publisher.republish({ all: [], lasting: [] }, false)
  await redis.sadd(keys.unknown, host)
  await changeRoutes(sql, async (tx) => {
    await setRoute(tx, { kind: 'none', host })
    await publisher.decideUnknown()
    expect(await redis.smembers(keys.unknown)).toEqual([host])
  })
  await publisher.decideUnknown()
  expect(await redis.smembers(keys.unknown)).toEqual([])
})

test('a host that comes to be while it is taken for unknown is not removed', async () => {
  const { sql } = database
  const hosts = ['came.sites.test', 'unknown.sites.test']
  const removed = await createPublicationStore(sql).locked(async (publication) => {
    expect(await publication.withoutRoute(hosts)).toEqual(hosts)
    await changeRoutes(sql, (tx) => setRoute(tx, { kind: 'alias', host: hosts[0]!, to: 'there.sites.test' }))
    return publication.removeUnknown(hosts)
  })
  expect(removed).toEqual([hosts[1]])
  const rows = await sql<{ host: string; value: string; record: { kind: string }; revision: number }[]>`
    select host, record, routes.revision, value from routes join outbox on name = host
    where host = any(${hosts}) order by host`
  expect(rows.map(({ host, record }) => [host, record.kind])).toEqual([
    [hosts[0], 'alias'],
    [hosts[1], 'none'],
  ])
  for (const { value, revision } of rows) expect(decodeRouteRecord(value).revision).toBe(revision)
})

test('a transaction says which routes it wrote, of the attempt that was committed', async () => {
  const { sql } = database
  let attempts = 0
  const { value, changes } = await changeRoutes(sql, async (tx) => {
    attempts++
    await setRoute(tx, { kind: 'none', host: `attempt-${attempts}.sites.test` })
    await setRoute(tx, { kind: 'none', host: 'kept.sites.test' })
    if (attempts === 1) throw Object.assign(new Error('could not serialize access'), { code: '40001' })
    return 'done'
  })
  const [history] = await sql<{ id: string }[]>`select id from history`
  expect(value).toBe('done')
  expect(changes).toEqual({
    hosts: new Set(['attempt-2.sites.test', 'kept.sites.test']),
    histories: new Set([history!.id]),
  })
})

test('a propagation is about the changes that it is given: an edge that refuses one of them is heard, others are not', async () => {
  const publisherRedis = redis.duplicate()
  const routing = createRouting({ sql: database.sql, redis, publisherRedis, log: silentLog })
  const changed = (host: string) => changeRoutes(database.sql, (tx) => setRoute(tx, { kind: 'none', host }))
  const [own, other] = [await changed('own.sites.test'), await changed('other.sites.test')]
  await routing.propagate(NO_CHANGES)
  const state = { v: 1, position: FAR_AHEAD, epoch: (await redis.get(keys.epoch))! } as const
  const refused: [string, string][] = [['route other.sites.test', 'its format is unknown']]
  await redis.sadd(keys.edges, 'edge')
  await redis.set(keys.edge('edge'), FAR_AHEAD)
  await redis.set(keys.edgeState('edge'), encodeEdgeState({ ...state, refused, refusedCount: 1 }))
  expect(await routing.propagate(own.changes)).toEqual({ pending: false })
  expect(await routing.propagate(other.changes)).toEqual({ pending: true, refused: 'its format is unknown' })
  expect(await routing.propagate(allChanges([own.changes, other.changes]))).toMatchObject({ pending: true })
  publisherRedis.disconnect()
})
