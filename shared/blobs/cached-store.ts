/**
 * A distant blob store with a bounded directory of copies in front of it, shared by all processes of a machine.
 * A blob never changes, so a copy is never stale:
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
import { createHash } from 'node:crypto'
import { addAbortSignal } from 'node:stream'
import { BlobMissing, pacedStream, type BlobStore, type BlobWriter, type StoredBlob } from './blob-store.ts'

export interface CachedStoreOptions {
  readonly distant: BlobStore
  /** A directory store that holds nothing but copies. */
  readonly copies: BlobStore
  readonly maxBytes: number
  /** A copy could not be made; only the distant store notices: it is asked more often. */
  readonly onProblem?: (error: Error) => void
}

/** The directory is measured again after this share of the bound has been added to it. */
const MEASURE_SHARE = 1 / 20
const KEEP_SHARE = 4 / 5
/** A use is noted at most this often: it costs a write to the disk. */
const NOTE_USE_MS = 10 * 60 * 1000
const MAX_NOTED_USES = 100_000
/** A copy that would push out a large part of the others is not worth it. */
const MAX_COPY_SHARE = 1 / 4
/** A full disk fails with every request; one line per minute says enough. */
const TELL_AGAIN_MS = 60_000

export function createCachedBlobStore({ distant, copies, maxBytes, onProblem }: CachedStoreOptions): BlobStore {
  const fetching = new Map<string, Promise<Buffer>>()
  const usedAt = new Map<string, number>()
  /** Start as if due: copies of an earlier process count too. */
  let addedBytes = maxBytes
  let trimming: Promise<void> | undefined
  let toldAt = Number.NEGATIVE_INFINITY

  function tell(error: unknown): void {
    if (performance.now() - toldAt < TELL_AGAIN_MS) return
    toldAt = performance.now()
    onProblem?.(error as Error)
  }

  async function addCopy(bytes: Uint8Array): Promise<void> {
    if (bytes.length > maxBytes * MAX_COPY_SHARE) return
    try {
      await copies.put(bytes)
      noteAdded(bytes.length)
    } catch (error) {
      tell(error)
    }
  }

  function noteAdded(bytes: number): void {
    addedBytes += bytes
    if (addedBytes < maxBytes * MEASURE_SHARE || trimming) return
    addedBytes = 0
    trimming = trim(copies, maxBytes)
      .catch(() => undefined)
      .finally(() => (trimming = undefined))
  }

  function noteUse(hash: string): void {
    const now = Date.now()
    if ((usedAt.get(hash) ?? 0) > now - NOTE_USE_MS) return
    if (usedAt.size >= MAX_NOTED_USES) usedAt.clear()
    usedAt.set(hash, now)
    copies.keep(hash).catch(() => undefined)
  }

  function fetchOnce(hash: string): Promise<Buffer> {
    let running = fetching.get(hash)
    if (!running) {
      running = distant
        .read(hash)
        .then(async (bytes) => {
          await addCopy(bytes)
          return bytes
        })
        .finally(() => fetching.delete(hash))
      fetching.set(hash, running)
    }
    return running
  }

  async function read(hash: string): Promise<Buffer> {
    const copy = await copies.read(hash).catch(() => undefined)
    if (copy === undefined) return fetchOnce(hash)
    if (createHash('sha256').update(copy).digest('hex') !== hash) {
      await copies.remove(hash).catch(() => undefined)
      return fetchOnce(hash)
    }
    noteUse(hash)
    return copy
  }

  /** A large blob is passed on while it arrives; whether it is worth a copy is for `read` to decide. */
  async function* bytesOf(
    hash: string,
    range: { start: number; end: number } | undefined,
    left: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const missingFrom = yield* copiedBytes(hash, range)
    if (missingFrom === undefined) return
    if (range || missingFrom > 0) {
      const rest = { start: missingFrom, end: range?.end ?? Number.MAX_SAFE_INTEGER }
      yield* addAbortSignal(left, distant.stream(hash, rest))
    } else yield* copyWhileStreaming(hash, left)
  }

  /** What the copy has; returns the position of the first byte that it lacks, if any. */
  async function* copiedBytes(
    hash: string,
    range?: { start: number; end: number },
  ): AsyncGenerator<Uint8Array, number | undefined> {
    const digest = createHash('sha256')
    let position = range?.start ?? 0
    try {
      for await (const chunk of copies.stream(hash, range) as AsyncIterable<Uint8Array>) {
        noteUse(hash)
        if (!range) digest.update(chunk)
        position += chunk.length
        yield chunk
      }
      // The hash of a part is unknown, but not its length.
      if (range ? position > range.end : digest.digest('hex') === hash) return undefined
    } catch (error) {
      if (error instanceof BlobMissing) return position
    }
    await copies.remove(hash).catch(() => undefined)
    return position
  }

  async function* copyWhileStreaming(hash: string, left: AbortSignal): AsyncGenerator<Uint8Array> {
    const copy = await openCopy()
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

  /** A copy in the making. The first thing that goes wrong ends it: a copy with a gap would be served for ever. */
  async function openCopy(): Promise<{
    write(chunk: Uint8Array): Promise<void>
    end(isWhole: boolean): Promise<void>
  }> {
    let size = 0
    let draft: BlobWriter | undefined = await copies.writer().catch((error: unknown) => {
      tell(error)
      return undefined
    })
    const giveUp = async (): Promise<void> => {
      const given = draft
      draft = undefined
      await given?.abort().catch(() => undefined)
    }
    const attempt = async (work: (to: BlobWriter) => Promise<unknown>): Promise<void> => {
      if (!draft) return
      try {
        await work(draft)
      } catch (error) {
        tell(error)
        await giveUp()
      }
    }
    return {
      async write(chunk) {
        size += chunk.length
        if (size > maxBytes * MAX_COPY_SHARE) await giveUp()
        await attempt((to) => to.write(chunk))
      },
      async end(isWhole) {
        if (!isWhole) return giveUp()
        await attempt(async (to) => {
          await to.finish()
          noteAdded(size)
        })
      },
    }
  }

  return {
    async put(bytes) {
      const stored = await distant.put(bytes)
      await addCopy(bytes)
      return stored
    },
    writer: () => distant.writer(),
    read,
    stream: (hash, range) => pacedStream((left) => bytesOf(hash, range, left)),
    has: (hash) => distant.has(hash),
    keep: (hash) => distant.keep(hash),
    async remove(hash) {
      await distant.remove(hash)
      await copies.remove(hash)
    },
    async discard(hash, modifiedAt) {
      const isRemoved = await distant.discard(hash, modifiedAt)
      if (isRemoved) await copies.remove(hash)
      return isRemoved
    },
    list: () => distant.list(),
    async sweep(writtenBefore) {
      return (await distant.sweep(writtenBefore)) + (await copies.sweep(writtenBefore))
    },
  }
}

/** Removes the copies that were used longest ago. Other processes may do the same at the same time: no harm. */
async function trim(copies: BlobStore, maxBytes: number): Promise<void> {
  const found: Required<StoredBlob>[] = []
  for await (const blob of copies.list()) found.push(blob)
  let total = found.reduce((sum, blob) => sum + blob.size, 0)
  if (total <= maxBytes) return
  for (const blob of found.toSorted((a, b) => a.modifiedAt - b.modifiedAt)) {
    if (total <= maxBytes * KEEP_SHARE) return
    if (await copies.discard(blob.hash, blob.modifiedAt)) total -= blob.size
  }
}
