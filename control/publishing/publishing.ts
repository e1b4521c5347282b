/** Publishing: takes in uploads and makes versions of them. The walk is intake.ts → prepare.ts → manifest-builder.ts. */
import path from 'node:path'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import type { BlobStoreLocation } from '../../shared/blobs/open.ts'
import { collectGarbage } from './collect-garbage.ts'
import type { Publishing } from './contract.ts'
import { exportZip } from './export.ts'
import { checkPath, createIntake } from './intake.ts'
import { createManifests } from './manifests.ts'
import { prepareVersion } from './prepare.ts'
import { createReadings } from './readings.ts'
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

export function createPublishing(options: PublishingOptions): Publishing {
  const { blobs } = options
  const scratchDir = path.resolve(options.scratchDir)
  const manifests = createManifests(blobs)
  const readings = createReadings()
  const workers = createPublishingWorkers(options)
  return {
    receive: ({ capBytes, base }) =>
      createIntake({
        blobs,
        workers,
        scratchDir,
        capBytes,
        prepare: (upload) => prepareVersion({ blobs, workers, manifests, readings }, upload, base),
      }),
    refine: (manifestHash, refinedHash) => refineVersion({ manifests, workers }, manifestHash, refinedHash),
    checkPath,
    readManifest: manifests.read,
    readBlob: (hash) => blobs.read(hash),
    exportZip: (sites) => exportZip(blobs, sites),
    collectGarbage: (limits) => collectGarbage({ blobs, scratchDir, ...limits }),
    close: () => workers.close(),
  }
}
