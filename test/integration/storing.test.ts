/** Small blobs are stored by a thread: the same store, whether bytes are few or many, and a failure is one blob's own. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createStoring, type Storing } from '../../control/drops/publishing/storage/storing.ts'
import type { BlobWriter } from '../../shared/blobs/blob-store.ts'
import { openBlobStore } from '../../shared/blobs/open.ts'

let directory: string
let storing: Storing

beforeEach(async () => {
  directory = await mkdtemp(path.join(os.tmpdir(), 'dropway-storing-'))
  const location = { url: `file:${directory}` }
  storing = createStoring(openBlobStore(location), location)
})
afterEach(async () => {
  await storing.close()
  await rm(directory, { recursive: true, force: true })
})

const sizes = [0, 1, 4096, 65_536, 65_537, 200_000]

test.each(sizes)('%i bytes are stored under their hash, put whole or written in pieces', async (size) => {
  for (const isPut of [true, false]) {
    const bytes = randomBytes(size)
    const stored = isPut ? await storing.blobs.put(bytes) : await written(bytes)
    expect(stored).toMatchObject({ hash: hashOf(bytes), size })
    expect(await storing.blobs.read(stored.hash)).toEqual(bytes)
    expect(await openBlobStore({ url: `file:${directory}` }).read(stored.hash)).toEqual(bytes)
  }
  expect(await readdir(path.join(directory, 'tmp'))).toEqual([])
})

test('the bytes of a short blob stay at hand for a while, those of a longer one do not', async () => {
  const [short, long] = [randomBytes(4096), randomBytes(4097)]
  for (const bytes of [short, long]) await storing.blobs.put(bytes)
  expect([storing.atHand(hashOf(short)), storing.atHand(hashOf(long))]).toEqual([short, undefined])
  // No more than a megabyte of them.
  for (let count = 0; count < 260; count++) await storing.blobs.put(randomBytes(4096))
  expect(storing.atHand(hashOf(short))).toBeUndefined()
  expect(await storing.blobs.read(hashOf(short))).toEqual(short)
})

test('an upload reads the short page that it holds, which is stored when it says so and not before', async () => {
  const upload = storing.forUpload()
  const page = Buffer.from('<p>Held.')
  const named = await written(page, await upload.holdingWriter())
  expect(named).toEqual({ hash: hashOf(page), size: page.length })
  expect([upload.atHand(named.hash), await upload.blobs.read(named.hash)]).toEqual([page, page])
  expect(await storing.blobs.has(named.hash)).toBe(false)
  expect(storing.forUpload().atHand(named.hash)).toBeUndefined()
  // Others may come in between: what is held does not depend on what stays at hand.
  for (let count = 0; count < 260; count++) await storing.blobs.put(randomBytes(8))
  expect(await upload.storeHeld()).toEqual({ ...named, modifiedAt: expect.any(Number) })
  expect(await openBlobStore({ url: `file:${directory}` }).read(named.hash)).toEqual(page)
  expect(await upload.storeHeld()).toBeUndefined()
})

test('what is longer than a short page is not held', async () => {
  const upload = storing.forUpload()
  const { hash } = await written(randomBytes(4097), await upload.holdingWriter())
  expect(await storing.blobs.has(hash)).toBe(true)
  expect(await upload.storeHeld()).toBeUndefined()
})

test('the second of two who store the same bytes is told that they were there', async () => {
  const bytes = Buffer.from('the same')
  const { modifiedAt } = await storing.blobs.put(bytes)
  expect(modifiedAt).toBeTypeOf('number')
  expect(await storing.blobs.put(bytes)).toEqual({ hash: hashOf(bytes), size: bytes.length })
  // What was stored is taken back by those alone who brought it.
  expect(await storing.blobs.discard(hashOf(bytes), modifiedAt!)).toBe(false)
})

test('of many at once one that cannot be stored fails alone', async () => {
  const good = Array.from({ length: 100 }, (_, index) => Buffer.from(`good ${index}`))
  const folders = new Set(good.map((bytes) => hashOf(bytes).slice(0, 2)))
  const bad = Array.from({ length: 10_000 }, (_, index) => Buffer.from(`bad ${index}`)).find(
    (bytes) => !folders.has(hashOf(bytes).slice(0, 2)),
  )!
  // A file where its folder would be.
  await writeFile(path.join(directory, hashOf(bad).slice(0, 2)), '')
  const outcomes = await Promise.allSettled([bad, ...good].map((bytes) => storing.blobs.put(bytes)))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', ...good.map(() => 'fulfilled')])
  // The code, by which a full disk is known, and the place that failed come through the thread.
  expect(outcomes[0]).toMatchObject({
    reason: {
      code: expect.stringMatching(/^E[A-Z]+$/),
      message: expect.stringMatching(/^E[A-Z]+: /),
      stack: expect.stringMatching(/shared\/blobs\/directory-store\.ts/),
    },
  })
  for (const bytes of good) expect(await storing.blobs.has(hashOf(bytes))).toBe(true)
})

test('a writer that is aborted leaves nothing, before it began a file and after', async () => {
  for (const size of [10, 200_000]) {
    const writer = await storing.blobs.writer()
    await writer.write(randomBytes(size))
    await writer.abort()
  }
  const left = await readdir(directory, { recursive: true, withFileTypes: true })
  expect(left.filter((entry) => entry.isFile())).toEqual([])
})

async function written(bytes: Buffer, into?: BlobWriter) {
  const writer = into ?? (await storing.blobs.writer())
  for (let at = 0; at < bytes.length; at += 30_000) await writer.write(bytes.subarray(at, at + 30_000))
  return writer.finish()
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
