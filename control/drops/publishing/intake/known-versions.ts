/**
 * What control remembers of versions that it has made, so that a publish that changes little looks at little.
 *
 * A version is known when nothing was left to say about it: its names were checked beside each other, every page of it was
 * read, all links lead somewhere, and no other warning was found. A file of a known version that is still there, with all
 * files that were beside it, is as harmless as it was. It is left untouched if nothing about it depends on its neighbours
 * either. All other files of the version are looked at, as those of any upload are.
 */
import { LRUCache } from 'lru-cache'
import { LANDING_PAGES, unservedKindOf } from '../../../../shared/content/upload-kind.ts'
import { secretIn } from '../../../../shared/content/secret-files.ts'
import type { Manifest, ManifestFiles } from '../../../../shared/contracts/manifest.ts'
import { isWorthCompressing, mayHoldKey } from '../analysis/analyse.ts'
import type { EncodedCode } from '../analysis/links.ts'
import type { Readings } from '../analysis/readings.ts'
import { pathProblem } from '../files/paths.ts'
import { isHtmlType, mediaTypeOf } from '../files/types.ts'
import { liesInHashedFolder, holdsOwnHash } from '../manifest/immutable.ts'
import { isRuleFile, type StoredFile } from '../manifest/manifest-builder.ts'

/** As many as manifests are kept. A hash takes some hundred bytes. */
const MOST_KNOWN = 1000

export interface KnownVersions {
  isKnown(manifestHash: string): boolean
  note(manifestHash: string): void
  /** Another manifest of the same content, which was compressed further. */
  carry(from: string, to: string): void
  /** The files of a known version, without those of these names. */
  split(base: Manifest, without: ReadonlySet<string>): SplitVersion
}

export interface SplitVersion {
  /** In the order of the manifest, and its own objects. */
  readonly untouched: ManifestFiles
  /** Lists of the scripts and stylesheets that the untouched pages load, each once. */
  readonly code: ReadonlySet<EncodedCode>
  /** What has to be looked at, as it was uploaded. */
  readonly others: readonly StoredFile[]
}

type Entry = ManifestFiles[number]

/** What is remembered of a file: the code that it loads, or that it is looked at every time. */
type Remembered = { readonly code: EncodedCode | undefined } | 'looked at'

const LOADS_NOTHING: Remembered = { code: undefined }

export function createKnownVersions(readings: Pick<Readings, 'get'>): KnownVersions {
  const known = new LRUCache<string, true>({ max: MOST_KNOWN })
  /** By the very entry, which the versions of a long manifest share. */
  const remembered = new WeakMap<Entry, Remembered>()

  /** Undefined while the page is in no memory: it is looked at now, and asked for again. */
  function remember(entry: Entry): Remembered | undefined {
    const found = isOrdinary(entry) ? readAs(entry, readings) : 'looked at'
    if (found) remembered.set(entry, found)
    return found
  }

  return {
    isKnown: (manifestHash) => known.has(manifestHash),
    note: (manifestHash) => void known.set(manifestHash, true),
    carry(from, to) {
      if (known.has(from)) known.set(to, true)
    },
    split(base, without) {
      const untouched: Entry[] = []
      const code = new Set<EncodedCode>()
      const lookedAt: Entry[] = []
      for (const entry of base.files) {
        const found = remembered.get(entry) ?? remember(entry)
        if (found === undefined || found === 'looked at') lookedAt.push(entry)
        else if (!without.has(entry[0])) {
          untouched.push(entry)
          if (found.code !== undefined) code.add(found.code)
        }
      }
      return { untouched, code, others: filesBut({ ...base, files: lookedAt }, without) }
    },
  }
}

/** What was uploaded as a version, but the files of these names. A document and the page that shows it are one file. */
export function filesBut({ files, unserved }: Manifest, without: ReadonlySet<string>): StoredFile[] {
  const uploaded = new Map<string, StoredFile>()
  const add = (path: string, { hash, size }: Pick<StoredFile, 'hash' | 'size'>): void => {
    if (!without.has(path)) uploaded.set(path, { path, hash, size })
  }
  for (const [path, file] of unserved) add(path, file)
  for (const [path, file] of files) add(file.source?.path ?? path, file.source ?? file)
  return [...uploaded.values()]
}

/** Whether all that is decided about a file by its name, its size and its variants is decided as it was. Pure. */
function isOrdinary([path, file]: Entry): boolean {
  const { hash, size } = file
  const type = mediaTypeOf(path)
  const isNamedByContent = holdsOwnHash({ path, hash }) && !isHtmlType(type)
  return (
    // What the landing page is made of, and what it loads through stylesheets, is found out each time.
    !LANDING_PAGES.includes(path) &&
    type !== 'text/css' &&
    file.source === undefined &&
    unservedKindOf(path) === undefined &&
    pathProblem(path) === undefined &&
    !isRuleFile(path) &&
    secretIn({ path, size, key: 'none' }) === undefined &&
    !liesInHashedFolder(path) &&
    (file.immutable ?? false) === isNamedByContent &&
    (file.encodings !== undefined || !isWorthCompressing(path, size))
  )
}

function readAs([path, { hash, size }]: Entry, readings: Pick<Readings, 'get'>): Remembered | undefined {
  const reading = readings.get({ path, hash })
  if (!reading && mayHoldKey(path, size)) return undefined
  if (secretIn({ path, size, key: reading?.key }) !== undefined) return 'looked at'
  return reading?.code === undefined ? LOADS_NOTHING : { code: reading.code }
}
