/**
 * Compresses what a version serves, after it went live: first everything that has no variants yet, quickly and on all
 * cores that are idle; later everything again, harder. The result is a new manifest with the same content and more or
 * smaller variants; entity tags come from the identity bytes, so no visitor notices but in transfer time. Of a large
 * version the quick pass gives one after the other, so that visitors get what is compressed while the rest is.
 */
import { encodings, type Manifest, type ManifestFile } from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import { isWorthCompressing, type AnalysisRequest } from '../analysis/analyse.ts'
import { inParallel } from '../../../../shared/running/turns.ts'
import { batchesOf } from '../workers/batches.ts'
import { ByContent } from '../manifest/by-content.ts'
import { blobChanges } from '../manifest/blob-changes.ts'
import { differing } from '../manifest/differing.ts'
import { asWritten } from '../manifest/manifest-builder.ts'
import type { Manifests } from '../manifest/manifests.ts'
import type { KnownVersions } from '../intake/known-versions.ts'
import type { Recompressed } from '../contract.ts'
import { isHtmlType, mediaTypeOf } from '../files/types.ts'
import type { AnalyseResult } from '../workers/jobs.ts'
import type { PublishingWorkers } from '../workers/workers.ts'

/** What br 11 gets of one version, smallest files first: about ten seconds of one core at low priority. */
const BEST_BYTES = 8_000_000
/** What the quick pass compresses before it gives a manifest: a second or two of one core. */
const STEP_BYTES = 16_000_000

export interface RefineDependencies {
  readonly manifests: Manifests
  /** What is known of a version holds for the manifest that takes its place. */
  readonly knownVersions: Pick<KnownVersions, 'carry'>
  readonly workers: Pick<PublishingWorkers, 'compress' | 'refine' | 'width'>
}

type Variants = ByContent<ManifestFile['encodings']>
/** Contents whose variants are known. */
type Known = Pick<ByContent<unknown>, 'has'>

/** How a version is compressed: which files, after how many bytes of them visitors get what there is, how many jobs at once, and by whom. */
interface Pass {
  readonly requests: readonly AnalysisRequest[]
  readonly stepBytes: number
  readonly width: number
  work(batch: readonly AnalysisRequest[]): Promise<AnalyseResult>
}

export function compressVersion(
  { manifests, knownVersions, workers }: RefineDependencies,
  manifestHash: string,
  refinedHash: string | null,
): AsyncGenerator<Recompressed> {
  return recompress({ manifests, knownVersions }, manifestHash, refinedHash, (files, known) => ({
    requests: planCompression(files, known),
    stepBytes: STEP_BYTES,
    width: workers.width,
    work: (batch) => workers.compress(batch),
  }))
}

export function refineVersion(
  { manifests, knownVersions, workers }: RefineDependencies,
  manifestHash: string,
  refinedHash: string | null,
): AsyncGenerator<Recompressed> {
  return recompress({ manifests, knownVersions }, manifestHash, refinedHash, (files, known) => ({
    requests: planRefinement(files, known),
    stepBytes: Infinity,
    // One job at a time: this is not urgent, and everything else is.
    width: 1,
    work: (batch) => workers.refine(batch),
  }))
}

async function* recompress(
  { manifests, knownVersions }: Pick<RefineDependencies, 'manifests' | 'knownVersions'>,
  manifestHash: string,
  refinedHash: string | null,
  passOf: (files: Manifest['files'], known: Variants) => Pass,
): AsyncGenerator<Recompressed> {
  const manifest = await manifests.read(manifestHash)
  const former = refinedHash === null ? [] : (await manifests.read(refinedHash)).files
  // What has not changed since is the same object in memory, and as small as it gets.
  const done = new Set(former.map(([, file]) => file))
  const open = manifest.files.filter(([, file]) => !done.has(file))
  const variants = variantsOf(former, open)
  const { requests, stepBytes, width, work } = passOf(open, variants)
  const steps = compressionSteps(requests, stepBytes)
  let given = { hash: manifestHash, manifest }
  for (const [index, step] of steps.entries()) {
    await inParallel(
      batchesOf(step, (request) => request.size),
      width,
      async (batch) => {
        const analyses = await work(batch)
        for (const [request, analysis] of sideBySide(batch, analyses)) {
          // A version from before pages became UTF-8 keeps its bytes, and these variants are of others.
          if (!analysis.converted) variants.set(request, analysis.encodings)
        }
      },
    )
    const refined = withSmallerVariants(given.manifest, variants, done)
    const isWhole = index === steps.length - 1
    if (differing(given.manifest.files, refined.files).length === 0) {
      yield { isWhole, smaller: undefined }
      continue
    }
    const { hash } = await manifests.write(refined)
    knownVersions.carry(manifestHash, hash)
    const next = { hash, manifest: refined }
    const { added, gone } = blobChanges(given, next)
    given = next
    yield { isWhole, smaller: { manifestHash: hash, added, gone } }
  }
}

