/**
 * Content-addressed bytes: the name of a blob is the sha256 of its content. No one else's path,
 * neither an archive's nor a visitor's, ever becomes a file system path.
 */
import { Readable } from 'node:stream'

/** Both ends inclusive. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

export interface BlobStore {
  /** Stores bytes durably (fsynced) before it resolves; bytes that have been there for a minute cost no sync. */
  put(bytes: Uint8Array): Promise<StoredBlob>
  /** The same for several at once, in their order: what makes them durable is shared where it can be. */
  putAll(blobs: readonly Uint8Array[]): Promise<StoredBlob[]>
  /** Streams bytes into the store; `abort` leaves nothing behind. */
  writer(): Promise<BlobWriter>
  has(hash: string): Promise<boolean>
  /** The blob, if it is there; it counts as just written: garbage collection leaves it alone for another grace period. */
  keep(hash: string): Promise<StoredBlob | undefined>
  /** The whole blob. Throws BlobMissing. */
  read(hash: string): Promise<Buffer>
  /** Bytes `start` to `end`, both inclusive; the stream errors with BlobMissing. */
  stream(hash: string, range?: ByteRange): Readable
  remove(hash: string): Promise<void>
  /**
   * Removes a blob that is as old as the caller knows it: `modifiedAt` as told by `put`, `finish` or `list`. False when
   * another caller stored or kept it since, or it is gone: two uploads of the same bytes never take each other's away.
   */
  discard(hash: string, modifiedAt: number): Promise<boolean>
  /** Every blob, in no order; for garbage collection and backup. */
  list(): AsyncIterable<Required<StoredBlob>>
  /** Removes temporary files of writers that died, last written before that time; puts back what they were discarding. */
  sweep(writtenBefore: number): Promise<number>
}

/** Requests that a distant store has at once for `putAll`. */
export const PARALLEL_PUTS = 16

const HASH = /^[0-9a-f]{64}$/

export function isBlobHash(text: string): boolean {
  return HASH.test(text)
}

export interface StoredBlob {
  readonly hash: string
  readonly size: number
  /** Set when the bytes were not in the store before: what `discard` needs to take them back. */
  readonly modifiedAt?: number
}

export interface BlobWriter {
  write(chunk: Uint8Array): Promise<void>
  /** Resolves when the blob is durable under its hash. */
  finish(): Promise<StoredBlob>
  abort(): Promise<void>
}

/** Asks for a chunk when the one before has been taken, and not earlier. `left`: the reader wants no more. */
export function pacedStream(chunksUntil: (left: AbortSignal) => AsyncIterable<Uint8Array>): Readable {
  const leaving = new AbortController()
  const iterator = chunksUntil(leaving.signal)[Symbol.asyncIterator]()
  return new Readable({
    highWaterMark: 0,
    read() {
      iterator.next().then(
        ({ done, value }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      // `return` waits behind a chunk that is on its way, and that one may never come.
      leaving.abort()
      const ended = iterator.return?.() ?? Promise.resolve()
      ended.then(
        () => done(error),
        () => done(error),
      )
    },
  })
}

/** The store does not answer, or refuses what it should do: no fault of who asked. Its code tells so across threads. */
export class StoreAway extends Error {
  readonly code = 'STORE_AWAY'
}

export class BlobMissing extends Error {
  readonly hash: string
  constructor(hash: string) {
    super(`blob ${hash} is missing`)
    this.hash = hash
  }
}
