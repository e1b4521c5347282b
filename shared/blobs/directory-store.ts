/**
 * Blobs in a directory: `<root>/ab/<hash>`. One level of 256 folders: ten million blobs are 40,000 names per folder,
 * which a file system indexes well, and a second level would cost a new folder and its fsync for nearly every blob.
 *
 * A blob is written to `<root>/tmp/<random>`, fsynced, linked to its hash, and the folder is fsynced. A crash leaves
 * either nothing, a temporary file (swept later), or the complete blob. Linking, unlike renaming, never replaces a file:
 * of two writers of the same bytes one creates the blob and the other keeps it.
 *
 * A blob that is discarded is renamed to `<root>/tmp/<hash>-<random>` first, so that a crash loses nothing: `sweep` gives
 * it its name back.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readdir, readFile, rename, rm, stat, utimes, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { before } from '../before.ts'
import { BlobMissing, isBlobHash, pacedStream, type BlobStore, type BlobWriter, type StoredBlob } from './blob-store.ts'
import { sweepDrafts } from './drafts.ts'

const TEMPORARY_FOLDER = 'tmp'
const MIN_CHUNK_BYTES = 4096
const MAX_CHUNK_BYTES = 32_768
/** Of what has been read so far. */
const CHUNK_SHARE = 1 / 4

export function createDirectoryBlobStore(root: string): BlobStore {
  const folders = createFolders(root)

  async function writer(): Promise<BlobWriter> {
    const draft = await draftPath()
    return createWriter(draft, await open(draft, 'wx'), adopt)
  }

  async function draftPath(prefix = ''): Promise<string> {
    await folders.ensure(TEMPORARY_FOLDER)
    return path.join(root, TEMPORARY_FOLDER, prefix + randomBytes(12).toString('hex'))
  }

  /** Gives a draft its name, unless the bytes are there already. */
  async function adopt(draft: Draft): Promise<StoredBlob> {
    const { hash, size, file } = draft
    const known = await keep(hash)
    if (known) {
      await file.close()
      await rm(draft.path)
      return known
    }
    await file.datasync()
    const { mtimeMs } = await file.stat()
    await file.close()
    await folders.ensure(folderOf(hash))
    const kept = await nameOrKeep(draft.path, hash)
    await rm(draft.path)
    await syncFolder(path.join(root, folderOf(hash)))
    return kept ?? { hash, size, modifiedAt: mtimeMs }
  }

  /** The blob that another writer named first; undefined when this one did. */
  async function nameOrKeep(draft: string, hash: string): Promise<StoredBlob | undefined> {
    while (!(await linked(draft, pathOf(root, hash)))) {
      const kept = await keep(hash)
      // Else it was discarded in between, and its name is free.
      if (kept) return kept
    }
    return undefined
  }

  /**
   * Takes the name away first and decides then: a caller that keeps the blob meanwhile finds it gone and writes it
   * anew. A blob that is known to be in use keeps its name all the time.
   */
  async function discard(hash: string, modifiedAt: number): Promise<boolean> {
    const isUntouched = async (file: string): Promise<boolean> => (await statOrMissing(file))?.mtimeMs === modifiedAt
    if (!(await isUntouched(pathOf(root, hash)))) return false
    const removed = await draftPath(`${hash}-`)
    if (!(await existing(rename(pathOf(root, hash), removed)))) return false
    if (!(await isUntouched(removed))) {
      await restore(removed, hash)
      return false
    }
    await rm(removed, { force: true })
    return true
  }

  /** Restoring a blob that is not needed does no harm: garbage collection finds it again. */
  async function restore(removed: string, hash: string): Promise<void> {
    await existing(linked(removed, pathOf(root, hash)))
    await rm(removed, { force: true })
  }

  async function sweep(writtenBefore: number): Promise<number> {
    const temporary = path.join(root, TEMPORARY_FOLDER)
    for (const name of await names(temporary)) {
      const hash = before(name, '-')
      if (isBlobHash(hash)) await restore(path.join(temporary, name), hash)
    }
    return sweepDrafts(temporary, writtenBefore)
  }

  async function keep(hash: string): Promise<StoredBlob | undefined> {
    // Most bytes are new. The kernel knows that at once, where a failing utimes would cost an error with its stack.
    if (!existsSync(pathOf(root, hash))) return undefined
    const now = new Date()
    if (!(await existing(utimes(pathOf(root, hash), now, now)))) return undefined
    // Looked at afterwards: a file that lost its name in between may have been found untouched just before.
    const facts = await statOrMissing(pathOf(root, hash))
    return facts && { hash, size: facts.size }
  }

  async function put(bytes: Uint8Array): Promise<StoredBlob> {
    const hash = createHash('sha256').update(bytes).digest('hex')
    const kept = await keep(hash)
    if (kept) return kept
    const target = await writer()
    try {
      await target.write(bytes)
      return await target.finish()
    } catch (error) {
      await target.abort()
      throw error
    }
  }

  return {
    put,
    writer,
    keep,
    has: (hash) => existing(stat(pathOf(root, hash))),
    read: (hash) => readFile(pathOf(root, hash)).catch((error: unknown) => rethrowMissing(error, hash)),
    stream: (hash, range) => pacedStream(() => chunksOf(pathOf(root, hash), hash, range)),
    discard,
    remove: (hash) => rm(pathOf(root, hash), { force: true }),
    list: () => listBlobs(root),
    sweep,
  }
}

