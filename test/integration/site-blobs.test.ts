/** Which blobs a site's versions need, told by spans of version numbers: held against a model that remembers each version. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING } from '../../control/ground/actor.ts'
import { transaction } from '../../control/ground/database/sql.ts'
import {
  deleteEndedSpans,
  dropOldestVersion,
  ownBlobs,
  referencedBlobs,
  updateSite,
} from '../../control/drops/sites/queries.ts'
import { insertChangedVersion, insertVersion } from '../../control/drops/sites/kept/new-version.ts'
import { markRefined } from '../../control/drops/sites/versions/refinement/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { createRandom } from '../support/random.ts'

const DAY_MS = 86_400_000
const KEPT = 3
const ALL = Array.from({ length: 12 }, (_, index) => `hash-${String(index).padStart(2, '0')}`)

interface Version {
  number: number
  /** All that it has needed. */
  blobs: Set<string>
  /** What its manifest needs now. */
  current: Set<string>
  droppedAt?: number
}

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await database.sql`insert into users (id, email, password_hash) values ('user', 'user@example.com', '')`
  await database.sql`insert into organisations (id, name, owner_id) values ('org', 'Org', 'user'), ('other', 'Other', 'user')`
})
afterAll(() => database.close())

test.each([1, 2, 3, 4, 5, 6, 7, 8])('publishes, refinements and retention in a random order, seed %i', async (seed) => {
  const random = createRandom(seed)
  const siteId = `site-${seed}`
  const { sql } = database
  await sql`insert into sites (id, org_id, slug, dns_target) values (${siteId}, 'org', ${siteId}, ${siteId})`
  const versions: Version[] = []
  /** The release before ends no span of what it has made smaller. */
  let hasLeftOver = false
  let now = Date.UTC(2030, seed, 1)

  async function publish(): Promise<void> {
    const blobs = new Set(ALL.filter(() => random.chance(0.5)))
    const number = versions.length + 1
    const newest = versions.at(-1)
    const isWhole = newest === undefined || random.chance(0.4)
    if (isWhole) hasLeftOver = false
    await transaction(sql, async (tx) => {
      const row = versionRow(siteId, number, now)
      if (isWhole) await insertVersion(tx, row, { warnings: [] }, [...blobs])
      else await insertChangedVersion(tx, row, { warnings: [] }, changesOf(newest.current, blobs))
      await dropOldestVersion(tx, siteId, { keep: KEPT, live: row.id }, new Date(now))
      await updateSite(tx, siteId, { next_version_number: number + 1 }, new Date(now))
    })
    versions.push({ number, blobs: new Set(blobs), current: blobs })
    for (const version of versions) if (version.number <= number - KEPT) version.droppedAt ??= now
  }

  async function refine(): Promise<void> {
    const version = versions[random.below(versions.length)]
    if (!version || version.droppedAt !== undefined) return
    const current = new Set(ALL.filter((hash) => random.chance(version.current.has(hash) ? 0.7 : 0.3)))
    const { added, gone } = changesOf(version.current, current)
    const isOfReleaseBefore = random.chance(0.1)
    hasLeftOver ||= isOfReleaseBefore
    const { number } = version
    const id = `${siteId}-${number}`
    const [stored] = await sql<{ manifest_hash: string }[]>`select manifest_hash from versions where id = ${id}`
    const row = { id, site_id: siteId, number, manifest_hash: stored!.manifest_hash, refined_hash: null }
    const step = random.chance(0.5) ? 'compressed_at' : 'refined_at'
    const smaller = { manifestHash: 'refined', added, gone: isOfReleaseBefore ? [] : gone }
    await transaction(sql, (tx) => markRefined(tx, row, step, { isWhole: random.chance(0.5), smaller }))
    for (const hash of added) version.blobs.add(hash)
    version.current = current
  }

  /** What the next version takes over. */
  async function open(): Promise<Set<string>> {
    const rows = await sql<{ hash: string }[]>`
      select hash from site_blobs where site_id = ${siteId} and to_version is null`
    expect(new Set(rows.map(({ hash }) => hash)).size).toBe(rows.length)
    return new Set(rows.map(({ hash }) => hash))
  }

  function needed(isNeeded: (version: Version) => boolean): string[] {
    return ALL.filter((hash) => versions.some((version) => isNeeded(version) && version.blobs.has(hash)))
  }

  for (let step = 0; step < 40; step++) {
    now += random.next() * DAY_MS
    await (random.chance(0.6) ? publish() : refine())
    if (random.chance(0.2)) await deleteEndedSpans(sql, new Date(now))
    const newest = versions.at(-1)
    if (newest) {
      const { added: missing, gone: leftOver } = changesOf(await open(), newest.current)
      expect(missing).toEqual([])
      if (!hasLeftOver) expect(leftOver).toEqual([])
    }
    const isRetained = ({ droppedAt }: Version): boolean => droppedAt === undefined
    const isRecent = ({ droppedAt }: Version): boolean => droppedAt === undefined || droppedAt > now - DAY_MS
    expect([...(await ownBlobs(sql, { orgId: 'org', reach: EVERYTHING }, ALL))].toSorted()).toEqual(needed(isRetained))
    expect([...(await referencedBlobs(sql, ALL, new Date(now)))].toSorted()).toEqual(needed(isRecent))
    expect(await ownBlobs(sql, { orgId: 'other', reach: EVERYTHING }, ALL)).toEqual(new Set())
  }
  await sql`update versions set dropped_at = ${new Date(now)} where site_id = ${siteId} and dropped_at is null`
  await deleteEndedSpans(sql, new Date(now + 2 * DAY_MS))
  expect(await sql`select from site_blobs where site_id = ${siteId} and to_version is not null`).toHaveLength(0)
  await sql`update sites set deleted_at = ${new Date(now)} where id = ${siteId}`
  await deleteEndedSpans(sql, new Date(now + 2 * DAY_MS))
  expect(await sql`select from site_blobs where site_id = ${siteId}`).toHaveLength(0)
})

