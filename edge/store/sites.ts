/** Manifests made ready for look-ups, by hash. Same life as in blob-cache.ts: immutable, one loader per hash. */
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import { decodeManifest, type Manifest } from '../../shared/contracts/manifest.ts'
import type { SiteIndex } from '../context.ts'

/** What all indexes of a worker may hold. */
const MAX_INDEX_BYTES = 100_000_000
/** An index holds everything that its manifest says, files and rules alike: in memory it is some four times as large. */
const BYTES_PER_MANIFEST_BYTE = 4
const INDEX_OVERHEAD_BYTES = 4000

export interface Sites {
  get(manifestHash: string): SiteIndex | undefined
  /** Throws when the manifest is missing or broken. */
  load(manifestHash: string): Promise<SiteIndex>
}

export function createSites(blobs: Pick<BlobStore, 'read'>, indexManifest: (manifest: Manifest) => SiteIndex): Sites {
  const indexes = new LRUCache<string, SiteIndex>({ maxSize: MAX_INDEX_BYTES })
  const loading = new Map<string, Promise<SiteIndex>>()
  const start = async (hash: string): Promise<SiteIndex> => {
    try {
      const bytes = await blobs.read(hash)
      const index = indexManifest(decodeManifest(bytes))
      const size = INDEX_OVERHEAD_BYTES + BYTES_PER_MANIFEST_BYTE * bytes.length
      // One that is larger than all of them may be is kept alone.
      indexes.set(hash, index, { size: Math.min(size, MAX_INDEX_BYTES) })
      return index
    } finally {
      loading.delete(hash)
    }
  }
  return {
    get: (hash) => indexes.get(hash),
    load(hash) {
      let pending = loading.get(hash)
      if (pending === undefined) loading.set(hash, (pending = start(hash)))
      return pending
    },
  }
}
