/**
 * A store whose content moves: everything is written to the new one, and what it lacks is read from the former one.
 * Garbage is collected in the new one alone; the former one is left as it is until the operator removes it.
 */
import { BlobMissing, pacedStream, type BlobStore } from './blob-store.ts'

export function createMovingBlobStore(current: BlobStore, former: BlobStore): BlobStore {
  async function read(hash: string): Promise<Buffer> {
    try {
      return await current.read(hash)
    } catch (error) {
      if (error instanceof BlobMissing) return former.read(hash)
      throw error
    }
  }
  return {
    put: (bytes) => current.put(bytes),
    putAll: (blobs) => current.putAll(blobs),
    writer: () => current.writer(),
    has: async (hash) => (await current.has(hash)) || (await former.has(hash)),
    keep: async (hash) => (await current.keep(hash)) ?? (await former.keep(hash)),
    read,
    stream: (hash, range) =>
      pacedStream(async function* chunks() {
        const store = (await current.has(hash)) ? current : former
        yield* store.stream(hash, range) as AsyncIterable<Uint8Array>
      }),
    remove: (hash) => current.remove(hash),
    discard: (hash, modifiedAt) => current.discard(hash, modifiedAt),
    list: () => current.list(),
    sweep: (writtenBefore) => current.sweep(writtenBefore),
  }
}
