/** Manifests made ready for look-ups, by hash. Same life as in blob-cache.ts: immutable, one loader per hash. */
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import { decodeManifest, type Manifest } from '../../shared/manifest.ts'
import type { SiteIndex } from '../context.ts'

/** An indexed file costs about 1 kB: some 100 MB per worker at most. */
const MAX_INDEXED_FILES = 100_000

export interface Sites {
  get(manifestHash: string): SiteIndex | undefined
  /** Throws when the manifest is missing or broken. */
  load(manifestHash: string): Promise<SiteIndex>
}

export function createSites(blobs: Pick<BlobStore, 'read'>, indexManifest: (manifest: Manifest) => SiteIndex): Sites {
  const indexes = new LRUCache<string, SiteIndex>({
    maxSize: MAX_INDEXED_FILES,
    sizeCalculation: (index) => Math.min(index.files.size + 1, MAX_INDEXED_FILES),
  })
  const loading = new Map<string, Promise<SiteIndex>>()
  const start = async (hash: string): Promise<SiteIndex> => {
    try {
      const index = indexManifest(decodeManifest(await blobs.read(hash)))
      indexes.set(hash, index)
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
