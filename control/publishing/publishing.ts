/** Publishing: takes in uploads and makes versions of them. The walk is intake.ts → prepare.ts → manifest-builder.ts. */
import path from 'node:path'
import { LRUCache } from 'lru-cache'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import type { BlobStoreLocation } from '../../shared/blobs/open.ts'
import { decodeManifest, type Manifest } from '../../shared/manifest.ts'
import { collectGarbage } from './collect-garbage.ts'
import type { Publishing } from './contract.ts'
import { exportZip } from './export.ts'
import { checkPath, createIntake } from './intake.ts'
import { prepareVersion } from './prepare.ts'
import { refineVersion } from './refine.ts'
import { createPublishingWorkers } from './workers/workers.ts'

export interface PublishingOptions {
  readonly blobs: BlobStore
  /** The same store, as worker threads open it. */
  readonly blobStore: BlobStoreLocation
  /** For archives while they are read; needs room for a few uploads. */
  readonly scratchDir: string
  readonly markdownTimeoutMs?: number
}

/** A deploy asks for the live manifest twice, and the next deploy again; it never changes, and decoding a large one takes a while. */
const KEPT_MANIFEST_BYTES = 32_000_000

export function createPublishing(options: PublishingOptions): Publishing {
  const { blobs } = options
  const manifests = new LRUCache<string, Manifest>({ maxSize: KEPT_MANIFEST_BYTES })
  async function readManifest(hash: string): Promise<Manifest> {
    const kept = manifests.get(hash)
    if (kept) return kept
    const bytes = await blobs.read(hash)
    const manifest = decodeManifest(bytes)
    manifests.set(hash, manifest, { size: bytes.length })
    return manifest
  }
  const workers = createPublishingWorkers(options)
  return {
    receive: ({ capBytes, base }) =>
      createIntake({
        blobs,
        workers,
        scratchDir: path.resolve(options.scratchDir),
        capBytes,
        prepare: (upload) => prepareVersion({ blobs, workers, readManifest }, upload, base),
      }),
    refine: (manifestHash) => refineVersion({ blobs, workers }, manifestHash),
    checkPath,
    readManifest,
    readBlob: (hash) => blobs.read(hash),
    exportZip: (sites) => exportZip(blobs, sites),
    collectGarbage: (limits) => collectGarbage({ blobs, ...limits }),
    close: () => workers.close(),
  }
}
