/**
 * Stores small blobs in a thread. To make a blob durable takes eleven calls of the file system, and from an event loop each
 * of them goes to another thread and back; the storing thread makes them directly (`directCalls`), for one message there and
 * one back.
 *
 * Blobs that arrive while the disk is busy wait for each other and go together: their syncs become one of the disk.
 *
 *   put ─▶ waiting ─▶ a batch (two at once at most, one thread each) ─▶ durable, each with its own answer
 *
 * What is large is written while it arrives, as before, and so is what goes to a store that is not a directory.
 *
 * A publish reads its page right after it was stored. The bytes of short ones stay at hand for that. A short page that is
 * published by itself is only held until its manifest is written: both go in one batch.
 */
import { hash as digestOf } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { BlobStore, BlobWriter, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { parseBlobStoreUrl, splitLocation } from '../../../../shared/blobs/location.ts'
import type { BlobStoreLocation } from '../../../../shared/blobs/open.ts'
import { hasLittleMemory } from '../../../../shared/running/memory.ts'
import { createWorkerPool, type WorkerPool } from '../../../../shared/running/threads/pool.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'

/** What one upload may hold in memory before it is written to a file. Most pages and all of their manifests are smaller. */
const SMALL_BYTES = 65_536
/** A blob that stays at hand: a short page, which is read in less time than a thread is told of it. */
const SHORT_BYTES = 4096
/** How many stay at hand of all uploads together: those of this moment, a megabyte at most. */
const MOST_AT_HAND = 256
/** The next batch is written while the disk syncs the one before, where there is memory for two threads. */
const THREADS = { usually: 2, withLittleMemory: 1 }
/** Some milliseconds of a thread, so that the first of a batch does not wait long for the last. */
const MAX_BATCH_BLOBS = 64
/** The disk may be slow; the time of a batch is counted in processor time. */
const TIMEOUT_MS = 60_000
/** Batches are a few megabytes. */
const HEAP_MB = 64
const IDLE_MS = 60_000

/** What the thread is asked for. */
export interface StoringJob {
  readonly blobs: readonly Uint8Array[]
}

/** What became of each blob: one that failed fails alone. */
export type StoringOutcome = { readonly stored: StoredBlob } | { readonly failure: StoringFailure }

/** The code tells callers a full disk from a mistake of ours, and the stack says where it was met. */
export type StoringFailure = Pick<NodeJS.ErrnoException, 'message' | 'code' | 'stack'>

/** The store as one upload sees it, with the short page that it holds back. */
export interface UploadStore {
  /** The same store, which reads what is held too. Threads do not: what they shall read is stored first. */
  readonly blobs: BlobStore
  /** The bytes of a short blob that is held, or was stored a moment ago. */
  atHand(hash: string): Buffer | undefined
  /** Like that of `blobs`, but what is short is only named and held: it is durable once `storeHeld` has resolved. */
  holdingWriter(): Promise<BlobWriter>
  /** What became of the blob that is held, if one is. One that no one stores leaves nothing behind. */
  storeHeld(): Promise<StoredBlob | undefined>
}

export interface Storing {
  /** The same store. */
  readonly blobs: BlobStore
  /** The bytes of a short blob that was stored a moment ago. */
  atHand(hash: string): Buffer | undefined
  forUpload(): UploadStore
  close(): Promise<void>
}

export function createStoring(blobs: BlobStore, location: BlobStoreLocation): Storing {
  if (!isDirectory(location)) return storingNothing(blobs)
  const threads = hasLittleMemory() ? THREADS.withLittleMemory : THREADS.usually
  const pool = createWorkerPool({
    script: new URL('./storing-worker.ts', import.meta.url),
    workerData: location,
    size: threads,
    share: threads,
    maxHeapMb: HEAP_MB,
    maxWaiting: threads,
    maxWaitMs: TIMEOUT_MS,
    idleMs: IDLE_MS,
  })
  const kept = new LRUCache<string, Buffer>({ max: MOST_AT_HAND })
  const store = createBatches(pool, threads)
  const putSmall = async (bytes: Uint8Array): Promise<StoredBlob> => {
    const stored = await store(bytes)
    if (bytes.length <= SHORT_BYTES) kept.set(stored.hash, ownCopyOf(bytes))
    return stored
  }
  const put: BlobStore['put'] = (bytes) => (bytes.length > SMALL_BYTES ? blobs.put(bytes) : putSmall(bytes))
  const atHand = (hash: string): Buffer | undefined => kept.get(hash)
  const stored: BlobStore = {
    ...blobs,
    put,
    writer: async () => collectingWriter(blobs, putSmall),
    read: async (hash) => atHand(hash) ?? blobs.read(hash),
  }
  return {
    blobs: stored,
    atHand,
    forUpload: () => createUploadStore({ blobs, stored, putSmall, atHand }),
    close: () => pool.close(),
  }
}

/** Where there is no directory, everything is stored as it comes. */
function storingNothing(blobs: BlobStore): Storing {
  const atHand = (): undefined => undefined
  return {
    blobs,
    atHand,
    forUpload: () => ({ blobs, atHand, holdingWriter: () => blobs.writer(), storeHeld: async () => undefined }),
    close: async () => {},
  }
}

function createUploadStore({
  blobs,
  stored,
  putSmall,
  atHand,
}: Pick<Storing, 'atHand'> & {
  blobs: BlobStore
  stored: BlobStore
  putSmall: (bytes: Uint8Array) => Promise<StoredBlob>
}): UploadStore {
  let held: { readonly hash: string; readonly bytes: Buffer } | undefined
  const holdShort = async (bytes: Buffer): Promise<StoredBlob> => {
    if (bytes.length > SHORT_BYTES) return putSmall(bytes)
    held = { hash: digestOf('sha256', bytes), bytes }
    return { hash: held.hash, size: bytes.length }
  }
  const own = (hash: string): Buffer | undefined => (hash === held?.hash ? held.bytes : atHand(hash))
  return {
    blobs: { ...stored, read: async (hash) => own(hash) ?? stored.read(hash) },
    atHand: own,
    holdingWriter: async () => collectingWriter(blobs, holdShort),
    async storeHeld() {
      const wanted = held
      const outcome = wanted && (await putSmall(wanted.bytes))
      held = undefined
      return outcome
    },
  }
}

/** In memory of its own: a slice of Node's pool would hold 8 kB of it. */
function ownCopyOf(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

function isDirectory({ url: text }: BlobStoreLocation): boolean {
  const { url, former } = splitLocation(text)
  return former === undefined && parseBlobStoreUrl(url).kind === 'directory'
}

interface Wanted {
  readonly bytes: Uint8Array
  resolve(stored: StoredBlob): void
  reject(error: Error): void
}

function createBatches(pool: WorkerPool, most: number): (bytes: Uint8Array) => Promise<StoredBlob> {
  const waiting: Wanted[] = []
  let running = 0

  async function store(batch: readonly Wanted[]): Promise<void> {
    const job: StoringJob = { blobs: batch.map(({ bytes }) => bytes) }
    try {
      const outcomes = await pool.run<readonly StoringOutcome[]>(job, { timeoutMs: TIMEOUT_MS, owner: 'storing' })
      for (const [wanted, outcome] of sideBySide(batch, outcomes)) {
        if ('stored' in outcome) wanted.resolve(outcome.stored)
        else wanted.reject(Object.assign(new Error(), outcome.failure))
      }
    } catch (error) {
      for (const wanted of batch) wanted.reject(error as Error)
    }
  }

  async function runNext(): Promise<void> {
    if (running === most || waiting.length === 0) return
    running += 1
    await store(waiting.splice(0, MAX_BATCH_BLOBS))
    running -= 1
    void runNext()
  }

  return (bytes) =>
    new Promise((resolve, reject) => {
      // A message copies the whole memory that a view looks into, which may be more than the view.
      waiting.push({ bytes: Uint8Array.from(bytes), resolve, reject })
      // Those who come in the same turn of the event loop go together.
      setImmediate(() => void runNext())
    })
}

/** Holds bytes while they are few, and begins a file when they are more. */
function collectingWriter(blobs: BlobStore, putSmall: (bytes: Buffer) => Promise<StoredBlob>): BlobWriter {
  const held: Uint8Array[] = []
  let size = 0
  let file: BlobWriter | undefined
  return {
    async write(chunk) {
      size += chunk.length
      if (file) return file.write(chunk)
      held.push(chunk)
      if (size <= SMALL_BYTES) return
      file = await blobs.writer()
      for (const piece of held.splice(0)) await file.write(piece)
    },
    finish: () => (file ? file.finish() : putSmall(Buffer.concat(held))),
    abort: async () => file?.abort(),
  }
}
