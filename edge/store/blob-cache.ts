/**
 * Bytes in the worker's memory, by name. A name is immutable (a content hash, or one plus what was done to it), so an
 * entry is never stale.
 *
 *   hit:     the buffer, at once
 *   miss:    one loader per name; all who ask meanwhile wait for the same promise
 *   failing: nothing is kept; the next request tries again
 *   large:   not admitted (see MAX_ENTRY_BYTES): one 100 MB file must not flush thousands of small ones
 */
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'

/** Larger blobs are streamed from the store. */
export const MAX_CACHED_BYTES = 1_000_000

/** Compressed pages with snippets are kept up to here: making one again costs more than reading it. */
export const MAX_ENTRY_BYTES = 2 * MAX_CACHED_BYTES

/** What an entry costs besides its bytes. */
const ENTRY_OVERHEAD_BYTES = 200

export interface BlobCache {
  get(name: string): Buffer | undefined
  load(name: string, loader: () => Promise<Buffer>): Promise<Buffer>
  sizeBytes(): number
}

export function createBlobCache(maxBytes: number): BlobCache {
  const buffers = new LRUCache<string, Buffer>({
    maxSize: maxBytes,
    maxEntrySize: MAX_ENTRY_BYTES,
    sizeCalculation: (buffer, name) => buffer.length + 2 * name.length + ENTRY_OVERHEAD_BYTES,
  })
  const loading = new Map<string, Promise<Buffer>>()
  const start = async (name: string, loader: () => Promise<Buffer>): Promise<Buffer> => {
    try {
      const buffer = await loader()
      buffers.set(name, buffer)
      return buffer
    } finally {
      loading.delete(name)
    }
  }
  return {
    get: (name) => buffers.get(name),
    load(name, loader) {
      let pending = loading.get(name)
      if (pending === undefined) loading.set(name, (pending = start(name, loader)))
      return pending
    },
    sizeBytes: () => buffers.calculatedSize,
  }
}

/** A blob's bytes, from memory where they are there. Its record says how long it is: bytes that belie it are as good as missing. */
export function bytesOfRecord(
  { blobs, cache }: { blobs: Pick<BlobStore, 'read'>; cache: BlobCache },
  { hash, size }: { readonly hash: string; readonly size: number },
): { bytes(): Buffer | undefined; load(): Promise<Buffer> } {
  return {
    bytes() {
      const kept = cache.get(hash)
      return kept?.length === size ? kept : undefined
    },
    async load() {
      const read = await cache.load(hash, () => blobs.read(hash))
      if (read.length !== size) throw new Error(`a blob has ${read.length} bytes, its record says ${size}`)
      return read
    },
  }
}
