/** Compressing after a version went live: which versions get their turn, on a real Postgres. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { nextUncompressed } from '../../control/drops/sites/versions/refinement/queries.ts'
import { createVersions } from '../../control/drops/sites/versions/versions.ts'
import { HOUR_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
let nowMs = Date.now()
/** What was asked for, in order: the step and the manifest. Those that cannot be read. */
const asked: string[] = []
const unreadable = new Set<string>()
const running = new AbortController().signal

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())

/** Three drops of three versions each; the second is live at `a` and `b`, and none at `c`. `b` went live last. */
beforeEach(async () => {
  const { sql } = database
  await sql`delete from versions`
  await sql`delete from sites`
  asked.length = 0
  unreadable.clear()
  for (const [index, site] of ['a', 'b', 'c'].entries()) {
    const published_at = new Date(nowMs - HOUR_MS + index * MINUTE_MS)
    await sql`insert into sites ${sql({ id: site, slug: site, dns_target: `t${site}`, published_at })}`
    for (const number of [1, 2, 3]) {
      const created_at = new Date(nowMs - HOUR_MS + number * 10 + index)
      const id = `v_${site}${number}`
      const version = { id, site_id: site, number, manifest_hash: `${site}${number}`, created_at }
      await sql`insert into versions ${sql({ ...version, byte_size: 1, file_count: 1 })}`
    }
    if (site !== 'c') await sql`update sites set live_version_id = ${`v_${site}2`} where id = ${site}`
  }
})

const notAskedFor = () => Promise.reject(new Error('not asked for'))

interface Work {
  readonly onWork?: () => void | Promise<void>
  /** Begins the name of what is made; nothing gets smaller without it. */
  readonly makes?: string
  readonly parts?: number
}

function versions({ onWork, makes, parts = 1 }: Work = {}) {
  const propagated: number[] = []
  const work = (step: string) =>
    async function* (manifestHash: string) {
      asked.push(`${step} ${manifestHash}`)
      await onWork?.()
      if (unreadable.has(manifestHash)) throw new Error('no such blob')
      for (let part = 1; part < parts; part++) {
        yield { isWhole: false, smaller: { manifestHash: `${makes} ${part} ${manifestHash}`, added: [], gone: [] } }
        await onWork?.()
      }
      const smaller =
        makes === undefined ? undefined : { manifestHash: `${makes} ${manifestHash}`, added: [], gone: [] }
      yield { isWhole: true, smaller }
    }
  const service = createVersions({
    sql: database.sql,
    clock: { now: () => nowMs },
    log: silentLog,
    routing: {
      async propagate() {
        propagated.push(asked.length)
        return { pending: false }
      },
    },
    refreshRoutes: async () => {},
    keptFiles: {
      replace: notAskedFor,
      refit: async () => {},
      endNextDue: notAskedFor,
      countDue: notAskedFor,
      end: notAskedFor,
      restore: notAskedFor,
    },
    cards: { bringUpToDate: notAskedFor },

    publishing: {
      readManifest: notAskedFor,
      compareTexts: notAskedFor,
      placeAnchors: notAskedFor,
      compress: work('compress'),
      refine: work('refine'),
    },
    sites: { requireOwn: notAskedFor, lockOwn: notAskedFor, lockOrganisation: notAskedFor, add: notAskedFor },
    enqueueMail: notAskedFor,
    config: {
      baseUrl: 'https://service.test',
      sitesDomain: 'sites.test',
      secretKey: 'a test key of at least thirty-two characters',
      publicPort: 443,
      anonymousLifetimeMs: 0,
    },
    firstRoutes: () => [],
  })
  return { ...service, propagated }
}

const LIVE_FIRST = ['b2', 'a2', 'c3', 'b3', 'a3', 'c2', 'c1', 'b1', 'a1']

test('live versions come first, the latest publish before others; superseded ones come last, newest first', async () => {
  expect(await versions().compressDue(running)).toBe(9)
  expect(asked).toEqual(LIVE_FIRST.map((manifest) => `compress ${manifest}`))
  asked.length = 0
  expect(await versions().refineDue(running)).toBe(9)
  expect(asked).toEqual(LIVE_FIRST.map((manifest) => `refine ${manifest}`))
  expect(await versions().compressDue(running)).toBe(0)
  expect(await versions().refineDue(running)).toBe(0)
})

test('nothing is compressed harder before it was compressed at all', async () => {
  expect(await versions().refineDue(running)).toBe(0)
  expect(asked).toEqual([])
})

