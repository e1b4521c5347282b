/** Walks a folder and hashes its files: the list that the service compares with what it has. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { MAX_BUNDLE_FILES } from '../shared/limits.ts'
import { usageError } from './failure.ts'
import { parseIgnore, type Ignore } from './ignore.ts'

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
}

export async function readFolder(root: string): Promise<Folder> {
  const ignore = parseIgnore(await readFile(path.join(root, '.dropwayignore'), 'utf8').catch(() => ''))
  const found: string[] = []
  const skipped: string[] = []
  await walk(await realpath(root), '', ignore, found, skipped)
  if (!found.includes('index.html') && !found.includes('index.md')) {
    throw usageError(`"${root}" has no index.html. Add one, or name the folder that holds it.`)
  }
  const files: LocalFile[] = []
  for (const name of found.toSorted()) files.push(await describe(root, name))
  return { files, skipped }
}

async function walk(root: string, folder: string, ignore: Ignore, found: string[], skipped: string[]): Promise<void> {
  for (const entry of await readdir(path.join(root, folder), { withFileTypes: true })) {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (ignore(name, entry.isDirectory())) continue
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

async function describe(root: string, name: string): Promise<LocalFile> {
  const file = path.join(root, ...name.split('/'))
  return { path: name, file, ...(await digest(file)) }
}

/** Size and hash come from the same reading, so that they belong together. */
export async function digest(file: string): Promise<{ size: number; sha256: string }> {
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
