/** Backups by themselves to a bucket, drills, damaged content and a store that moves: on the real services. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBackupPlace } from '../../../control/plans/backups/place.ts'
import { snapshotName } from '../../../control/plans/backups/rules.ts'
import { BlobMissing } from '../../../shared/blobs/blob-store.ts'
import { openBlobStore } from '../../../shared/blobs/open.ts'
import { readBlobStore } from '../../../shared/blobs/location.ts'
import { EnvReader } from '../../../shared/settings/env.ts'
import { composeServices, type ComposedServices } from '../../support/composed-services.ts'
import { collect } from '../../support/publishing.ts'
import { startTestS3, type TestS3 } from '../../support/s3.ts'

const DAY_MS = 86_400_000
const clock = { ms: Date.now(), now: () => clock.ms }
let folder: string
let s3: TestS3
let backupTo: string
let composed: ComposedServices
let blobsDir: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-backups-'))
  s3 = await startTestS3(path.join(folder, 's3'))
  backupTo = s3.url({ cache: path.join(folder, 'unused'), prefix: '/backups' })
  blobsDir = path.join(folder, 'blobs')
  composed = await composeServices({ BACKUP_TO: backupTo, BLOB_STORE: `file:${blobsDir}` }, clock)
})
afterAll(async () => {
  await composed?.close()
  await s3?.close()
  await rm(folder, { recursive: true, force: true })
})

const place = () => openBackupPlace(backupTo, path.join(folder, 'drafts'))

test('of two controls one takes the backup, the next one comes a day later, and old ones go with their content', async () => {
  const { services } = composed
  const actor = await composed.newActor('business')
  const first = await composed.publishPage(actor, 'first')
  const both = await Promise.all([services.backups.runDue(), services.backups.runDue()])
  expect(both.filter((taken) => taken !== undefined)).toHaveLength(1)
  expect(await services.backups.runDue()).toBeUndefined()
  expect(await place().snapshots()).toHaveLength(1)
  expect(both.find(Boolean)).toMatchObject({
    place: expect.not.stringContaining('S3RVER') as string,
    blobs: expect.any(Number) as number,
  })
  expect(both.find(Boolean)!.blobs).toBeGreaterThan(0)

  for (let day = 0; day < 2; day++) {
    clock.ms += DAY_MS
    expect(await services.backups.runDue()).toBeDefined()
  }
  expect(await services.backups.lastGoodAt()).toEqual(new Date(clock.ms))
  // A month later the first is too old; the two newest stay whatever their age.
  clock.ms += 40 * DAY_MS
  await composed.services.sites.delete(actor, first.site.id)
  clock.ms += 40 * DAY_MS
  expect(await services.backups.runDue()).toBeDefined()
  expect(await place().snapshots()).toHaveLength(2)
  expect(await services.backups.prune()).toEqual({ snapshots: 0, blobs: 0 })
})

test('a place that cannot be written to is noted, and tried again later', async () => {
  const { services, sql } = composed
  clock.ms += 2 * DAY_MS
  const bad = await composeServices({ BACKUP_TO: `file:${path.join(blobsDir, 'not', 'a', 'folder')}` }, clock)
  try {
    await writeFile(path.join(blobsDir, 'not'), 'a file')
    await expect(bad.services.backups.runDue()).rejects.toThrow(/ENOTDIR|EEXIST/)
    expect(await bad.services.backups.runDue()).toBeUndefined()
    const [row] = await bad.sql`select error, ended_at from backups`
    expect(row).toMatchObject({
      error: expect.stringMatching(/ENOTDIR|EEXIST/) as string,
      ended_at: expect.any(Date) as Date,
    })
  } finally {
    await rm(path.join(blobsDir, 'not'))
    await bad.close()
  }
  expect(await services.backups.runDue()).toBeDefined()
  expect((await sql`select from backups where ended_at is null`).length).toBe(0)
})

test('what killed backups left goes before the next one, also by hand, and where that one fails', async () => {
  const { services } = composed
  const byHand = path.join(folder, 'by-hand')
  const killed = path.join(byHand, 'snapshots', snapshotName(clock.ms - 3 * DAY_MS), 'tables')
  await mkdir(killed, { recursive: true })
  await writeFile(path.join(byHand, 'blobs'), 'no folder')
  await expect(services.backups.take(byHand)).rejects.toThrow(/ENOTDIR|EEXIST/)
  expect(await readdir(path.join(byHand, 'snapshots'))).toEqual([])
  await rm(path.join(byHand, 'blobs'))
  await mkdir(killed, { recursive: true })
  const { snapshot } = await services.backups.take(byHand)
  expect(await readdir(path.join(byHand, 'snapshots'))).toEqual([snapshot])
})

test('a drill restores the newest into a scratch place, ends with counts, and leaves nothing', async () => {
  const { services, sql } = composed
  const actor = await composed.newActor('business')
  await composed.publishPage(actor, 'drilled')
  const taken = await services.backups.take(undefined)
  const databases = async () => (await sql`select datname from pg_database where datname like 'dropway_drill%'`).length
  const result = await services.backups.drill({})
  expect(result).toMatchObject({
    snapshot: taken.snapshot,
    rows: taken.rows,
    blobs: taken.blobs,
    live_drops: 1,
    accounts: 2,
  })
  expect(result.bytes).toBeGreaterThan(0)
  expect(await databases()).toBe(0)
  expect((await readdir(services.config.dataDir)).filter((name) => name.startsWith('drill-'))).toEqual([])

  // A backup that lacks a blob is no backup.
  const [blob] = await collect(place().blobs.list())
  await place().blobs.remove(blob!.hash)
  await expect(services.backups.drill({})).rejects.toThrow(BlobMissing)
  expect(await databases()).toBe(0)
  await expect(services.backups.drill({ place: path.join(folder, 'empty') })).rejects.toThrow(
    /There is no complete backup/,
  )
})

test('a good one by hand takes away content that no backup needs, and finds what a killed one had copied', async () => {
  const { services } = composed
  const byHand = path.join(folder, 'tidied-by-hand')
  const { blobs } = openBackupPlace(byHand, folder)
  await composed.publishPage(await composed.newActor('business'), 'copied')
  await services.backups.take(byHand)
  const copied = await collect(blobs.list())
  expect(copied).not.toEqual([])
  const [unneeded] = await blobs.putAll([Buffer.from('of a version that is gone')])
  const longAgo = new Date(clock.ms - 10 * DAY_MS)
  for (const { hash } of await collect(blobs.list()))
    await utimes(path.join(byHand, 'blobs', hash.slice(0, 2), hash), longAgo, longAgo)
  await rm(path.join(byHand, 'snapshots'), { recursive: true })
  await mkdir(path.join(byHand, 'snapshots', snapshotName(clock.ms - 3 * DAY_MS), 'tables'), { recursive: true })

  await services.backups.take(byHand)
  const left = new Map((await collect(blobs.list())).map(({ hash, modifiedAt }) => [hash, modifiedAt]))
  expect(left.has(unneeded!.hash)).toBe(false)
  expect(copied.map(({ hash }) => left.get(hash))).toEqual(copied.map(() => longAgo.getTime()))
})

test('scrub names what is damaged or missing with its drops, and mends it from a backup', async () => {
  const { services } = composed
  const whole = path.join(folder, 'whole-backup')
  expect(await services.backups.scrub(undefined)).toMatchObject({ damaged: 0, blobs: [] })
  const { slug } = (await composed.publishPage(await composed.newActor('business'), 'scrubbed')).site
  await services.backups.take(whole)
  const { manifest } = await composed.routeOf(slug)
  const file = path.join(blobsDir, manifest!.slice(0, 2), manifest!)
  await writeFile(file, 'other bytes')
  const found = await services.backups.scrub(undefined)
  expect(found).toMatchObject({
    damaged: 1,
    mended: 0,
    blobs: [{ hash: path.basename(file), problem: 'damaged', mended: false }],
  })
  expect(found.blobs[0]!.drops).toEqual([slug])
  expect(await services.backups.scrub(whole)).toMatchObject({ damaged: 1, mended: 1 })
  await rm(file)
  expect(await services.backups.scrub(undefined)).toMatchObject({ damaged: 1, blobs: [{ problem: 'missing' }] })
  expect(await services.backups.scrub(whole)).toMatchObject({ damaged: 1, mended: 1 })
  expect(await services.backups.scrub(undefined)).toMatchObject({ damaged: 0 })
})

test('content moves from a directory to a bucket while it is served, and what came meanwhile follows', async () => {
  const { services } = composed
  const actor = await composed.newActor('business')
  const target = s3.url({ cache: path.join(folder, 'copies'), prefix: '/moved' })
  await expect(services.backups.moveContent(undefined)).rejects.toThrow(/--to/)
  const moved = await services.backups.moveContent(target)
  expect(moved.copied).toBeGreaterThan(0)
  expect(await services.backups.moveContent(target)).toMatchObject({ copied: 0, present: moved.present })
  // Planes with both settings read what only the former store has, and write to the new one.
  await composed.publishPage(actor, 'meanwhile')
  const late = (await collect(services.blobs.list())).map(({ hash }) => hash)
  const env = new EnvReader({ BLOB_STORE: target, BLOB_STORE_FORMER: `file:${blobsDir}` })
  const url = readBlobStore(env, folder)
  const moving = openBlobStore({ url })
  for (const hash of late) {
    expect(await moving.has(hash)).toBe(true)
    expect(await moving.read(hash)).toEqual(await services.blobs.read(hash))
    expect(Buffer.concat(await moving.stream(hash).toArray())).toEqual(await services.blobs.read(hash))
  }
  const { hash } = await moving.put(Buffer.from('written after the switch'))
  expect(await services.blobs.has(hash)).toBe(false)
  await expect(moving.read('0'.repeat(64))).rejects.toThrow(BlobMissing)

  const switched = await composeServices({ BLOB_STORE: target, BLOB_STORE_FORMER: `file:${blobsDir}` })
  try {
    expect((await switched.services.backups.moveContent(undefined)).copied).toBeGreaterThan(0)
    expect(await switched.services.backups.moveContent(undefined)).toMatchObject({ copied: 0 })
  } finally {
    await switched.close()
  }
})