interface Draft {
  readonly path: string
  readonly file: FileHandle
  readonly hash: string
  readonly size: number
}

function createWriter(draft: string, file: FileHandle, adopt: (draft: Draft) => Promise<StoredBlob>): BlobWriter {
  const digest = createHash('sha256')
  let size = 0
  return {
    async write(chunk) {
      digest.update(chunk)
      size += chunk.length
      await writeAll(file, chunk)
    },
    finish: () => adopt({ path: draft, file, hash: digest.digest('hex'), size }),
    async abort() {
      // Closing twice rejects; the draft must go all the same.
      await file.close().catch(() => undefined)
      await rm(draft, { force: true })
    },
  }
}

/** A single write may be short, for instance when the disk is nearly full. */
async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  let offset = 0
  while (offset < chunk.length) {
    const { bytesWritten } = await file.write(chunk, offset)
    offset += bytesWritten
  }
}

/** Creates folders once per process; a folder that is new is durable in its parent before a blob is named in it. */
function createFolders(root: string): { ensure(name: string): Promise<void> } {
  const ready = new Map<string, Promise<void>>()

  async function create(name: string): Promise<void> {
    if ((await mkdir(path.join(root, name), { recursive: true })) !== undefined) await syncFolder(root)
  }

  return {
    ensure(name) {
      let creation = ready.get(name)
      if (!creation) {
        creation = create(name)
        ready.set(name, creation)
        creation.catch(() => ready.delete(name))
      }
      return creation
    },
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Nothing is read ahead, and little at first: a reader who stops holds a fraction of what they have taken. */
async function* chunksOf(
  file: string,
  hash: string,
  { start, end }: { start: number; end: number } = { start: 0, end: Number.MAX_SAFE_INTEGER },
): AsyncGenerator<Buffer> {
  const handle = await open(file, 'r').catch((error: unknown) => rethrowMissing(error, hash))
  try {
    let position = start
    let chunkBytes = MIN_CHUNK_BYTES
    while (position <= end) {
      // Doubled at most, so that there are few sizes for memory to be reused in.
      if (chunkBytes < MAX_CHUNK_BYTES && (position - start) * CHUNK_SHARE >= 2 * chunkBytes) chunkBytes *= 2
      const length = Math.min(chunkBytes, end - position + 1)
      const { buffer, bytesRead } = await handle.read({ buffer: Buffer.allocUnsafeSlow(length), position })
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
      position += bytesRead
    }
  } finally {
    await handle.close()
  }
}

async function* listBlobs(root: string): AsyncIterable<Required<StoredBlob>> {
  for (const folder of await names(root)) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue
    for (const hash of await names(path.join(root, folder))) {
      if (!isBlobHash(hash)) continue
      const facts = await statOrMissing(path.join(root, folder, hash))
      if (facts) yield { hash, size: facts.size, modifiedAt: facts.mtimeMs }
    }
  }
}

function folderOf(hash: string): string {
  return hash.slice(0, 2)
}

/** The only place where a hash becomes a path; anything but a hash is a mistake of ours. */
function pathOf(root: string, hash: string): string {
  if (!isBlobHash(hash)) throw new Error(`not a blob hash: ${JSON.stringify(hash)}`)
  return path.join(root, folderOf(hash), hash)
}

async function names(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

async function statOrMissing(file: string): Promise<{ size: number; mtimeMs: number } | undefined> {
  try {
    return await stat(file)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Whether the file that an operation was about exists. */
async function existing(operation: Promise<unknown>): Promise<boolean> {
  try {
    await operation
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** False when the name is taken. */
async function linked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function rethrowMissing(error: unknown, hash: string): never {
  throw isMissing(error) ? new BlobMissing(hash) : error
}
