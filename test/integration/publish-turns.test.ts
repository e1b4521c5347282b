/** How often a publish without an account waits for Postgres and Redis: counted on the wire, by what is owed. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findSite } from '../../control/drops/sites/queries.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { transaction } from '../../control/ground/database/sql.ts'
import { changeRoutes } from '../../control/ground/routing/changes.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { relay, type Relay } from '../support/counting/round-trips.ts'
import { postgresTalk, redisTalk } from '../support/counting/talks.ts'
import { startEdgeStandIn, type EdgeStandIn } from '../support/edge-stand-in.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

/** Statements are described once on each connection; from then on they cost what they cost. */
const WARM_UPS = 12
const COUNTED = 10

let folder: string
let database: TestDatabase
let server: TestRedis
let edge: EdgeStandIn
let control: ComposedServices
let postgres: Relay
let redis: Relay
let said: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-turns-'))
  ;[database, server] = await Promise.all([createTestDatabase(), startTestRedis()])
  edge = await startEdgeStandIn({ redisUrl: server.url, id: 'edge' })
  const [directory, name] = database.url.split('?database=')
  const sockets = { postgres: path.join(folder, '.s.PGSQL.5432'), redis: path.join(folder, 'redis.sock') }
  postgres = await relay(sockets.postgres, `${directory}/.s.PGSQL.5432`, () => postgresTalk((turn) => said.push(turn)))
  redis = await relay(sockets.redis, server.url, () => redisTalk((turn) => said.push(turn)))
  control = await composeServices({ DATABASE_URL: `${folder}?database=${name}`, REDIS_URL: sockets.redis })
})
afterAll(async () => {
  await control.close()
  await edge.stop()
  postgres.close()
  redis.close()
  await Promise.all([database.close(), server.stop()])
  await rm(folder, { recursive: true, force: true })
})

const publisher = {
  ip: '203.0.113.9',
  anonymousId: 'a browser',
  signals: { honeypot: undefined, started: undefined, proof: undefined, isBrowser: false },
}

async function publish(): Promise<{ id: string }> {
  const { anonymous } = control.services
  await anonymous.admit(publisher)
  return (await anonymous.publishText(publisher, { filename: 'index.html', content: '<title>A page</title>' })).value
}

test('a page without an account takes four turns with Postgres and, edges aside, two with Redis', async () => {
  for (let count = 0; count < WARM_UPS; count++) await publish()
  said = []
  const before = postgres.turns(() => true)
  for (let count = 0; count < COUNTED; count++) await publish()
  const turns = postgres.turns(() => true) - before
  const looks = said.filter((turn) => turn.includes('smembers')).length
  const others = said.filter((turn) => turn.startsWith('dropway-control') && !turn.includes('smembers'))
  expect({ turns, others: others.length, story: turns === 4 * COUNTED ? [] : said }).toEqual({
    turns: 4 * COUNTED,
    others: 2 * COUNTED,
    story: [],
  })
  // How often it looks whether the edge is there depends on how quick the edge is.
  expect(looks).toBeGreaterThanOrEqual(COUNTED)
})

test('what a drop without an account is taken to be when it is made is what Postgres then has', async () => {
  // A clock that goes on whenever it is looked at.
  let ms = systemClock.now()
  const own = await composeServices({ DATABASE_URL: database.url, REDIS_URL: server.url }, { now: () => (ms += 1) })
  const { versions, publishing, sql } = own.services
  const intake = publishing.receive({ owner: { kind: 'network', ip: publisher.ip }, capBytes: 1000 })
  await intake.addSingle('index.html', Readable.from([Buffer.from('<title>Hello</title>')]), {})
  const prepared = await intake.finish()
  const owner = { anonymousId: 'another browser', network: 'a network', claimHash: 'a hash' }
  const wanted = { name: 'named', accessUntil: new Date('2030-01-01T00:00:00Z') }
  const { value } = await changeRoutes(sql, (tx) =>
    versions.commitUnclaimed(tx, owner, wanted, prepared, async () => {}),
  )
  const found = await findSite(sql, value.site.id)
  await own.close()
  expect(value.site).toMatchObject(found ?? {})
  expect(found).toMatchObject({ title: 'Hello', name: 'named', next_version_number: 2, plan: 'anonymous' })
})

test('BEGIN goes out with the first statement, and a transaction that fails is rolled back', async () => {
  const { sql } = control.services
  const probe = (note: string, fails: boolean) =>
    transaction(sql, async (tx) => {
      await tx`insert into spent_proofs (id, expires_at) values (${note}, now())`
      if (fails) await tx`select 1 / 0`
    })
  await probe('warm', false)
  said = []
  await Promise.all([probe('kept', false), probe('undone', true).catch(() => {})])
  const proofs = await sql<{ id: string }[]>`select id from spent_proofs order by id`
  expect(proofs.map(({ id }) => id)).toEqual(['kept', 'warm'])
  expect(said.filter((turn) => turn.trim() === 'begin')).toEqual([])
})

test('transactions that begin ahead keep their connections to themselves', async () => {
  const { sql } = control.services
  const pids = await Promise.all(
    Array.from({ length: 4 }, () =>
      transaction(sql, async (tx) => {
        const seen: number[] = []
        for (let step = 0; step < 3; step++) {
          const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
          seen.push(row!.pid)
          // Others ask meanwhile; none of their questions may come in between.
          await sql`select pg_sleep(0.001)`
        }
        return [...new Set(seen)]
      }),
    ),
  )
  expect(pids.map((own) => own.length)).toEqual([1, 1, 1, 1])
  expect(new Set(pids.flat()).size).toBe(4)
})
