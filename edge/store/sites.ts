/** Manifests made ready for look-ups, by hash. Same life as in blob-cache.ts: immutable, one loader per hash. */
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import {
  createManifestReader,
  isOfLong,
  type ManifestPart,
  type ReadManifest,
} from '../../shared/content/manifest-reader.ts'
import type { Manifest, ManifestFiles } from '../../shared/contracts/manifest.ts'
import type { FilesIndex, SiteIndex } from '../context.ts'

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

interface Kept {
  readonly index: SiteIndex
  readonly parts: readonly ManifestPart<FilesIndex>[]
}

/** How an index is made: of each part of its files first, so that the next version shares what it has not changed. */
export interface Indexing {
  indexFiles(files: ManifestFiles): FilesIndex
  indexSite(manifest: Manifest, parts: readonly FilesIndex[]): SiteIndex
}

export function createSites(blobs: Pick<BlobStore, 'read'>, { indexFiles, indexSite }: Indexing): Sites {
  const reader = createManifestReader(blobs, indexFiles)
  const kept = new LRUCache<string, Kept>({
    maxSize: MAX_INDEX_BYTES,
    dispose: ({ parts }) => reader.release(parts),
  })
  const loading = new Map<string, Promise<SiteIndex>>()
  /** What its index is made of is held as long as the index is kept, and not at all where there is none. */
  function keep(hash: string, { rest, parts, size }: ReadManifest<FilesIndex>): SiteIndex {
    const held = reader.hold(parts)
    try {
      const index = indexSite(
        rest,
        held.map(({ read }) => read),
      )
      const textBytes = held.reduce((sum, { text }) => sum + (text?.length ?? 0), 0)
      const bytes = INDEX_OVERHEAD_BYTES + BYTES_PER_MANIFEST_BYTE * size + textBytes
      // One that is larger than all of them may be is kept alone.
      kept.set(hash, { index, parts: held.filter(isOfLong) }, { size: Math.min(bytes, MAX_INDEX_BYTES) })
      return index
    } catch (error) {
      reader.release(held)
      throw error
    }
  }

  async function start(hash: string): Promise<SiteIndex> {
    try {
      return keep(hash, await reader.read(hash))
    } finally {
      loading.delete(hash)
    }
  }

  return {
    get: (hash) => kept.get(hash)?.index,
    load(hash) {
      let pending = loading.get(hash)
      if (pending === undefined) loading.set(hash, (pending = start(hash)))
      return pending
    },
  }
}
