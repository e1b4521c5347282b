/**
 * What nothing needs any more goes from the store. A database that is new, or another installation's, empties none; what its
 * own owners deleted goes all the same.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { storedBytes } from '../../control/drops/sites/queries.ts'
import { collectGarbage } from '../../control/drops/publishing/storage/collect-garbage.ts'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import { createDirectoryBlobStore } from '../../shared/blobs/directory-store.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { collect } from '../support/publishing.ts'

let control: ComposedServices
let root: string
let aheadMs = 0

beforeAll(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'dropway-garbage-'))
  control = await composeServices({}, { now: () => Date.now() + aheadMs })
})
afterAll(async () => {
  await control.close()
  await rm(root, { recursive: true, force: true })
})
beforeEach(() => {
  aheadMs = 0
})

const hashesIn = async (blobs: BlobStore): Promise<string[]> =>
  (await collect(blobs.list())).map(({ hash }) => hash).toSorted()

async function storeNew(blobs: BlobStore, count: number): Promise<string[]> {
  const stored = await blobs.putAll(Array.from({ length: count }, () => randomBytes(20)))
  return stored.map(({ hash }) => hash).toSorted()
}

/** As a database would be that was made after what the store holds, or before: a minute, for the clocks of both. */
const begin = (when: 'after' | 'before') =>
  control.sql`update schema_migrations set applied_at = clock_timestamp() + ${when === 'after' ? '1 minute' : '-1 minute'}::interval`

test('nothing goes while the database knows no version, and nothing of a store that it mostly does not know', async () => {
  const { blobCollection, blobs } = control.services
  const lost = await storeNew(blobs, 3)
  await begin('after')
  aheadMs = 2 * DAY_MS
  expect(await blobCollection.run()).toEqual({ removed: 0, held: 3 })
  expect(await hashesIn(blobs)).toEqual(lost)

  // A first page on the new database makes it no better known to the store.
  lost.push(...(await storeNew(blobs, 30)))
  await begin('after')
  await control.publishPage(await control.newActor('business'), 'first')
  expect(await blobCollection.run()).toEqual({ removed: 0, held: 33 })
  expect(await hashesIn(blobs)).toEqual(expect.arrayContaining(lost))

  expect(await blobCollection.run({ unbounded: true })).toEqual({ removed: 33, held: 0 })
  const left = await hashesIn(blobs)
  expect(left).not.toHaveLength(0)
  expect(left.filter((hash) => lost.includes(hash))).toEqual([])
})

test('nothing goes of a store that holds nothing of what the versions need', async () => {
  const other = await composeServices({}, { now: () => Date.now() + 2 * DAY_MS })
  const { blobCollection, blobs } = other.services
  await other.publishPage(await other.newActor('business'), 'elsewhere')
  await other.sql`update site_blobs set hash = md5(hash)`
  const found = await hashesIn(blobs)
  expect(await blobCollection.run()).toEqual({ removed: 0, held: found.length })
  expect(await hashesIn(blobs)).toEqual(found)
  await other.close()
})

test('what uploads left that were never finished goes, however much of the store it is', async () => {
  const { blobCollection, blobs } = control.services
  await begin('before')
  await control.publishPage(await control.newActor('business'), 'small')
  const abandoned = await storeNew(blobs, 60)
  aheadMs = 2 * DAY_MS
  expect(await blobCollection.run()).toMatchObject({ held: 0 })
  expect((await hashesIn(blobs)).filter((hash) => abandoned.includes(hash))).toEqual([])
})

test('what owners deleted goes a day later, however much of the store it is', async () => {
  const { blobCollection, blobs, sites } = control.services
  const actor = await control.newActor('business')
  const { id } = (await control.publishPage(actor, 'large')).site
  const files = await storeNew(blobs, 60)
  const [kept, shown] = [files.slice(0, 30), files.slice(30)]
  await control.sql`insert into site_blobs (site_id, hash, from_version) select ${id}, unnest(${shown}::text[]), 1`
  await control.sql`insert into kept_blobs (site_id, hash, size) select ${id}, unnest(${kept}::text[]), 20`
  await control.sql`update kept_blobs set ended_at = now() where site_id = ${id}`
  expect(await blobCollection.run()).toEqual({ removed: 0, held: 0 })
  await sites.delete(actor, id)
  aheadMs = 2 * DAY_MS
  expect(await blobCollection.run()).toMatchObject({ held: 0 })
  expect((await hashesIn(blobs)).filter((hash) => files.includes(hash))).toEqual([])
  for (const table of ['site_blobs', 'kept_blobs'])
    expect(await control.sql`select from ${control.sql(table)} where site_id = ${id}`).toHaveLength(0)
})

