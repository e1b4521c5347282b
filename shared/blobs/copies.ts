/**
 * A bounded directory of copies of blobs, shared by all processes of a machine. It never fails its caller: a copy that
 * cannot be read is none, and one that cannot be written is done without.
 */
import { createHash } from 'node:crypto'
import { BlobMissing, type BlobStore, type BlobWriter, type ByteRange, type StoredBlob } from './blob-store.ts'

export interface CopiesOptions {
  /** A directory store that holds nothing but copies. */
  readonly store: BlobStore
  /** More than nothing. */
  readonly maxBytes: number
  /** A copy could not be made; only the distant store notices: it is asked more often. */
  readonly onProblem?: ((error: Error) => void) | undefined
}

export interface Copies {
  /** The copy, checked against its name; undefined when there is none. A damaged one is removed. */
  read(hash: string): Promise<Buffer | undefined>
  /**
   * Yields what the copy has and returns the position of the first byte that it lacks, if any. A whole copy is checked
   * against its name and a part by its length; one that fails is removed.
   */
  bytesOf(hash: string, range?: ByteRange): AsyncGenerator<Uint8Array, number | undefined>
  add(bytes: Uint8Array): Promise<void>
  /** Begins a copy of a blob whose bytes are on their way. */
  begin(): Promise<CopyInTheMaking>
}

/** The first thing that goes wrong ends it: a copy with a gap would be served for ever. */
export interface CopyInTheMaking {
  write(chunk: Uint8Array): Promise<void>
  /** Keeps the copy when the blob came whole, else leaves nothing behind. */
  end(isWhole: boolean): Promise<void>
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

export function createCopies({ store, maxBytes, onProblem }: CopiesOptions): Copies {
  const maxCopyBytes = maxBytes * MAX_COPY_SHARE
  const noteUse = createUses(store)
  const noteAdded = createTrimming(store, maxBytes)
  const tell = createTelling(onProblem)

  return {
    async read(hash) {
      const copy = await store.read(hash).catch(() => undefined)
      if (copy === undefined) return undefined
      if (sha256(copy) !== hash) {
        await removeIfPossible(store, hash)
        return undefined
      }
      noteUse(hash)
      return copy
    },
    bytesOf: (hash, range) => checkedBytes(store, hash, range, () => noteUse(hash)),
    async add(bytes) {
      if (bytes.length > maxCopyBytes) return
      try {
        await store.put(bytes)
        noteAdded(bytes.length)
      } catch (error) {
        tell(error)
      }
    },
    begin: () => beginCopy(store, { maxCopyBytes, noteAdded, tell }),
  }
}

async function* checkedBytes(
  store: BlobStore,
  hash: string,
  range: ByteRange | undefined,
  noteUse: () => void,
): AsyncGenerator<Uint8Array, number | undefined> {
  const digest = createHash('sha256')
  let position = range?.start ?? 0
  try {
    for await (const chunk of store.stream(hash, range) as AsyncIterable<Uint8Array>) {
      noteUse()
      if (!range) digest.update(chunk)
      position += chunk.length
      yield chunk
    }
    // The hash of a part is unknown, but not its length.
    if (range ? position > range.end : digest.digest('hex') === hash) return undefined
  } catch (error) {
    if (error instanceof BlobMissing) return position
  }
  await removeIfPossible(store, hash)
  return position
}

interface CopyRules {
  readonly maxCopyBytes: number
  noteAdded(bytes: number): void
  tell(error: unknown): void
}

async function beginCopy(store: BlobStore, { maxCopyBytes, noteAdded, tell }: CopyRules): Promise<CopyInTheMaking> {
  let size = 0
  let draft: BlobWriter | undefined = await store.writer().catch((error: unknown) => {
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
      if (size > maxCopyBytes) await giveUp()
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

/** Notes that a copy was used, so that it is not among the first to go. */
function createUses(store: BlobStore): (hash: string) => void {
  const usedAt = new Map<string, number>()
  return (hash) => {
    const now = Date.now()
    if ((usedAt.get(hash) ?? 0) > now - NOTE_USE_MS) return
    if (usedAt.size >= MAX_NOTED_USES) usedAt.clear()
    usedAt.set(hash, now)
    store.keep(hash).catch(() => undefined)
  }
}

/** Notes that bytes were added, and trims the directory when enough were. */
function createTrimming(store: BlobStore, maxBytes: number): (bytes: number) => void {
  /** The count starts as if it were due: copies of an earlier process count too. */
  let addedBytes = maxBytes
  let trimming: Promise<void> | undefined
  /** What is added while it trims may make it due again, and nothing may be added after that. */
  function trimIfDue(): void {
    const isDue = addedBytes >= maxBytes * MEASURE_SHARE
    if (!isDue || trimming) return
    addedBytes = 0
    trimming = trim(store, maxBytes)
      .catch(() => undefined)
      .finally(() => {
        trimming = undefined
        trimIfDue()
      })
  }
  return (bytes) => {
    addedBytes += bytes
    trimIfDue()
  }
}

function createTelling(onProblem: CopiesOptions['onProblem']): (error: unknown) => void {
  let toldAt = Number.NEGATIVE_INFINITY
  return (error) => {
    if (performance.now() - toldAt < TELL_AGAIN_MS) return
    toldAt = performance.now()
    onProblem?.(error as Error)
  }
}

/** Removes the copies that were used longest ago. Other processes may do the same at the same time: no harm. */
async function trim(store: BlobStore, maxBytes: number): Promise<void> {
  const found: Required<StoredBlob>[] = []
  for await (const blob of store.list()) found.push(blob)
  let total = found.reduce((sum, blob) => sum + blob.size, 0)
  if (total <= maxBytes) return
  for (const blob of found.toSorted((a, b) => a.modifiedAt - b.modifiedAt)) {
    if (total <= maxBytes * KEEP_SHARE) return
    if (await store.discard(blob.hash, blob.modifiedAt)) total -= blob.size
  }
}

async function removeIfPossible(store: BlobStore, hash: string): Promise<void> {
  await store.remove(hash).catch(() => undefined)
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
