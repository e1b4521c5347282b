/** Walks a folder and hashes its files: the list that the service compares with what it has. */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MAX_BUNDLE_FILES } from '../../shared/contracts/limits.ts'
import { createKeySearch, keyInBytes } from '../../shared/content/key-text.ts'
import type { KeyTrace } from '../../shared/content/private-key.ts'
import { secretFiles, secretIn, type SecretCandidate, type SecretFile } from '../../shared/content/secret-files.ts'
import { LANDING_PAGES } from '../../shared/content/upload-kind.ts'
import { unreadable, usageError } from '../terminal/failure.ts'
import { endsLikeExport, isExport, isOwnName } from './exports.ts'
import { parseIgnore, type Ignore } from './ignore/ignore.ts'

/** Files up to this size are read whole; larger ones stream through. */
const WHOLE_BYTES = 1_000_000
/** Longest time without a look at signals and timers. */
const TURN_MS = 20

export interface LocalFile {
  /** Relative, with `/`. */
  readonly path: string
  readonly file: string
  readonly size: number
  readonly sha256: string
}

export interface Folder {
  /** Sorted by path, so that equal folders give equal lists. */
  readonly files: readonly LocalFile[]
  /** Exports and temporary files that the client wrote: they stay at home whatever is asked for. */
  readonly own: readonly string[]
  /** Links that lead out of the folder, or to folders: left out. */
  readonly skipped: readonly string[]
  /** Files that look like secrets and were not asked for by name. */
  readonly secrets: readonly SecretFile[]
  /** Some file that looks like a secret is meant to be published. */
  readonly allowsSecrets: boolean
}

export interface ReadOptions {
  /** Patterns of `--include`. */
  readonly include?: readonly string[]
  /** Hears the number of files and their bytes before they are read, and may refuse them. */
  onFound?(files: number, bytes: number): Promise<void>
  /** Hears the size of each file once it is read. */
  onRead?(bytes: number): void
}

/** Names of what would be published, sorted; and what is left out unasked. */
export async function listFolder(
  root: string,
  include: readonly string[] = [],
): Promise<{ found: string[]; skipped: string[]; own: string[]; ignore: Ignore }> {
  const ignore = parseIgnore(await readFile(path.join(root, '.dropwayignore'), 'utf8').catch(() => ''), include)
  const found: string[] = []
  const skipped: string[] = []
  await walk(await realpath(root), '', ignore, found, skipped)
  const [own, others] = partition(found.sort(), (name) => isOwnFile(path.join(root, name), name))
  return { found: others, skipped, own, ignore }
}

/** By its name, or by its end where it is large; a small one is known once it is read. */
function isOwnFile(file: string, name: string): boolean {
  return isOwnName(name) || naming(name, () => statSync(file).size > WHOLE_BYTES && isExport(file))
}

function partition<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [first: Item[], others: Item[]] {
  const parts: [Item[], Item[]] = [[], []]
  for (const item of items) parts[isFirst(item) ? 0 : 1].push(item)
  return parts
}

export async function readFolder(root: string, { include = [], onFound, onRead }: ReadOptions = {}): Promise<Folder> {
  const { found, skipped, own, ignore } = await listFolder(root, include)
  if (!LANDING_PAGES.some((name) => found.includes(name))) {
    throw usageError(`"${root}" has no index.html or index.md. Add one, or name the folder that holds it.`)
  }
  const named = found.map((name) => ({ path: name, file: path.join(root, name) }))
  await onFound?.(
    found.length,
    named.reduce((sum, entry) => sum + naming(entry.path, () => statSync(entry.file).size), 0),
  )
  const files: LocalFile[] = []
  const candidates: SecretCandidate[] = []
  const room = Buffer.allocUnsafe(WHOLE_BYTES + 1)
  let turnedAt = Date.now()
  for (const entry of named) {
    const digest = naming(entry.path, () => digestSmall(entry.file, room)) ?? (await digestStream(entry))
    const { size, sha256, key, isExported } = digest
    onRead?.(size)
    if (isExported) {
      own.push(entry.path)
      continue
    }
    files.push({ ...entry, size, sha256 })
    const candidate = { path: entry.path, size, key }
    if (secretIn(candidate) !== undefined) candidates.push(candidate)
    if (Date.now() - turnedAt < TURN_MS) continue
    await nextTurn()
    turnedAt = Date.now()
  }
  const suspicious = secretFiles(candidates)
  const secrets = suspicious.filter((secret) => !ignore.wants(secret.path))
  return {
    files,
    own,
    skipped,
    secrets,
    allowsSecrets: suspicious.length > secrets.length,
  }
}