/** Parts in order, each closed by the file that fills it; one without a file where there is nothing to do. Pure. */
export function compressionSteps<Item extends { readonly size: number }>(
  items: readonly Item[],
  stepBytes: number,
): Item[][] {
  const steps: Item[][] = [[]]
  let bytes = 0
  for (const item of items) {
    if (bytes >= stepBytes) {
      steps.push([])
      bytes = 0
    }
    steps.at(-1)!.push(item)
    bytes += item.size
  }
  return steps
}

/** What a former version knows of contents that these files have. */
function variantsOf(former: Manifest['files'], files: Manifest['files']): Variants {
  const wanted = new Set(files.map(([, { hash }]) => hash))
  const variants: Variants = new ByContent()
  for (const [path, { hash, encodings }] of former) if (wanted.has(hash)) variants.set({ path, hash }, encodings)
  return variants
}

/** What has no variants yet, each content once: pages first, then scripts and styles, then the rest, smallest first. Pure. */
export function planCompression(files: Manifest['files'], known: Known): AnalysisRequest[] {
  return unknownFiles(
    files.filter(([, file]) => file.encodings === undefined),
    known,
  )
    .toSorted((a, b) => urgencyOf(a.path) - urgencyOf(b.path) || a.size - b.size)
    .map((file) => ({ ...file, effort: 'quick' }))
}

/** Low is urgent: a page is waited for before what it loads. */
function urgencyOf(path: string): number {
  const mediaType = mediaTypeOf(path)
  if (isHtmlType(mediaType)) return 0
  return mediaType === 'text/javascript' || mediaType === 'text/css' ? 1 : 2
}

/** Which files to compress harder, each content once, leaving out what is known. Pure. */
export function planRefinement(files: Manifest['files'], known: Known): AnalysisRequest[] {
  let bytes = 0
  return unknownFiles(files, known)
    .toSorted((a, b) => a.size - b.size)
    .map((file) => ({ ...file, effort: (bytes += file.size) <= BEST_BYTES ? 'best' : 'good' }))
}

function unknownFiles(
  files: Manifest['files'],
  known: Known,
): { readonly path: string; readonly hash: string; readonly size: number }[] {
  const unique = new ByContent<{ path: string; hash: string; size: number }>()
  for (const [path, { hash, size }] of files) {
    const file = { path, hash, size }
    if (isWorthCompressing(path, size) && !known.has(file)) unique.set(file, file)
  }
  return unique.values()
}

/** Keeps the smaller of two variants of an encoding; what is done, and what gets no smaller, stays the same object. Pure. */
export function withSmallerVariants(
  manifest: Manifest,
  variants: Pick<Variants, 'get'>,
  done: Pick<Set<ManifestFile>, 'has'> = new Set(),
): Manifest {
  return {
    ...manifest,
    files: manifest.files.map((entry) => {
      const [path, file] = entry
      const found = done.has(file) ? undefined : variants.get({ path, hash: file.hash })
      if (found === undefined || Object.keys(found).length === 0) return entry
      const smaller = smallerOf(file.encodings, found)
      return areSame(file.encodings, smaller) ? entry : [path, asWritten({ ...file, encodings: smaller })]
    }),
  }
}

function areSame(old: ManifestFile['encodings'], smaller: NonNullable<ManifestFile['encodings']>): boolean {
  return encodings.every((encoding) => old?.[encoding]?.hash === smaller[encoding]?.hash)
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
