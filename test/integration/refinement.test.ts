/** Compressing harder afterwards: which versions get their turn, on a real Postgres. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createVersions } from '../../control/drops/sites/versions/versions.ts'
import { HOUR_MS } from '../../shared/clock.ts'
import { silentLog } from '../../shared/log.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
let nowMs = Date.now()
/** Manifests in the order of their turns, and those that cannot be read. */
const asked: string[] = []
const unreadable = new Set<string>()

beforeAll(async () => {
  database = await createTestDatabase()
  const { sql } = database
  await sql`insert into sites ${sql({ id: 'st', slug: 'slug', dns_target: 't' })}`
})
afterAll(() => database.close())
beforeEach(async () => {
  const { sql } = database
  await sql`delete from versions`
  asked.length = 0
  for (const number of [1, 2, 3]) {
    const created_at = new Date(nowMs - HOUR_MS + number)
    const version = { id: `v_${number}`, site_id: 'st', number, manifest_hash: `m${number}`, created_at }
    await sql`insert into versions ${sql({ ...version, byte_size: 1, file_count: 1 })}`
  }
})

const notAskedFor = () => Promise.reject(new Error('not asked for'))

function versions(onRefine?: () => void) {
  return createVersions({
    sql: database.sql,
    clock: { now: () => nowMs },
    log: silentLog,
    events: { propagate: async () => ({ pending: false }) },
    refreshRoutes: async () => {},
    audit: async () => {},
    publishing: {
      readManifest: notAskedFor,
      compareTexts: notAskedFor,
      async refine(manifestHash) {
        asked.push(manifestHash)
        onRefine?.()
        if (unreadable.has(manifestHash)) throw new Error('no such blob')
        return undefined
      },
    },
    sites: { requireOwn: notAskedFor, lockOwn: notAskedFor, lockOrganisation: notAskedFor, add: notAskedFor },
    config: { sitesDomain: 'sites.test', publicPort: 443 },
  })
}

test('a version that cannot be read keeps no other waiting, and has its turn again later', async () => {
  const running = new AbortController().signal
  unreadable.add('m1')
  expect(await versions().refineDue(running)).toBe(2)
  expect(await versions().refineDue(running)).toBe(0)
  expect(asked).toEqual(['m1', 'm2', 'm3'])

  unreadable.clear()
  nowMs += HOUR_MS
  expect(await versions().refineDue(running)).toBe(1)
  expect(asked).toEqual(['m1', 'm2', 'm3', 'm1'])
})

test('a control that stops begins no further version', async () => {
  const stopping = new AbortController()
  expect(await versions(() => stopping.abort()).refineDue(stopping.signal)).toBe(1)
})
