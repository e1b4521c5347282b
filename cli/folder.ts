/** Walks a folder and hashes its files: the list that the service compares with what it has. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { MAX_BUNDLE_FILES } from '../shared/limits.ts'
import { SECRET_HEAD_BYTES, secretFiles, type SecretFile } from '../shared/secret-files.ts'
import { usageError } from './failure.ts'
import { parseIgnore, type Ignore } from './ignore.ts'
import { inParallel } from './parallel.ts'

/** Open at the same time; the whole client stays below 64. */
const PARALLEL_READS = 16
/** Read whole; larger files stream through. */
const WHOLE_BYTES = 1_000_000

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
  /** Files that look like secrets and that nobody asked for by name. */
  readonly secrets: readonly SecretFile[]
  /** Some file that looks like a secret is meant to be published. */
  readonly allowsSecrets: boolean
}

export interface ReadOptions {
  /** Patterns of `--include`. */
  readonly include?: readonly string[]
  /** Told the number of files and their bytes before they are read, then each file as it is done. */
  onFound?(files: number, bytes: number): void
  onRead?(bytes: number): void
}

/** One of them makes a folder a site; the service renders the Markdown one. */
export const LANDING_PAGES = ['index.html', 'index.md', 'index.markdown'] as const

/** Names of what would be published, sorted; and what is left out although nobody said so. */
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
  const sizes = await sizesOf(root, found)
  onFound?.(
    found.length,
    sizes.reduce((sum, size) => sum + size, 0),
  )
  const files: (LocalFile & { head: string | undefined })[] = []
  await inParallel(found.entries(), PARALLEL_READS, async ([index, name]) => {
    const file = path.join(root, ...name.split('/'))
    files[index] = { path: name, file, ...(await digest(file, sizes[index]!)) }
    onRead?.(files[index]!.size)
  })
  const suspicious = secretFiles(files)
  const secrets = suspicious.filter((secret) => !ignore.wants(secret.path))
  return {
    files: files.map(({ path: name, file, size, sha256 }) => ({ path: name, file, size, sha256 })),
    skipped,
    secrets,
    allowsSecrets: suspicious.length > secrets.length,
  }
}

async function sizesOf(root: string, names: readonly string[]): Promise<number[]> {
  const sizes: number[] = []
  await inParallel(names.entries(), PARALLEL_READS, async ([index, name]) => {
    sizes[index] = (await stat(path.join(root, ...name.split('/')))).size
  })
  return sizes
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

/** Size, hash and beginning come from the same reading, so that they belong together. */
async function digest(file: string, size: number): Promise<{ size: number; sha256: string; head: string | undefined }> {
  if (size > WHOLE_BYTES) return { ...(await digestStream(file)), head: undefined }
  const content = await readFile(file)
  return {
    size: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
    head: content.toString('latin1', 0, SECRET_HEAD_BYTES),
  }
}

export async function digestStream(file: string): Promise<{ size: number; sha256: string }> {
  const hash = createHash('sha256')
  let size = 0
  await pipeline(createReadStream(file), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      hash.update(chunk)
      size += chunk.byteLength
    }
  })
  return { size, sha256: hash.digest('hex') }
}
