/** Files and rules → manifest. Pure: the same upload always gives the same manifest, byte for byte. */
import {
  MANIFEST_FORMAT,
  type HeaderRule,
  type Manifest,
  type ManifestFile,
  type ManifestFiles,
  type RedirectRule,
} from '../../../../shared/contracts/manifest.ts'
import { contentTypeOf, isHtmlType, mediaTypeOf, servedTypeOf } from '../files/types.ts'
import { isHostFile } from './other-hosts/host-file.ts'
import { immutablePaths, NOTHING_LOADED, type LoadedCode } from './immutable.ts'

/** Rule files at the root of an upload: they steer the edge and are not served. Nor are those of other hosts. */
const RULE_FILES: readonly string[] = ['_redirects', '_headers']

export interface StoredFile {
  readonly path: string
  readonly hash: string
  readonly size: number
  /** What was uploaded in its place (Markdown, a page in UTF-16). */
  readonly source?: ManifestFile['source']
  /** What the live version says of it: the same bytes under the same name. Nothing about it is found out again. */
  readonly live?: ManifestFile
}

/** What the bytes of a file say, found once at publish time. */
export interface FileFacts {
  /** `utf-8`, or null when the bytes are, or call themselves, something else. */
  readonly charset: 'utf-8' | null
  readonly injection?: ManifestFile['injection']
  readonly encodings?: ManifestFile['encodings']
}

export interface ManifestInput {
  readonly files: readonly StoredFile[]
  /** Others, in their order, that are as they were in the version before, and in no folder of hashed names. */
  readonly untouched?: ManifestFiles | undefined
  readonly factsOf: FactsOf
  readonly redirects: readonly RedirectRule[]
  readonly headers: readonly HeaderRule[]
  /** What the pages load, as far as it is known. */
  readonly loaded?: LoadedCode
}

/** What is known of the bytes of a file under its name. */
export type FactsOf = (file: Pick<StoredFile, 'path' | 'hash'>) => FileFacts | undefined

export function buildManifest(input: ManifestInput): Manifest {
  const sorted = input.files.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const rules = new Set(sorted.filter((file) => isRuleFile(file.path)))
  const served = rules.size === 0 ? sorted : sorted.filter((file) => !rules.has(file))
  const immutable = immutablePaths(served, input.loaded ?? NOTHING_LOADED)
  return {
    v: MANIFEST_FORMAT,
    files: inOrder(
      served.map((file) => [
        file.path,
        withImmutable(file.live ?? manifestFile(file, input.factsOf(file)), immutable.has(file.path)),
      ]),
      input.untouched ?? [],
    ),
    redirects: [...input.redirects],
    headers: [...input.headers],
    unserved: Array.from(rules, ({ path, hash, size }) => [path, { hash, size }]),
  }
}

/** Two sorted lists as one. */
function inOrder(some: ManifestFiles, others: ManifestFiles): ManifestFiles {
  if (others.length === 0) return some
  const all: ManifestFiles = []
  let place = 0
  for (const entry of some) {
    for (let other = others[place]; other !== undefined && other[0] < entry[0]; other = others[(place += 1)])
      all.push(other)
    all.push(entry)
  }
  return all.concat(others.slice(place))
}

/** The same file; whether browsers may keep it is decided anew for each version, since it depends on the names beside it. */
function withImmutable(file: ManifestFile, isImmutable: boolean): ManifestFile {
  return (file.immutable ?? false) === isImmutable ? file : asWritten({ ...file, immutable: isImmutable })
}

/** The same file, its fields in the order in which they are always written. */
export function asWritten(file: ManifestFile): ManifestFile {
  const { hash, size, type, immutable, encodings, injection, source } = file
  return {
    hash,
    size,
    type,
    ...(immutable && { immutable: true }),
    ...(encodings && { encodings }),
    ...(injection && { injection }),
    ...(source && { source }),
  }
}

function manifestFile(file: StoredFile, known: FileFacts | undefined): ManifestFile {
  const mediaType = mediaTypeOf(file.path)
  return {
    hash: file.hash,
    size: file.size,
    type: contentTypeOf(servedTypeOf(mediaType, file.path, known?.charset ?? null), known?.charset ?? null),
    ...(known?.encodings && Object.keys(known.encodings).length > 0 && { encodings: known.encodings }),
    ...(isHtmlType(mediaType) && known?.injection && { injection: known.injection }),
    ...(file.source && { source: file.source }),
  }
}

export function isRuleFile(path: string): boolean {
  return RULE_FILES.includes(path) || isHostFile(path)
}

/** Every blob that a version needs, by hash: bytes, variants, sources and rule files (the manifest itself aside). */
export function blobSizesOf(manifest: Manifest): Map<string, number> {
  const sizes = new Map<string, number>()
  const add = ({ hash, size }: { hash: string; size: number }): unknown => sizes.set(hash, size)
  for (const [, file] of manifest.files) eachBlob(file, add)
  for (const [, file] of manifest.unserved) add(file)
  return sizes
}

/** Bytes, variants and source of a file. */
export function eachBlob(
  file: ManifestFile,
  take: (blob: { readonly hash: string; readonly size: number }) => unknown,
): void {
  take(file)
  if (file.source) take(file.source)
  if (file.encodings) for (const variant of Object.values(file.encodings)) if (variant) take(variant)
}
