/** Reads and writes manifests. One never changes, and checking a large one takes a while: those in use are kept. */
import { LRUCache } from 'lru-cache'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { decodeManifest, encodeManifest, type Manifest } from '../../../../shared/contracts/manifest.ts'

/** The manifests of the sites that are being worked on, by their encoded size. */
const KEPT_BYTES = 32_000_000

export interface Manifests {
  read(hash: string): Promise<Manifest>
  write(manifest: Manifest): Promise<StoredBlob>
}

export function createManifests(blobs: Pick<BlobStore, 'read' | 'put'>): Manifests {
  const kept = new LRUCache<string, Manifest>({ maxSize: KEPT_BYTES })
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
      const bytes = encodeManifest(manifest)
      const stored = await blobs.put(bytes)
      kept.set(stored.hash, manifest, { size: bytes.length })
      return stored
    },
  }
}