test('what a publish counts on is not forgotten while it commits, although only a dropped version needed it', async () => {
  const { sql } = database
  const now = Date.UTC(2030, 0, 1)
  await sql`insert into sites (id, org_id, slug, dns_target) values ('raced', 'org', 'raced', 'raced')`
  await insertVersion(sql, versionRow('raced', 1, now), { warnings: [] }, ['raced-page'])
  await sql`update versions set dropped_at = ${new Date(now)} where site_id = 'raced'`
  await transaction(sql, async (tx) => {
    await insertVersion(tx, versionRow('raced', 2, now), { warnings: [] }, ['raced-page'])
    await deleteEndedSpans(sql, new Date(now + 2 * DAY_MS))
  })
  const needed = await referencedBlobs(sql, ['raced-page'], new Date(now + 2 * DAY_MS))
  expect([...needed]).toEqual(['raced-page'])
})

test('a deploy writes rows for what changed only', async () => {
  const { sql } = database
  await sql`insert into sites (id, org_id, slug, dns_target) values ('large', 'org', 'large', 'large')`
  const blobs = Array.from({ length: 1000 }, (_, index) => `large-${index}`)
  await insertVersion(sql, versionRow('large', 1, 0), { warnings: [] }, blobs)
  await insertVersion(sql, versionRow('large', 2, 0), { warnings: [] }, [...blobs.slice(1), 'large-new'])
  expect(
    await sql`select hash, from_version, to_version from site_blobs where site_id = 'large' and (from_version = 2 or to_version is not null) order by hash`,
  ).toEqual([
    { hash: 'large-0', from_version: 1, to_version: 1 },
    { hash: 'large-new', from_version: 2, to_version: null },
  ])
})

function changesOf(before: ReadonlySet<string>, after: ReadonlySet<string>) {
  return { added: [...after].filter((hash) => !before.has(hash)), gone: [...before].filter((hash) => !after.has(hash)) }
}

function versionRow(siteId: string, number: number, now: number) {
  return {
    id: `${siteId}-${number}`,
    site_id: siteId,
    number,
    manifest_hash: '',
    byte_size: 0,
    file_count: 0,
    message: '',
    title: '',
    created_by: null,
    source: null,
    created_at: new Date(now),
    compressed_at: null,
    refined_at: null,
  }
}
