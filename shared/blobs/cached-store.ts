/**
 * A distant blob store with a bounded directory of copies in front of it (copies.ts), shared by all processes of a
 * machine. A blob never changes, so a copy is never stale:
 *
 *   hit:     the copy, without a word to the distant store
 *   miss:    the distant store answers; one fetch per blob also makes the copy
 *   writing: the distant store first (that is what durable means), then the copy
 *   full:    the copies that were used longest ago go, down to four fifths of the bound
 *   failing: a copy that cannot be written (disk full) is done without, and told now and then; one that cannot be
 *            read is a miss
 *   damaged: what is read whole is checked against its name, a part by its length. Such a copy goes, and the distant
 *            store answers; a stream that has begun goes on there at its next byte, or fails when there is none
 */
import { addAbortSignal } from 'node:stream'
import { inParallel } from '../running/turns.ts'
import { pacedStream, PARALLEL_PUTS, type BlobStore, type ByteRange, type StoredBlob } from './blob-store.ts'
import { createCopies, type Copies } from './copies.ts'

export interface CachedStoreOptions {
  readonly distant: BlobStore
  /** A directory store that holds nothing but copies. */
  readonly copies: BlobStore
  readonly maxBytes: number
  /** A copy could not be made; only the distant store notices: it is asked more often. */
  readonly onProblem?: (error: Error) => void
}

export function createCachedBlobStore({ distant, copies: store, maxBytes, onProblem }: CachedStoreOptions): BlobStore {
  const copies = createCopies({ store, maxBytes, onProblem })
  const fetchOnce = createFetching(distant, copies)
  async function put(bytes: Uint8Array): Promise<StoredBlob> {
    const stored = await distant.put(bytes)
    await copies.add(bytes)
    return stored
  }
  return {
    put,
    putAll: (blobs) => inParallel(blobs, PARALLEL_PUTS, put),
    writer: () => distant.writer(),
    read: async (hash) => (await copies.read(hash)) ?? fetchOnce(hash),
    stream: (hash, range) => pacedStream((left) => bytesOf(distant, copies, { hash, range, left })),
    has: (hash) => distant.has(hash),
    keep: (hash) => distant.keep(hash),
    async remove(hash) {
      await distant.remove(hash)
      await store.remove(hash)
    },
    async discard(hash, modifiedAt) {
      const isRemoved = await distant.discard(hash, modifiedAt)
      if (isRemoved) await store.remove(hash)
      return isRemoved
    },
    list: () => distant.list(),
    async sweep(writtenBefore) {
      return (await distant.sweep(writtenBefore)) + (await store.sweep(writtenBefore))
    },
  }
}

/** Reads a blob from the distant store and copies it; callers who ask for it meanwhile wait for the same answer. */
function createFetching(distant: BlobStore, copies: Copies): (hash: string) => Promise<Buffer> {
  const fetching = new Map<string, Promise<Buffer>>()
  async function fetch(hash: string): Promise<Buffer> {
    const bytes = await distant.read(hash)
    await copies.add(bytes)
    return bytes
  }
  return (hash) => {
    let running = fetching.get(hash)
    if (!running) {
      running = fetch(hash).finally(() => fetching.delete(hash))
      fetching.set(hash, running)
    }
    return running
  }
}

interface Wanted {
  readonly hash: string
  readonly range: ByteRange | undefined
  /** The reader wants no more. */
  readonly left: AbortSignal
}

/** The bytes that the copy has, and the rest from the distant store. Only a blob that is read whole is copied meanwhile. */
async function* bytesOf(distant: BlobStore, copies: Copies, { hash, range, left }: Wanted): AsyncGenerator<Uint8Array> {
  const missingFrom = yield* copies.bytesOf(hash, range)
  if (missingFrom === undefined) return
  if (range || missingFrom > 0) {
    const rest = { start: missingFrom, end: range?.end ?? Number.MAX_SAFE_INTEGER }
    yield* addAbortSignal(left, distant.stream(hash, rest))
  } else yield* copyWhileStreaming(distant, copies, hash, left)
}

async function* copyWhileStreaming(
  distant: BlobStore,
  copies: Copies,
  hash: string,
  left: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const copy = await copies.begin()
  let isWhole = false
  try {
    for await (const chunk of addAbortSignal(left, distant.stream(hash)) as AsyncIterable<Uint8Array>) {
      await copy.write(chunk)
      yield chunk
    }
    isWhole = true
  } finally {
    await copy.end(isWhole)
  }
}
