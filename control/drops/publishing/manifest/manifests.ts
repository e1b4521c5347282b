/** Reads and writes manifests. One never changes, and checking a large one takes a while: those in use are kept. */
import { setImmediate } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { decodeManifest, encodeManifest, manifestParts, type Manifest } from '../../../../shared/contracts/manifest.ts'

/** The manifests of the sites that are being worked on, by their encoded size. */
const KEPT_BYTES = 32_000_000
/** A manifest in memory takes a kilobyte beside its texts: tens of thousands of pages alone would be more than all sites. */
const MOST_KEPT = 1000

/** A version of more files is prepared and its manifest written step by step, so that others have their turn in between. */
export const LONG_FILES = 2000

export interface Manifests {
  read(hash: string): Promise<Manifest>
  write(manifest: Manifest): Promise<StoredBlob>
}

export function createManifests(blobs: Pick<BlobStore, 'read' | 'put' | 'writer'>): Manifests {
  const kept = new LRUCache<string, Manifest>({ max: MOST_KEPT, maxSize: KEPT_BYTES })
  return {
    async read(hash) {
      const known = kept.get(hash)
      if (known) return known
      const bytes = await blobs.read(hash)
      const manifest = decodeManifest(bytes)
      kept.set(hash, manifest, { size: bytes.length })
      return manifest
    },
    async write(manifest) {
      const isLong = manifest.files.length > LONG_FILES
      const stored = await (isLong ? writeInParts(blobs, manifest) : blobs.put(encodeManifest(manifest)))
      kept.set(stored.hash, manifest, { size: stored.size })
      return stored
    },
  }
}

async function writeInParts(blobs: Pick<BlobStore, 'writer'>, manifest: Manifest): Promise<StoredBlob> {
  const writer = await blobs.writer()
  try {
    for (const part of manifestParts(manifest)) {
      await writer.write(part)
      await setImmediate()
    }
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}
