/**
 * What a manifest keeps of former versions, so that a tab that was opened before a publish finds its chunks. Pure.
 *
 * 1. A file stays that a former version had, that is no page, that is no secret by its name, and whose path the live version
 *    neither has nor was refused.
 * 2. It stays until `keepMs` after it was replaced, and at least as long as its version is retained.
 * 3. There are bounds: what was replaced first goes first; of one publish, the largest files do.
 *
 * The edge looks here when the live version has nothing at a path: see edge/locate/locate.ts.
 */
import { secretIn } from '../../../../shared/content/secret-files.ts'
import { compileHeaders } from '../../../../shared/content/header-sets.ts'
import { isPage, type KeptFiles, type Manifest, type ManifestFile } from '../../../../shared/contracts/manifest.ts'
import type { Withheld } from '../contract.ts'
import { storable } from '../html/text.ts'
import { toNfc } from '../../../../shared/values/nfc.ts'
import { differing } from './differing.ts'

/**
 * An edge reads a manifest whole and holds four times its size in memory: ten thousand entries are some 4 MB of it, half
 * of what the largest upload has. Fifty publishes a day that each replace 500 chunks fill it within ten hours.
 */
export const MAX_KEPT_FILES = 10_000
/** Two of the largest uploads. A plan with less storage left keeps less. */
export const MAX_KEPT_BYTES = 1_000_000_000

export interface KeptBounds {
  readonly files: number
  readonly bytes: number
  /** Bytes of files whose version is not retained: those of retained ones are stored anyway. */
  readonly roomBytes: number
}

/** Which former files may stay. */
export interface KeepTerms {
  readonly now: number
  /** 0: nothing stays, whatever is retained. */
  readonly keepMs: number
  /** The owner wants everything older gone. */
  readonly purge?: boolean
  readonly bounds: KeptBounds
  /** Whether a version can still be gone back to. */
  isRetained(versionNumber: number): boolean
  /** What this publish was not allowed to bring: secrets, which a former version may have had. */
  readonly withheld?: Withheld
}

/**
 * One version remembers so many paths that it withheld, and so many contents, of which a document has two: its own, and
 * that of the page that was made of it. One that withheld more of either keeps nothing when it is promoted.
 */
export const MAX_WITHHELD_REMEMBERED = 1000

/**
 * withheldToRemember is what a version has to remember of what it withheld: the files that are no secrets by their name,
 * which is never kept, but were by their content. One more than the bound says that there were others.
 */
export function withheldToRemember({ paths, contents }: Withheld): { paths: string[]; contents: string[] } {
  const isNamed = (path: string): boolean => secretIn({ path, size: Infinity, key: 'none' }) !== undefined
  const most = MAX_WITHHELD_REMEMBERED + 1
  const remembered = paths.filter((path) => !isNamed(path)).slice(0, most)
  return { paths: remembered.map(storable), contents: contents.slice(0, most) }
}

/** Did a version withhold more than it remembers? */
export function hasForgotten({ paths, contents }: Withheld): boolean {
  return Math.max(paths.length, contents.length) > MAX_WITHHELD_REMEMBERED
}

/** The version that is replaced; `manifest` is its own, without what it kept. */
export interface FormerVersion {
  readonly number: number
  readonly manifest: Manifest
}

type KeptEntry = KeptFiles['files'][number]

/** What `next` keeps: of the version that it replaces, and of what that one kept. Undefined: nothing. */
export function keepFormer(
  next: Manifest,
  former: FormerVersion | undefined,
  kept: KeptFiles | undefined,
  terms: KeepTerms,
): KeptFiles | undefined {
  if (terms.purge || terms.keepMs <= 0) return undefined
  const sets = createHeaderLists()
  const files = withinBounds(stillWanted(candidatesOf(former, kept, terms.now, sets), next, terms), next, terms)
  return files.length === 0 ? undefined : compacted({ files, headers: sets.lists })
}

/** From the newest on: what the version that is replaced had, then what it kept. */
function* candidatesOf(
  former: FormerVersion | undefined,
  kept: KeptFiles | undefined,
  now: number,
  sets: HeaderLists,
): Generator<KeptEntry> {
  if (former) yield* entriesOf(former, now, sets)
  if (kept) for (const entry of kept.files) yield withOwnSet(entry, kept.headers, sets)
}

/** What is kept, for people: how many files, how many bytes, and until when the newest of them stays. */
export interface KeptSummary {
  readonly files: number
  readonly bytes: number
  readonly until: number | null
}

export const NOTHING_KEPT: KeptSummary = { files: 0, bytes: 0, until: null }

export function summaryOf(kept: KeptFiles | undefined, keepMs: number): KeptSummary {
  if (!kept) return NOTHING_KEPT
  const bytes = kept.files.reduce((sum, [, { file }]) => sum + file.size, 0)
  return { files: kept.files.length, bytes, until: Math.max(...kept.files.map(([, { since }]) => since)) + keepMs }
}

/** When the first file is due to go; null while each belongs to a version that is retained. */
export function nextEndOf(
  kept: KeptFiles | undefined,
  { keepMs, isRetained }: Pick<KeepTerms, 'keepMs' | 'isRetained'>,
): number | null {
  let first: number | null = null
  for (const [, { since, version }] of kept?.files ?? [])
    if (!isRetained(version) && (first === null || since + keepMs < first)) first = since + keepMs
  return first
}