test('what two drops keep for open tabs counts once, and goes only when neither keeps it any more', async () => {
  const { blobCollection, blobs, quickPublish } = control.services
  const actor = await control.newActor('free')
  const chunk = `/* ${randomBytes(20).toString('hex')} */`
  const hash = createHash('sha256').update(chunk).digest('hex')
  const page = { path: 'index.html', bytes: Buffer.from('<title>x</title>') }
  const publish = (slug: string, hasChunk: boolean, purge?: 'older') => {
    const files = hasChunk ? [page, { path: 'a.js', bytes: Buffer.from(chunk) }] : [page]
    return quickPublish.publish(actor, { content: { kind: 'files', files }, slug, replace: true, purge })
  }
  const [first, second] = ['first', 'second'].map((name) => `${name}-${randomBytes(5).toString('hex')}`) as [
    string,
    string,
  ]
  const keptBytes = async () => (await storedBytes(control.sql, actor.orgId)).kept
  // Three versions are retained: the one with the chunk is none of them any more.
  for (const slug of [first, second]) for (const hasChunk of [true, false, false, false]) await publish(slug, hasChunk)
  expect(await keptBytes()).toBe(chunk.length)

  await publish(first, false, 'older')
  expect(await keptBytes()).toBe(chunk.length)
  aheadMs = 2 * DAY_MS
  await blobCollection.run({ unbounded: true })
  expect(await blobs.has(hash)).toBe(true)

  await publish(second, false, 'older')
  expect(await keptBytes()).toBe(0)
  aheadMs = 4 * DAY_MS
  await blobCollection.run({ unbounded: true })
  expect(await blobs.has(hash)).toBe(false)
})

test('what is old and unreferenced goes, and nothing else', async () => {
  const folder = path.join(root, 'one')
  const blobs = createDirectoryBlobStore(folder)
  const now = Date.now()
  const store = async (age: number): Promise<string> => {
    const { hash } = await blobs.put(randomBytes(20))
    const at = new Date(now - age)
    await utimes(path.join(folder, hash.slice(0, 2), hash), at, at)
    return hash
  }
  const [oldOrphan, oldNeeded, youngOrphan, keptOrphan] = [
    await store(100_000),
    await store(100_000),
    await store(10),
    await store(100_000),
  ]
  await writeFile(path.join(folder, 'tmp', 'dead'), 'x')
  await utimes(path.join(folder, 'tmp', 'dead'), 0, 0)
  const scratchDir = path.join(folder, 'scratch')
  await mkdir(scratchDir)
  for (const [name, age] of [
    ['dead.zip', 100_000],
    ['alive.zip', 10],
  ] as const) {
    await writeFile(path.join(scratchDir, name), 'x')
    await utimes(path.join(scratchDir, name), new Date(now - age), new Date(now - age))
  }
  const collected = await collectGarbage({
    blobs,
    scratchDir,
    graceMs: 50_000,
    now,
    isReferenced: async (hashes) => new Set(hashes.filter((hash) => hash === oldNeeded)),
    isKnown: async () => new Set([oldOrphan]),
    knownSince: now,
    async mayRemove(found) {
      expect(found).toMatchObject({ blobs: 4, unneeded: 2, known: 2, unknown: 1 })
      // Someone publishes these bytes again while it is decided.
      await blobs.keep(keptOrphan)
      return true
    },
  })
  expect(collected).toEqual({ removed: 1, held: 0 })
  expect(await hashesIn(blobs)).toEqual([oldNeeded, youngOrphan, keptOrphan].toSorted())
  expect(await readdir(scratchDir)).toEqual(['alive.zip'])
})

test('more than is remembered at once is found by looking again, and a version that comes meanwhile keeps its own', async () => {
  const blobs = createDirectoryBlobStore(path.join(root, 'many'))
  const hashes = await storeNew(blobs, 7)
  const needed = new Set<string>()
  const collected = await collectGarbage({
    blobs,
    scratchDir: path.join(root, 'none'),
    graceMs: 0,
    now: Date.now() + 1000,
    maxRemembered: 3,
    isReferenced: async () => needed,
    isKnown: async () => new Set(),
    knownSince: 0,
    async mayRemove(found) {
      expect(found).toMatchObject({ blobs: 7, unneeded: 7, known: 0, unknown: 0 })
      needed.add(hashes[0]!)
      return true
    },
  })
  expect(collected).toEqual({ removed: 6, held: 0 })
  expect(await hashesIn(blobs)).toEqual([hashes[0]])
})
