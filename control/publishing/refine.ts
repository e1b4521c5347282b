/**
 * Compresses harder what a version serves, after it went live. The result is a new manifest with the same content and
 * smaller variants; entity tags come from the identity bytes, so no visitor notices but in transfer time.
 */
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import { decodeManifest, encodeManifest, encodings, type Manifest, type ManifestFile } from '../../shared/manifest.ts'
import { isWorthReading, type AnalysisRequest } from './analyse.ts'
import { batchesOf, inParallel } from './batches.ts'
import { blobsOf, factsKey } from './manifest-builder.ts'
import type { PublishingWorkers } from './workers/workers.ts'

/** What br 11 gets of one version, smallest files first: about ten seconds of one core at low priority. */
const BEST_BYTES = 8_000_000

export interface RefineDeps {
  readonly blobs: BlobStore
  readonly workers: Pick<PublishingWorkers, 'refine'>
}

export async function refineVersion(
  { blobs, workers }: RefineDeps,
  manifestHash: string,
): Promise<{ manifestHash: string; blobs: readonly string[] } | undefined> {
  const manifest = decodeManifest(await blobs.read(manifestHash))
  const variants = new Map<string, ManifestFile['encodings']>()
  // One job at a time: this is not urgent, and everything else is.
  await inParallel(
    batchesOf(planRefinement(manifest), (request) => request.size),
    1,
    async (batch) => {
      const analyses = await workers.refine(batch)
      for (const [index, analysis] of analyses.entries()) variants.set(factsKey(batch[index]!), analysis.encodings)
    },
  )
  const refined = withSmallerVariants(manifest, variants)
  const stored = await blobs.put(encodeManifest(refined))
  if (stored.hash === manifestHash) return undefined
  return { manifestHash: stored.hash, blobs: [...new Set([...blobsOf(refined), stored.hash])] }
}

/** Pure. */
export function planRefinement(manifest: Manifest): AnalysisRequest[] {
  const files = new Map(
    manifest.files.map(([path, file]) => [
      factsKey({ path, hash: file.hash }),
      { path, hash: file.hash, size: file.size },
    ]),
  )
  let bytes = 0
  return [...files.values()]
    .filter((file) => isWorthReading(file.path, file.size))
    .toSorted((a, b) => a.size - b.size)
    .map((file) => ({ ...file, effort: (bytes += file.size) <= BEST_BYTES ? 'best' : 'good' }))
}

/** Keeps the smaller of two variants of an encoding. Pure. */
export function withSmallerVariants(
  manifest: Manifest,
  variants: ReadonlyMap<string, ManifestFile['encodings']>,
): Manifest {
  return {
    ...manifest,
    files: manifest.files.map(([path, file]) => {
      const merged = smallerOf(file.encodings, variants.get(factsKey({ path, hash: file.hash })))
      return [path, Object.keys(merged).length === 0 ? file : { ...file, encodings: merged }]
    }),
  }
}

function smallerOf(
  old: ManifestFile['encodings'],
  found: ManifestFile['encodings'],
): NonNullable<ManifestFile['encodings']> {
  const merged: NonNullable<ManifestFile['encodings']> = {}
  for (const encoding of encodings) {
    const candidates = [old?.[encoding], found?.[encoding]].filter((variant) => variant !== undefined)
    const best = candidates.toSorted((a, b) => a.size - b.size)[0]
    if (best) merged[encoding] = best
  }
  return merged
}