/** Every blob that kept files need, with the bytes that it counts for in storage: variants count nothing, as everywhere. */
export function keptBlobSizes(kept: KeptFiles | undefined): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const [, { file }] of kept?.files ?? []) {
    for (const variant of Object.values(file.encodings ?? {}))
      if (variant && !sizes.has(variant.hash)) sizes.set(variant.hash, 0)
    sizes.set(file.hash, file.size)
  }
  return sizes
}

/** Code whose name stays when its content changes: a tab of the former version gets the new file. */
export function changedUnhashed(next: Manifest, former: Manifest | undefined): string[] {
  if (!former) return []
  return differing(former.files, next.files).flatMap(({ path, before, after }) => {
    const isChanged = before !== undefined && after !== undefined && before.hash !== after.hash
    return isChanged && !after.immutable && isCode(after) ? [path] : []
  })
}

const CODE = /^(?:text\/javascript|text\/css|application\/wasm)\b/

function isCode({ type }: ManifestFile): boolean {
  return CODE.test(type)
}

const PAGE_TYPE = /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i

interface HeaderLists {
  readonly lists: KeptFiles['headers']
  /** The place of this list; undefined for an empty one. */
  placeOf(list: KeptFiles['headers'][number]): number | undefined
}

function createHeaderLists(): HeaderLists {
  const lists: KeptFiles['headers'] = []
  const places = new Map<string, number>()
  return {
    lists,
    placeOf(list) {
      if (list.length === 0) return undefined
      const key = JSON.stringify(list)
      let place = places.get(key)
      if (place === undefined) {
        places.set(key, (place = lists.length))
        lists.push(list)
      }
      return place
    },
  }
}

/** The files of a version that may stay: everything but its pages, smallest first. */
function entriesOf({ number, manifest }: FormerVersion, since: number, sets: HeaderLists): KeptEntry[] {
  const headers = compileHeaders(manifest.headers)
  return manifest.files
    .filter(([, file]) => !isPage(file) && !PAGE_TYPE.test(file.type))
    .toSorted(([a, one], [b, other]) => one.size - other.size || (a < b ? -1 : 1))
    .flatMap(([path, file]): KeptEntry[] => {
      const list = headersFor(headers, path)
      if (list.some(([name, value]) => name === 'content-type' && value !== null && PAGE_TYPE.test(value))) return []
      const place = sets.placeOf(list.map(([name, value]) => [name, value]))
      const { source: _source, injection: _injection, ...served } = file
      return [[path, { file: served, since, version: number, ...(place !== undefined && { headers: place }) }]]
    })
}

/** A set that no client would take was an error at its own version, too. */
function headersFor(
  headers: ReturnType<typeof compileHeaders>,
  path: string,
): readonly (readonly [string, string | null])[] {
  try {
    return headers.for(`/${path}`).list
  } catch {
    return []
  }
}

function withOwnSet([path, entry]: KeptEntry, lists: KeptFiles['headers'], sets: HeaderLists): KeptEntry {
  if (entry.headers === undefined) return [path, entry]
  const { headers, ...rest } = entry
  const place = sets.placeOf(lists[headers] ?? [])
  return [path, place === undefined ? rest : { ...rest, headers: place }]
}

/**
 * Without what the live version has, what is over, what a newer version had under the same name, and secrets: a publisher
 * who allowed one in a former version has not said so of this one, and no open tab asks for it.
 */
function* stillWanted(
  entries: Iterable<KeptEntry>,
  next: Manifest,
  { now, keepMs, isRetained, withheld = { paths: [], contents: [] } }: KeepTerms,
): Generator<KeptEntry> {
  const taken = new Set([...next.files.map(([path]) => path), ...withheld.paths].map(toNfc))
  const secrets = new Set(withheld.contents)
  for (const entry of entries) {
    const [path, { since, version, file }] = entry
    const name = toNfc(path)
    if (taken.has(name) || (since + keepMs <= now && !isRetained(version))) continue
    if (secrets.has(file.hash) || secretIn({ path, size: file.size, key: 'none' }) !== undefined) continue
    taken.add(name)
    yield entry
  }
}

/** As many as there is room for; nothing behind is looked at. Bytes that the live version has too take no room. */
function withinBounds(
  entries: Iterable<KeptEntry>,
  next: Manifest,
  { bounds, isRetained }: Pick<KeepTerms, 'bounds' | 'isRetained'>,
): KeptEntry[] {
  const seen = new Set(next.files.map(([, file]) => file.hash))
  const within: KeptEntry[] = []
  let bytes = 0
  let unretainedBytes = 0
  for (const entry of entries) {
    const { file, version } = entry[1]
    if (!seen.has(file.hash)) {
      bytes += file.size
      if (!isRetained(version)) unretainedBytes += file.size
    }
    if (within.length === bounds.files || bytes > bounds.bytes || unretainedBytes > bounds.roomBytes) break
    seen.add(file.hash)
    within.push(entry)
  }
  return within
}

/** Only the lists that a file still refers to. */
function compacted({ files, headers }: KeptFiles): KeptFiles {
  const sets = createHeaderLists()
  return { files: files.map((entry) => withOwnSet(entry, headers, sets)), headers: sets.lists }
}
