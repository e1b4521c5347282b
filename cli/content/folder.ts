/** Walks a folder and hashes its files: the list that the service compares with what it has. */
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
import { usageError } from '../terminal/failure.ts'
import { parseIgnore, type Ignore } from './ignore.ts'

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
  /** Hears the number of files and their bytes before they are read. */
  onFound?(files: number, bytes: number): void
  /** Hears the size of each file once it is read. */
  onRead?(bytes: number): void
}

/** Names of what would be published, sorted; and what is left out unasked. */
export async function listFolder(
  root: string,
  include: readonly string[] = [],
): Promise<{ found: string[]; skipped: string[]; ignore: Ignore }> {
  const ignore = parseIgnore(await readFile(path.join(root, '.dropwayignore'), 'utf8').catch(() => ''), include)
  const found: string[] = []
  const skipped: string[] = []
  await walk(await realpath(root), '', ignore, found, skipped)
  return { found: found.sort(), skipped, ignore }
}

export async function readFolder(root: string, { include = [], onFound, onRead }: ReadOptions = {}): Promise<Folder> {
  const { found, skipped, ignore } = await listFolder(root, include)
  if (!LANDING_PAGES.some((name) => found.includes(name))) {
    throw usageError(`"${root}" has no index.html or index.md. Add one, or name the folder that holds it.`)
  }
  const named = found.map((name) => ({ path: name, file: path.join(root, name) }))
  onFound?.(
    found.length,
    named.reduce((sum, { file }) => sum + statSync(file).size, 0),
  )
  const files: LocalFile[] = []
  const candidates: SecretCandidate[] = []
  const room = Buffer.allocUnsafe(WHOLE_BYTES + 1)
  let turnedAt = Date.now()
  for (const entry of named) {
    const { size, sha256, key } = digestSmall(entry.file, room) ?? (await digestStream(entry.file))
    files.push({ ...entry, size, sha256 })
    const candidate = { path: entry.path, size, key }
    if (secretIn(candidate) !== undefined) candidates.push(candidate)
    onRead?.(size)
    if (Date.now() - turnedAt < TURN_MS) continue
    await nextTurn()
    turnedAt = Date.now()
  }
  const suspicious = secretFiles(candidates)
  const secrets = suspicious.filter((secret) => !ignore.wants(secret.path))
  return {
    files,
    skipped,
    secrets,
    allowsSecrets: suspicious.length > secrets.length,
  }
}

async function walk(root: string, folder: string, ignore: Ignore, found: string[], skipped: string[]): Promise<void> {
  for (const entry of await readdir(path.join(root, folder), { withFileTypes: true })) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (ignore.leavesOut(name, entry.isDirectory())) continue
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

export async function digestStream(file: string): Promise<Digest> {
  const hash = createHash('sha256')
  const keys = createKeySearch()
  let size = 0
  await pipeline(createReadStream(file), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      hash.update(chunk)
      keys.add(chunk)
      size += chunk.byteLength
    }
  })
  return { size, sha256: hash.digest('hex'), key: keys.found() }
}