test('a version of this moment is compressed at once, and harder a minute later', async () => {
  const { sql } = database
  await sql`delete from versions where site_id <> 'a'`
  await sql`update versions set created_at = ${new Date(nowMs)} where id = 'v_a2'`
  await versions().compressDue(running)
  expect(asked).toContain('compress a2')
  await versions().refineDue(running)
  expect(asked).not.toContain('refine a2')
  nowMs += MINUTE_MS
  await versions().refineDue(running)
  expect(asked).toContain('refine a2')
})

test('a version that became smaller reaches the edges before the next one is begun', async () => {
  const { compressDue, propagated } = versions({ makes: 'compressed' })
  await compressDue(running)
  expect(propagated).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  const [row] = await database.sql`select manifest_hash from versions where id = 'v_b2'`
  expect(row).toMatchObject({ manifest_hash: 'compressed b2' })
})

test('of a large version visitors get one part after the other, and it waits until all of it is compressed', async () => {
  const { sql } = database
  const stateOf = async () =>
    (
      await sql<{ manifest_hash: string; is_done: boolean }[]>`
      select manifest_hash, compressed_at is not null as is_done from versions where id = 'v_b2'`
    )[0]
  const seen: unknown[] = []
  const onWork = async () => void seen.push(await stateOf())
  const stop = new AbortController()
  const { compressDue, propagated } = versions({
    makes: 'compressed',
    parts: 3,
    onWork: async () => {
      await onWork()
      if (seen.length === 3) stop.abort()
    },
  })
  await compressDue(stop.signal)
  expect([...seen, await stateOf()]).toEqual([
    { manifest_hash: 'b2', is_done: false },
    { manifest_hash: 'compressed 1 b2', is_done: false },
    { manifest_hash: 'compressed 2 b2', is_done: false },
    { manifest_hash: 'compressed b2', is_done: true },
  ])
  expect(propagated).toEqual([1, 1, 1])
})

test('a large version that is stopped halfway keeps what it has and is taken up again', async () => {
  const stop = new AbortController()
  await versions({ makes: 'compressed', parts: 3, onWork: () => stop.abort() }).compressDue(stop.signal)
  expect(asked).toEqual(['compress b2'])
  asked.length = 0
  await versions({ makes: 'compressed' }).compressDue(running)
  expect(asked[0]).toBe('compress compressed 1 b2')
})

test('what another control has refined meanwhile stays as it is', async () => {
  const { sql } = database
  await versions({
    makes: 'compressed',
    onWork: async () => {
      await sql`update versions set manifest_hash = 'theirs', compressed_at = now(), refined_at = now() where id = 'v_b2'`
    },
  }).compressDue(running)
  const [row] = await sql`select manifest_hash from versions where id = 'v_b2'`
  expect(row).toMatchObject({ manifest_hash: 'theirs' })
})

test('a version that cannot be read keeps no other waiting, and has its turn again later', async () => {
  unreadable.add('b2')
  expect(await versions().compressDue(running)).toBe(8)
  expect(await versions().compressDue(running)).toBe(0)
  expect(asked).toEqual(LIVE_FIRST.map((manifest) => `compress ${manifest}`))

  unreadable.clear()
  nowMs += HOUR_MS
  expect(await versions().compressDue(running)).toBe(1)
  expect(asked.at(-1)).toBe('compress b2')
})

test('a control that stops begins no further version', async () => {
  const stopping = new AbortController()
  const { compressDue } = versions({ onWork: () => stopping.abort() })
  expect(await compressDue(stopping.signal)).toBe(1)
})

/** Rows of both tables that Postgres reads to find the next version, while so many live ones wait. */
async function rowsReadOf(waiting: number): Promise<number> {
  const { sql } = database
  await sql`insert into sites (id, slug, dns_target, published_at, live_version_id)
    select 'many' || n, 'many' || n, 'tmany' || n, now(), 'v_many' || n from generate_series(1, ${waiting}) n`
  await sql`insert into versions (id, site_id, number, manifest_hash, byte_size, file_count, created_at)
    select 'v_many' || n, 'many' || n, 1, 'h' || n, 1, 1, now() + n * interval '1 second'
    from generate_series(1, ${waiting}) n`
  await sql`analyze sites`
  await sql`analyze versions`
  return sql.begin(async (tx) => {
    const read = async (): Promise<number> => {
      const [row] = await tx<{ rows: number }[]>`
        select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables
        where relname in ('sites', 'versions')`
      return row!.rows
    }
    const before = await read()
    expect(await nextUncompressed(tx, new Date())).toMatchObject({ id: `v_many${waiting}` })
    return (await read()) - before
  })
}

test('of many live versions that wait, the next is found without reading the others', async () => {
  // Of each of the newest fifty, the version and its drop.
  expect(await rowsReadOf(5000)).toBeLessThan(250)
})
