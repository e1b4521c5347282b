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
import { createHash, hash as digestOf, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { inParallel } from '../running/turns.ts'
import { before } from '../values/before.ts'
import { BlobMissing, isBlobHash, pacedStream, type BlobStore, type BlobWriter, type StoredBlob } from './blob-store.ts'
import { sweepDrafts } from './drafts.ts'
import { offThreadCalls, type FileCalls, type FileStats, type OpenFile } from './file-calls.ts'
import { lendChunk } from './lent-chunks.ts'

const TEMPORARY_FOLDER = 'tmp'
const MIN_CHUNK_BYTES = 4096
const MAX_CHUNK_BYTES = 131_072
/** A chunk is at most this share of what has been read so far. */
const CHUNK_SHARE = 1 / 4
/** A file system writes names to the disk within half a minute by itself: an older one is durable, whoever gave it. */
const YOUNG_NAME_MS = 60_000
/** Files of several blobs that are open at once: their syncs become few of the disk. */
const PARALLEL_DRAFTS = 64

export function createDirectoryBlobStore(root: string, files: FileCalls = offThreadCalls): BlobStore {
  const place: Place = { root, files, folders: createFolders(root, files), nextDraft: createDraftNames() }
  return {
    put: (bytes) => put(place, bytes),
    putAll: (blobs) => putAll(place, blobs),
    writer: () => createWriter(place),
    keep: async (hash) => (await renew(place, hash))?.blob,
    has: (hash) => existing(stat(pathOf(root, hash))),
    read: (hash) => files.readFile(pathOf(root, hash)).catch((error: unknown) => rethrowMissing(error, hash)),
    stream: (hash, range) => pacedStream(() => chunksOf(pathOf(root, hash), hash, range)),
    discard: (hash, modifiedAt) => discard(place, hash, modifiedAt),
    remove: (hash) => rm(pathOf(root, hash), { force: true }),
    list: () => listBlobs(root),
    sweep: (writtenBefore) => sweep(place, writtenBefore),
  }
}

/** The directory of a store, and how its files and folders are reached. */
interface Place {
  readonly root: string
  readonly files: FileCalls
  readonly folders: Folders
  /** A name that no other writer has, here or elsewhere. */
  nextDraft(): string
}

/** Randomness is dear, so a store takes some once and counts. */
function createDraftNames(): () => string {
  const own = randomBytes(12).toString('hex')
  let count = 0
  return () => `${own}.${count++}`
}

interface Draft {
  readonly path: string
  readonly file: OpenFile
}

async function createDraft(place: Place): Promise<Draft> {
  const path = await draftPath(place)
  return { path, file: await place.files.open(path, 'wx') }
}

async function draftPath({ root, folders, nextDraft }: Place, prefix = ''): Promise<string> {
  await folders.ensure(TEMPORARY_FOLDER)
  return `${root}/${TEMPORARY_FOLDER}/${prefix}${nextDraft()}`
}

async function abandon({ path, file }: Draft): Promise<void> {
  // Closing twice rejects; the draft must go all the same.
  await file.close().catch(() => undefined)
  await rm(path, { force: true })
}

async function createWriter(place: Place): Promise<BlobWriter> {
  const draft = await createDraft(place)
  const digest = createHash('sha256')
  let size = 0
  return {
    async write(chunk) {
      digest.update(chunk)
      size += chunk.length
      await writeAll(draft.file, chunk)
    },
    async finish() {
      const hash = digest.digest('hex')
      const kept = await keepDurable(place, hash)
      if (kept) await abandon(draft)
      return kept ?? synced(place, await adopt(place, draft, { hash, size }))
    },
    abort: () => abandon(draft),
  }
}

/** Makes the name of a blob durable, too. */
async function synced({ folders }: Place, blob: StoredBlob): Promise<StoredBlob> {
  await folders.sync([folderOf(blob.hash)])
  return blob
}

/** Gives a draft its name, unless another writer of the same bytes came first. The name is not durable yet. */
async function adopt(place: Place, { path, file }: Draft, { hash, size }: StoredBlob): Promise<StoredBlob> {
  const { files, folders } = place
  await file.datasync()
  const { mtimeMs } = await file.stat()
  await file.close()
  await folders.ensure(folderOf(hash))
  const kept = await nameOrKeep(place, path, hash)
  await files.rm(path)
  return kept ?? { hash, size, modifiedAt: mtimeMs }
}

/** The blob that another writer named first; undefined when this one did. */
async function nameOrKeep(place: Place, draft: string, hash: string): Promise<StoredBlob | undefined> {
  while (!(await linked(place.files.link(draft, pathOf(place.root, hash))))) {
    const kept = await renew(place, hash)
    // A blob that is gone was discarded in between, and its name is free.
    if (kept) return kept.blob
  }
  return undefined
}

/**
 * Takes the name away first and decides then: a caller that keeps the blob meanwhile finds it gone and writes it
 * anew. A blob that is known to be in use keeps its name all the time.
 */
async function discard(place: Place, hash: string, modifiedAt: number): Promise<boolean> {
  const named = pathOf(place.root, hash)
  const isUntouched = async (file: string): Promise<boolean> =>
    (await statOrMissing(stat(file)))?.mtimeMs === modifiedAt
  if (!(await isUntouched(named))) return false
  const removed = await draftPath(place, `${hash}-`)
  if (!(await existing(rename(named, removed)))) return false
  if (!(await isUntouched(removed))) {
    await restore(place, removed, hash)
    return false
  }
  await rm(removed, { force: true })
  return true
}

/** Restoring a blob that is not needed does no harm: garbage collection finds it again. */
async function restore({ root, files }: Place, removed: string, hash: string): Promise<void> {
  await existing(linked(files.link(removed, pathOf(root, hash))))
  await rm(removed, { force: true })
}

async function sweep(place: Place, writtenBefore: number): Promise<number> {
  const temporary = path.join(place.root, TEMPORARY_FOLDER)
  for (const name of await names(temporary)) {
    const hash = before(name, '-')
    if (isBlobHash(hash)) await restore(place, path.join(temporary, name), hash)
  }
  return sweepDrafts(temporary, writtenBefore)
}

/** A blob that is there already, under a durable name: another writer may have given the name a moment ago. */
async function keepDurable(place: Place, hash: string): Promise<StoredBlob | undefined> {
  const kept = await renew(place, hash)
  return kept?.isYoung ? synced(place, kept.blob) : kept?.blob
}

/** The blob, as one that was stored now; `isYoung`: its name may not be durable yet. */
async function renew(
  { root, files }: Place,
  hash: string,
): Promise<{ blob: StoredBlob; isYoung: boolean } | undefined> {
  const file = pathOf(root, hash)
  // Most bytes are new. The kernel knows that at once, where a failing utimes would cost an error with its stack.
  const known = statSync(file, { throwIfNoEntry: false })
  if (!known) return undefined
  const now = new Date()
  if (!(await existing(files.utimes(file, now, now)))) return undefined
  // The file is looked at afterwards: one that lost its name in between may have been found untouched just before.
  const facts = await statOrMissing(files.stat(file))
  return facts && { blob: { hash, size: facts.size }, isYoung: known.mtimeMs > now.getTime() - YOUNG_NAME_MS }
}

async function put(place: Place, bytes: Uint8Array): Promise<StoredBlob> {
  const hash = digestOf('sha256', bytes)
  return (await keepDurable(place, hash)) ?? synced(place, await create(place, hash, bytes))
}

/** One sync for each folder, however many names are in it. */
async function putAll(place: Place, blobs: readonly Uint8Array[]): Promise<StoredBlob[]> {
  const touched = new Set<string>()
  const stored = await inParallel(blobs, PARALLEL_DRAFTS, async (bytes) => {
    const hash = digestOf('sha256', bytes)
    const kept = await renew(place, hash)
    if (!kept || kept.isYoung) touched.add(folderOf(hash))
    return kept?.blob ?? create(place, hash, bytes)
  })
  await place.folders.sync([...touched])
  return stored
}

/** The file of a blob, under its name; the bytes are durable, the name is not yet. */
async function create(place: Place, hash: string, bytes: Uint8Array): Promise<StoredBlob> {
  const draft = await createDraft(place)
  try {
    await writeAll(draft.file, bytes)
    return await adopt(place, draft, { hash, size: bytes.length })
  } catch (error) {
    await abandon(draft)
    throw error
  }
}

/** A single write may be short, for instance when the disk is nearly full. */
async function writeAll(file: OpenFile, chunk: Uint8Array): Promise<void> {
  let offset = 0
  while (offset < chunk.length) {
    const { bytesWritten } = await file.write(chunk, offset)
    offset += bytesWritten
  }
}

interface Folders {
  /** Created once per process. One that is new is durable in its parent before a blob is named in it. */
  ensure(name: string): Promise<void>
  /** Makes the names in these folders durable. Those who ask while the disk is busy wait for one sync together. */
  sync(names: readonly string[]): Promise<void>
}

function createFolders(root: string, files: FileCalls): Folders {
  const ready = new Map<string, Promise<void>>()
  const unsynced = new Set<string>()
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  async function create(name: string): Promise<void> {
    if ((await mkdir(path.join(root, name), { recursive: true })) !== undefined) await syncFolder(root)
  }

  async function syncFolder(folder: string): Promise<void> {
    const handle = await files.open(folder, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  async function syncAll(): Promise<void> {
    await running.catch(() => {})
    next = undefined
    const names = [...unsynced]
    unsynced.clear()
    await Promise.all(names.map((name) => syncFolder(path.join(root, name))))
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
    async sync(names) {
      if (names.length === 0) return
      for (const name of names) unsynced.add(name)
      if (!next) next = running = syncAll()
      return next
    },
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
      // The size doubles, so that there are few sizes for memory to be reused in.
      if (chunkBytes < MAX_CHUNK_BYTES && (position - start) * CHUNK_SHARE >= 2 * chunkBytes) chunkBytes *= 2
      const length = Math.min(chunkBytes, end - position + 1)
      const { buffer, bytesRead } = await handle.read({ buffer: lendChunk(chunkBytes), length, position })
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
      const facts = await statOrMissing(stat(path.join(root, folder, hash)))
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
  return `${root}/${folderOf(hash)}/${hash}`
}

async function names(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

async function statOrMissing(operation: Promise<FileStats>): Promise<FileStats | undefined> {
  try {
    return await operation
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

/** Whether a link was made: false when the name is taken. */
async function linked(operation: Promise<void>): Promise<boolean> {
  try {
    await operation
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
