/** Looking after stored content: is every blob there and whole, and how it moves to another store while it is served. */
import { createHash } from 'node:crypto'
import { BlobMissing, type BlobStore } from '../../../shared/blobs/blob-store.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { copyBlob } from './backup.ts'
import { dropsWith, keptBlobs } from './queries.ts'

/** Blobs that are on their way at the same time. */
const AT_ONCE = 8
/** Content that is published while a store is copied is found by the next pass; a service is never that busy. */
const MAX_PASSES = 20
const MAX_NAMED_BLOBS = 100

export interface DamagedBlob {
  readonly hash: string
  readonly problem: 'missing' | 'damaged'
  /** Addresses of drops that have it, a few of them. */
  readonly drops: readonly string[]
  readonly mended: boolean
}

export interface ScrubResult {
  readonly checked: number
  readonly bytes: number
  readonly damaged: number
  readonly mended: number
  /** The first hundred of them. */
  readonly blobs: readonly DamagedBlob[]
}

/** Reads every blob of every kept version and compares it with its name. `spare` has good copies, where there is one. */
export async function scrubContent(sql: Sql, store: BlobStore, spare: BlobStore | undefined): Promise<ScrubResult> {
  const blobs: DamagedBlob[] = []
  let checked = 0
  let bytes = 0
  let damaged = 0
  let mended = 0
  await side(AT_ONCE, keptBlobs(sql), async (hash) => {
    const found = await examine(store, hash)
    checked++
    if (found.problem === undefined) {
      bytes += found.bytes
      return
    }
    damaged++
    const isMended = spare !== undefined && (await mend(store, spare, hash))
    if (isMended) mended++
    if (blobs.length < MAX_NAMED_BLOBS)
      blobs.push({ hash, problem: found.problem, drops: await dropsWith(sql, hash), mended: isMended })
  })
  return { checked, bytes, damaged, mended, blobs }
}

async function examine(
  store: BlobStore,
  hash: string,
): Promise<{ problem: DamagedBlob['problem'] } | { problem: undefined; bytes: number }> {
  const digest = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of store.stream(hash) as AsyncIterable<Uint8Array>) {
      digest.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    if (error instanceof BlobMissing) return { problem: 'missing' }
    // A store that checks what it reads says so itself; any other failure is the store's, not the blob's.
    if (isDamage(error)) return { problem: 'damaged' }
    throw error
  }
  return digest.digest('hex') === hash ? { problem: undefined, bytes } : { problem: 'damaged' }
}

/** Stores and copies say so with these words. */
function isDamage(error: unknown): boolean {
  return (error as Error).message.includes('other bytes')
}

/** Only a copy that is good takes the place of one that is not. */
async function mend(store: BlobStore, spare: BlobStore, hash: string): Promise<boolean> {
  if ((await examine(spare, hash)).problem !== undefined) return false
  await store.remove(hash)
  await copyBlob(hash, spare, store)
  return true
}

export interface MoveResult {
  readonly copied: number
  readonly bytes: number
  readonly present: number
  readonly passes: number
  /** Left behind, because their bytes are not what their names say: `scrub` names the drops. */
  readonly damaged: number
}

/** Copies what `to` lacks, again and again until a pass finds nothing: publishing goes on meanwhile. */
export async function copyStore(from: BlobStore, to: BlobStore): Promise<MoveResult> {
  let copied = 0
  let bytes = 0
  for (let passes = 1; ; passes++) {
    let present = 0
    let copiedNow = 0
    let damaged = 0
    await side(AT_ONCE, from.list(), async ({ hash, size }) => {
      if (await to.has(hash)) return void present++
      try {
        await copyBlob(hash, from, to)
      } catch (error) {
        // It was collected between the list and the copy.
        if (error instanceof BlobMissing) return
        if (!isDamage(error)) throw error
        damaged++
        return
      }
      copiedNow++
      bytes += size
    })
    copied += copiedNow
    if (copiedNow === 0 || passes === MAX_PASSES) return { copied, bytes, present, passes, damaged }
  }
}

/** Does the work for each, several at a time; the first failure ends it. */
async function side<Item>(
  places: number,
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  // A generator hands out one at a time, also to several who ask at once.
  const worker = async (): Promise<void> => {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: places }, worker))
}
