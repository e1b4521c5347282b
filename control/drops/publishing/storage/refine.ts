/**
 * Compresses harder what a version serves, after it went live. The result is a new manifest with the same content and
 * smaller variants; entity tags come from the identity bytes, so no visitor notices but in transfer time.
 */
import { encodings, type Manifest, type ManifestFile } from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import { isWorthReading, type AnalysisRequest } from '../analysis/analyse.ts'
import { inParallel } from '../../../../shared/running/turns.ts'
import { batchesOf } from '../workers/batches.ts'
import { blobsOf, factsKey } from '../manifest/manifest-builder.ts'
import type { Manifests } from '../manifest/manifests.ts'
import type { PublishingWorkers } from '../workers/workers.ts'

/** What br 11 gets of one version, smallest files first: about ten seconds of one core at low priority. */
const BEST_BYTES = 8_000_000

export interface RefineDependencies {
  readonly manifests: Manifests
  readonly workers: Pick<PublishingWorkers, 'refine'>
}

type Variants = Map<string, ManifestFile['encodings']>

export async function refineVersion(
  { manifests, workers }: RefineDependencies,
  manifestHash: string,
  refinedHash: string | null,
): Promise<{ manifestHash: string; blobs: readonly string[] } | undefined> {
  const manifest = await manifests.read(manifestHash)
  const variants = variantsOf(refinedHash === null ? undefined : await manifests.read(refinedHash))
  // One job at a time: this is not urgent, and everything else is.
  await inParallel(
    batchesOf(planRefinement(manifest, variants), (request) => request.size),
    1,
    async (batch) => {
      const analyses = await workers.refine(batch)
      for (const [request, analysis] of sideBySide(batch, analyses)) {
        // A version from before pages became UTF-8 keeps its bytes, and these variants are of others.
        if (!analysis.converted) variants.set(factsKey(request), analysis.encodings)
      }
    },
  )
  const refined = withSmallerVariants(manifest, variants)
  const stored = await manifests.write(refined)
  if (stored.hash === manifestHash) return undefined
  return { manifestHash: stored.hash, blobs: [...new Set([...blobsOf(refined), stored.hash])] }
}

function variantsOf(manifest: Manifest | undefined): Variants {
  return new Map(manifest?.files.map(([path, file]) => [factsKey({ path, hash: file.hash }), file.encodings]))
}

/** Which files to compress, each content once, leaving out what is known. Pure. */
export function planRefinement(manifest: Manifest, known: ReadonlyMap<string, unknown>): AnalysisRequest[] {
  const files = new Map(
    manifest.files.map(([path, file]) => [
      factsKey({ path, hash: file.hash }),
      { path, hash: file.hash, size: file.size },
    ]),
  )
  let bytes = 0
  return [...files]
    .filter(([key, file]) => !known.has(key) && isWorthReading(file.path, file.size))
    .map(([, file]) => file)
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