/** Whatever a file that vanished or is closed makes of the work, the person hears its name. */
function naming<Result>(name: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw unreadable(name, error)
  }
}

async function walk(root: string, folder: string, ignore: Ignore, found: string[], skipped: string[]): Promise<void> {
  for (const entry of await readdir(path.join(root, folder), { withFileTypes: true })) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (ignore.leavesOut(name, entry.isDirectory())) continue
    await requireUtf8(path.join(root, folder), entry.name, name)
    if (entry.isDirectory()) await walk(root, name, ignore, found, skipped)
    else if (entry.isFile() || (entry.isSymbolicLink() && (await isFileWithin(root, name)))) found.push(name)
    else skipped.push(name)
    if (found.length > MAX_BUNDLE_FILES) {
      throw usageError(
        `The folder has more than ${MAX_BUNDLE_FILES} files. Name the folder that holds the site, or list what to leave out in .dropwayignore.`,
      )
    }
  }
}

/** Addresses are UTF-8, and so is what Node makes of a name: of other bytes it makes a name that no file has. */
async function requireUtf8(folder: string, entry: string, name: string): Promise<void> {
  if (!entry.includes('\uFFFD')) return
  const raw = await readdir(folder, { encoding: 'buffer' })
  const wrong = raw.find((bytes) => !isUtf8(bytes) && bytes.toString() === entry)
  if (wrong === undefined) return
  const shown = path.posix.join(path.posix.dirname(name), escapeBytes(wrong))
  throw usageError(
    `The name "${shown}" is not UTF-8, so that it can have no address. Rename it, or leave it out in .dropwayignore with * in place of such bytes.`,
  )
}

/** `caf\\xe9.html`: what is no ASCII as its bytes. */
function escapeBytes(bytes: Buffer): string {
  return Array.from(bytes, (byte) =>
    byte > 0x1f && byte < 0x7f ? String.fromCodePoint(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  ).join('')
}

async function isFileWithin(root: string, name: string): Promise<boolean> {
  try {
    const target = await realpath(path.join(root, name))
    return target.startsWith(root + path.sep) && (await stat(target)).isFile()
  } catch {
    return false
  }
}

interface Digest {
  readonly size: number
  readonly sha256: string
  /** Whether a private key is in it. */
  readonly key: KeyTrace
  readonly isExported: boolean
}

/**
 * Size, hash and keys come from the same reading, so that they belong together. Small files are read on this
 * thread: handing each to another costs four times what reading it does. Undefined when the file is larger.
 */
function digestSmall(file: string, room: Buffer): Digest | undefined {
  const content = readInto(room, file)
  if (content.length > WHOLE_BYTES) return undefined
  return {
    size: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    key: keyInBytes(content),
    isExported: endsLikeExport(content),
  }
}

/** The file's content, or as much of it as there is room for. */
function readInto(room: Buffer, file: string): Buffer {
  const descriptor = openSync(file, 'r')
  try {
    let length = 0
    for (let more = -1; more !== 0 && length < room.length; length += more)
      more = readSync(descriptor, room, length, room.length - length, null)
    return room.subarray(0, length)
  } finally {
    closeSync(descriptor)
  }
}

export async function digestStream({ path: name, file }: Pick<LocalFile, 'path' | 'file'>): Promise<Digest> {
  const hash = createHash('sha256')
  const keys = createKeySearch()
  let size = 0
  await pipeline(createReadStream(file), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      hash.update(chunk)
      keys.add(chunk)
      size += chunk.byteLength
    }
  }).catch((error: unknown) => {
    throw unreadable(name, error)
  })
  return { size, sha256: hash.digest('hex'), key: keys.found(), isExported: false }
}
