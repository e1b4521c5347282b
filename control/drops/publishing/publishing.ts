/** Publishing: takes in uploads and makes versions of them. The walk is in intake/ and ends in manifest/. */
import path from 'node:path'
import type { BlobStore } from '../../../shared/blobs/blob-store.ts'
import type { BlobStoreLocation } from '../../../shared/blobs/open.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import { currentCall } from '../../ground/database/call.ts'
import { collectGarbage } from './storage/collect-garbage.ts'
import type { Publishing, UploadOwner } from './contract.ts'
import { exportZip } from './storage/export.ts'
import { checkPaths, createIntake } from './intake/intake.ts'
import { createManifests } from './manifest/manifests.ts'
import { createKnownVersions } from './intake/known-versions.ts'
import { prepareVersion } from './intake/prepare.ts'
import { digestOf, planWords } from './analysis/page-words.ts'
import { createReadings } from './analysis/readings.ts'
import { compressVersion, refineVersion } from './storage/refine.ts'
import { createStoring } from './storage/storing.ts'
import { createPublishingWorkers } from './workers/workers.ts'

export interface PublishingOptions {
  readonly blobs: BlobStore
  /** The same store, as worker threads open it. */
  readonly blobStore: BlobStoreLocation
  /** For archives while they are read; needs room for a few uploads. */
  readonly scratchDir: string
  readonly markdownTimeoutMs?: number
  /** Called once per upload of an organisation, before its first byte is taken; throws to refuse it. */
  admitUpload?(orgId: string): Promise<void>
}

export function createPublishing(options: PublishingOptions): Publishing {
  const storing = createStoring(options.blobs, options.blobStore)
  const { blobs } = storing
  const scratchDir = path.resolve(options.scratchDir)
  const manifests = createManifests(blobs)
  const readings = createReadings()
  const knownVersions = createKnownVersions(readings)
  const threads = createPublishingWorkers(options)
  return {
    receive({ owner, capBytes, maxFiles, base }) {
      const workers = threads.forUpload(shareOf(owner), currentCall()?.leaving?.())
      const store = storing.forUpload()
      return createIntake({
        store,
        workers,
        scratchDir,
        capBytes,
        maxFiles,
        takes: owner.kind === 'network' ? 'page' : 'anything',
        admit: async () => {
          if (owner.kind === 'organisation') await options.admitUpload?.(owner.id)
        },
        prepare: (upload) =>
          prepareVersion(
            { blobs: store.blobs, atHand: store.atHand, workers, manifests, readings, knownVersions },
            upload,
            base,
          ),
      })
    },
    async renderMarkdown(owner, { filename, text }) {
      const workers = threads.forUpload(shareOf(owner), currentCall()?.leaving?.())
      return (await workers.renderMarkdown({ source: text, filename })).html
    },
    compress: (manifestHash, refinedHash) =>
      compressVersion({ manifests, knownVersions, workers: threads }, manifestHash, refinedHash),
    refine: (manifestHash, refinedHash) =>
      refineVersion({ manifests, knownVersions, workers: threads }, manifestHash, refinedHash),
    checkPaths,
    hasChecked: knownVersions.isKnown,
    readManifest: manifests.read,
    writeManifest: manifests.write,
    readBlob: (hash) => blobs.read(hash),
    atHand: storing.atHand,
    compareTexts: (orgId, pairs) => threads.compare(orgId, pairs),
    placeAnchors: (orgId, requests) => threads.place(orgId, requests),
    findAnchor: (orgId, anchor, file) => threads.find(orgId, anchor, file),
    changedPassages: (orgId, before, after) => threads.passages(orgId, before, after),
    async searchedTexts(manifestHash) {
      const pages = planWords(await manifests.read(manifestHash))
      return { digest: digestOf(pages), readWords: () => threads.words(pages) }
    },
    drawCard: (orgId, text) => threads.card(orgId, text),
    exportZip: (sites) => exportZip(blobs, sites),
    collectGarbage: (limits) => collectGarbage({ blobs, scratchDir, ...limits }),
    close: async () => void (await Promise.all([threads.close(), storing.close()])),
  }
}

/** Who shares the threads with whom. */
function shareOf(owner: UploadOwner): string {
  return owner.kind === 'organisation' ? owner.id : limitKeyOfIp(owner.ip)
}
