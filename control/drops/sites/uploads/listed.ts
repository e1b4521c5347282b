/** What a list of files changes of the live version. Pure; linear in the list. */
import { errors } from '../../../../shared/contracts/errors.ts'
import { unservedKindOf } from '../../../../shared/content/upload-kind.ts'
import type { UploadedFile } from '../versions/uploaded-files.ts'
import type { StartUpload } from '../schemas.ts'

type ListedFile = StartUpload['files'][number]
/** What a version was made of, by path. */
export type Uploaded = ReadonlyMap<string, UploadedFile>

export interface ListChanges {
  /** Files that the version has not, or not so, in the order of the list. */
  readonly changed: readonly ListedFile[]
  /** Names of the version that are not in the list. */
  readonly removed: readonly string[]
  /** A name that the version has not, or one that is there twice: names must be checked beside each other. */
  readonly hasOtherNames: boolean
}

export function changesOf(live: Uploaded, files: readonly ListedFile[]): ListChanges {
  const changed: ListedFile[] = []
  const seen = new Set<UploadedFile>()
  for (const file of files) {
    const known = live.get(file.path)
    if (known !== undefined) seen.add(known)
    if (known?.hash !== file.sha256 || known.size !== file.size) changed.push(file)
  }
  const isWhole = seen.size === live.size
  const removed = isWhole ? [] : Array.from(live).flatMap(([path, file]) => (seen.has(file) ? [] : [path]))
  return { changed, removed, hasOtherNames: seen.size !== files.length }
}

/** Names of the version whose files do not stay as they are. */
export function replacedBy(live: Uploaded, { changed, removed }: ListChanges): ReadonlySet<string> {
  const replaced = new Set(removed)
  for (const { path } of changed) if (live.has(path)) replaced.add(path)
  return replaced
}

/** How much of the version stays. */
export function stayingOf(live: Uploaded, without: ReadonlySet<string>): { files: number; bytes: number } {
  let bytes = 0
  for (const [path, { size }] of live) if (!without.has(path)) bytes += size
  return { files: live.size - without.size, bytes }
}

/** The same bytes cannot have two sizes, whether or not they are the version's already. */
export function requireConsistent(live: Uploaded, files: readonly ListedFile[], changed: readonly ListedFile[]): void {
  const sizes = new Map(changed.map(({ sha256, size }) => [sha256, size]))
  const isOdd = (hash: string, size: number): boolean => (sizes.get(hash) ?? size) !== size
  const mayBeOdd =
    changed.some(({ sha256, size }) => isOdd(sha256, size)) ||
    (changed.length > 0 && live.values().some(({ hash, size }) => isOdd(hash, size)))
  if (mayBeOdd) requireOneSizeEach(files)
}

function requireOneSizeEach(files: readonly ListedFile[]): void {
  const sizes = new Map<string, number>()
  for (const file of files) {
    if ((sizes.get(file.sha256) ?? file.size) !== file.size)
      throw errors.invalidRequest(`"${file.path}" has the hash of a file with another size.`)
    sizes.set(file.sha256, file.size)
  }
}

/** A version has only what visitors can ask for. */
export function servedOf(files: readonly ListedFile[]): readonly ListedFile[] {
  return files.filter(({ path: name }) => unservedKindOf(name) === undefined)
}

/** `changed`: what of the files the live version has not; all that it has is served. */
export function versionBytes(files: readonly ListedFile[], changed: readonly ListedFile[]): number {
  const unserved = changed.filter(({ path: name }) => unservedKindOf(name) !== undefined)
  return bytesOf(files) - bytesOf(unserved)
}

function bytesOf(files: readonly ListedFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0)
}
