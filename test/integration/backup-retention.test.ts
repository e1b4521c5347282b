/** What goes from a place of backups beside old snapshots, and what another backup that is being taken keeps there. */
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inSnapshot, openBackupPlace, snapshotEnd, type BackupPlace } from '../../control/plans/backups/place.ts'
import { pruneContent, prunePlace, removeAbandoned } from '../../control/plans/backups/retention.ts'
import { snapshotName } from '../../control/plans/backups/rules.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { collect } from '../support/publishing.ts'
import { startTestS3, type TestS3 } from '../support/s3.ts'

const KEEP_MS = 30 * DAY_MS
/** Everything that these tests store is older than a backup may take. */
const nowMs = Date.now() + 10 * DAY_MS

let folder: string
let s3: TestS3
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'dropway-retention-'))
  s3 = await startTestS3(path.join(folder, 's3'))
})
afterAll(async () => {
  await s3.close()
  await rm(folder, { recursive: true, force: true })
})

const write = (place: BackupPlace, name: string, bytes: Buffer): Promise<void> =>
  place.write(name, Readable.from([bytes]))

/** A snapshot of that age: its tables, the list of its content, its end. */
async function begin(place: BackupPlace, ageMs: number): Promise<string> {
  const name = snapshotName(nowMs - ageMs)
  await write(place, inSnapshot(name, 'tables/users.gz'), gzipSync('{"email":"user@example.com"}\n'))
  return name
}
const list = (place: BackupPlace, name: string, hashes: readonly string[]): Promise<void> =>
  write(place, inSnapshot(name, 'blobs.gz'), gzipSync(hashes.map((hash) => `${hash}\n`).join('')))
const end = (place: BackupPlace, name: string): Promise<void> => write(place, snapshotEnd(name), Buffer.from('{}'))

async function take(place: BackupPlace, ageMs: number, hashes: readonly string[]): Promise<string> {
  const name = await begin(place, ageMs)
  await list(place, name, hashes)
  await end(place, name)
  return name
}

test.each(['a directory', 'a bucket'])('in %s, what failed backups left goes after two days', async (kind) => {
  const where =
    kind === 'a bucket'
      ? s3.url({ cache: path.join(folder, 'unused'), prefix: '/backups' })
      : path.join(folder, 'abandoned')
  const place = openBackupPlace(where, path.join(folder, 'drafts'))
  const whole = await take(place, 5 * DAY_MS, [])
  const killed = await begin(place, 3 * DAY_MS)
  const young = await begin(place, DAY_MS)
  await write(place, inSnapshot('by-hand', 'notes'), Buffer.from('x'))
  expect(await place.unfinished()).toEqual([killed, young, 'by-hand'])
  expect(await prunePlace(place, KEEP_MS, nowMs)).toEqual({ snapshots: 1, blobs: 0 })
  expect(await place.read(inSnapshot(killed, 'tables/users.gz'))).toBeUndefined()
  expect(await place.unfinished()).toEqual([young, 'by-hand'])
  expect(await place.snapshots()).toEqual([whole])
})

test('content of an old snapshot stays while another backup that is being taken counts on it', async () => {
  const place = openBackupPlace(path.join(folder, 'counted-on'), folder)
  const texts = ['newest', 'being taken', 'none any more']
  const stored = await place.blobs.putAll(texts.map((text) => Buffer.from(text)))
  const [newest, takenNow, old] = stored.map(({ hash }) => hash) as [string, string, string]
  await take(place, 2 * DAY_MS, [newest])
  await take(place, DAY_MS, [newest])
  const left = async () => (await collect(place.blobs.list())).map(({ hash }) => hash).toSorted()

  // Before it has said what it counts on, it may be anything.
  await take(place, 41 * DAY_MS, [newest, takenNow, old])
  const byHand = await begin(place, 1000)
  expect(await prunePlace(place, KEEP_MS, nowMs)).toEqual({ snapshots: 1, blobs: 0 })
  expect(await left()).toEqual([newest, takenNow, old].toSorted())

  await take(place, 40 * DAY_MS, [newest, takenNow, old])
  await list(place, byHand, [newest, takenNow])
  expect(await prunePlace(place, KEEP_MS, nowMs)).toEqual({ snapshots: 1, blobs: 1 })
  expect(await left()).toEqual([newest, takenNow].toSorted())
})

test('content that a killed backup copied stays until another one is good', async () => {
  const place = openBackupPlace(path.join(folder, 'copied-by-a-killed-one'), folder)
  const [copied] = await place.blobs.putAll([Buffer.from('copied by a killed one')])
  const killed = await begin(place, 3 * DAY_MS)
  await list(place, killed, [copied!.hash])
  expect(await removeAbandoned(place, nowMs)).toBe(1)
  expect(await place.unfinished()).toEqual([])
  expect(await place.blobs.has(copied!.hash)).toBe(true)
  await take(place, 1000, [copied!.hash])
  expect(await prunePlace(place, KEEP_MS, nowMs)).toEqual({ snapshots: 0, blobs: 0 })
  await place.remove((await place.snapshots())[0]!)
  await take(place, 500, [])
  expect(await prunePlace(place, KEEP_MS, nowMs)).toEqual({ snapshots: 0, blobs: 1 })
})

test('a backup that begins while content is looked through loses none that it finds there', async () => {
  const place = openBackupPlace(path.join(folder, 'begun-meanwhile'), folder)
  const [found] = await place.blobs.putAll([Buffer.from('needed by nobody until now')])
  await take(place, DAY_MS, [])
  const blobs: BackupPlace['blobs'] = {
    ...place.blobs,
    async *list() {
      yield* place.blobs.list()
      await begin(place, 0)
    },
  }
  expect(await pruneContent({ ...place, blobs }, nowMs)).toBe(0)
  expect(await place.blobs.has(found!.hash)).toBe(true)
})
