/**
 * Takes in the files of one upload. Bytes go straight into the blob store while they arrive; the cap is counted while
 * reading. When the upload fails, what it brought is taken back.
 */
import { mkdir, open, rm } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { BlobWriter, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { DEFAULT_BUNDLE_FILES } from '../../../../shared/contracts/limits.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import { inParallel } from '../../../../shared/running/turns.ts'
import { ARCHIVE_BATCH_FILES, batchesOf } from '../workers/batches.ts'
import type { Intake, PreparedVersion } from '../contract.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'
import {
  fileKindOf,
  isPageFormat,
  isSystemClutter,
  type SingleKind,
  type UploadTerms,
} from '../../../../shared/content/upload-kind.ts'
import { pathProblem, PathSet } from '../files/paths.ts'
import type { Upload } from './prepare.ts'
import type { UploadStore } from '../storage/storing.ts'
import type { UploadWorkers } from '../workers/workers.ts'

export interface IntakeDependencies extends UploadTerms {
  readonly store: UploadStore
  readonly workers: UploadWorkers
  readonly scratchDir: string
  /** Called once, before the first byte is taken; throws to refuse. */
  admit(): Promise<void>
  prepare(upload: Upload): Promise<PreparedVersion>
}

type Shape = 'empty' | 'single' | 'files' | 'zip'

export function createIntake({
  store: uploadStore,
  workers,
  scratchDir,
  capBytes,
  maxFiles = DEFAULT_BUNDLE_FILES,
  takes,
  admit,
  prepare,
}: IntakeDependencies): Intake {
  const paths = new PathSet()
  const files: StoredFile[] = []
  const unserved: string[] = []
  const announced = new Set<string>()
  const { count, store, hold, remember, storeHeld, takeBack } = createArrivals(uploadStore, capBytes)
  let shape: Shape = 'empty'
  let single: Upload['single']
  let without: ReadonlySet<string> | undefined
  let isOver = false
  let admitted: Promise<void> | undefined

  async function enter(next: Shape): Promise<void> {
    if (isOver) throw new Error('this intake is finished')
    const fits = shape === 'empty' || (shape === 'files' && next === 'files')
    if (!fits) throw errors.invalidRequest('Send exactly one file, one .zip, or several files with their paths.')
    shape = next
    await (admitted ??= admit())
  }

  function name(filePath: string, blob: StoredBlob): void {
    if (!addPath(paths, filePath)) return void unserved.push(filePath)
    if (paths.size > maxFiles) throw errors.tooManyFiles(maxFiles)
    files.push({ path: filePath, hash: blob.hash, size: blob.size })
  }

  function announce({ path: filePath, hash, size }: StoredFile): void {
    count(size)
    announced.add(hash)
    name(filePath, { hash, size })
  }

  async function addZip(bytes: AsyncIterable<Uint8Array>): Promise<void> {
    await enter('zip')
    const archive = path.join(scratchDir, `${randomBytes(12).toString('hex')}.zip`)
    await mkdir(scratchDir, { recursive: true })
    try {
      // Opened before anything can fail: a stream that opens it itself may still do so once it has been removed.
      const file = await open(archive, 'wx')
      await pipeline(capped(bytes, capBytes), file.createWriteStream())
      await unpack(workers, archive, { capBytes, maxFiles }, { files, unserved, remember })
    } finally {
      await rm(archive, { force: true })
    }
  }

  function standAlone(kind: SingleKind, filename: string, blob: StoredBlob, title?: string): void {
    if (blob.size === 0) throw errors.invalidRequest(`${quotePath(filename)} is empty.`)
    single = { kind, filename, title, blob }
    shape = 'single'
  }

  return {
    async addFile(filePath, bytes) {
      await enter('files')
      checkPath(filePath)
      name(filePath, await store(bytes))
    },
    async addUnnamed(bytes) {
      await enter('files')
      const blob = await store(bytes)
      return {
        size: blob.size,
        name: (filePath) => name(filePath, blob),
        async alone(filename) {
          if (fileKindOf(filename) !== 'archive' || takes === 'page')
            return standAlone(requireSingle(filename, takes), filename, blob)
          shape = 'empty'
          await addZip(uploadStore.blobs.stream(blob.hash))
        },
      }
    },
    async addSingle(filename, bytes, { title }) {
      await enter('single')
      standAlone(requireSingle(filename, takes), filename, await hold(bytes), title)
    },
    addZip,
    async addStored(filePath, hash, size) {
      await enter('files')
      announce({ path: filePath, hash, size })
    },
    async addChanges({ files: changed, without: replaced, staying }) {
      await enter('files')
      without = replaced
      count(staying.bytes)
      for (const file of changed) announce(file)
      if (paths.size + staying.files > maxFiles) throw errors.tooManyFiles(maxFiles)
    },
    async finish(options = {}) {
      if (shape === 'empty') throw errors.invalidRequest('There is no file in this upload.')
      const prepared = await prepare({
        files,
        without,
        unserved,
        single: single && { ...single, title: options.title ?? single.title },
        isArchive: shape === 'zip',
        secrets: options.secrets ?? 'withhold',
        announced,
        remember,
        storeHeld,
      })
      isOver = true
      return prepared
    },
    async abort() {
      if (isOver) return
      isOver = true
      await takeBack()
    },
  }
}

async function unpack(
  workers: UploadWorkers,
  archive: string,
  limits: { readonly capBytes: number; readonly maxFiles: number },
  upload: { files: StoredFile[]; unserved: string[]; remember: Arrivals['remember'] },
): Promise<void> {
  const { entries, unserved } = await workers.inspect(archive, limits)
  for (const path of unserved) upload.unserved.push(path)
  const batches = batchesOf(entries, (entry) => entry.size, ARCHIVE_BATCH_FILES)
  await inParallel(batches, workers.width, (batch) => workers.verify(archive, batch))
  const stored = await inParallel(batches, workers.width, async (batch) =>
    (await workers.extract(archive, batch)).map(upload.remember),
  )
  for (const [{ path, size }, { hash }] of sideBySide(entries, stored.flat())) upload.files.push({ path, hash, size })
}

function requireSingle(filename: string, takes: UploadTerms['takes']): SingleKind {
  checkPath(filename)
  const kind = fileKindOf(filename)
  if (kind === undefined || kind === 'archive' || (takes === 'page' && !isPageFormat(kind)))
    throw errors.unsupportedFileType(filename, takes)
  return kind
}

interface Arrivals {
  /** Counts bytes against the cap; throws once they are too many. */
  count(bytes: number): void
  store(bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob>
  /** Like `store`, but what is short may be held back until `storeHeld`. */
  hold(bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob>
  /** Notes what this upload brought, and hands it on. */
  remember(blob: StoredBlob): StoredBlob
  storeHeld(): Promise<void>
  /** Takes back what this upload brought, except for what another one has meanwhile stored or kept too. */
  takeBack(): Promise<void>
}

function createArrivals({ blobs, holdingWriter, storeHeld }: UploadStore, capBytes: number): Arrivals {
  const created: { readonly hash: string; readonly modifiedAt: number }[] = []
  let receivedBytes = 0

  function count(bytes: number): void {
    receivedBytes += bytes
    if (receivedBytes > capBytes) throw errors.uploadTooLarge(capBytes)
  }

  async function write(bytes: AsyncIterable<Uint8Array>, writer: BlobWriter): Promise<StoredBlob> {
    try {
      for await (const chunk of bytes) {
        count(chunk.length)
        await writer.write(chunk)
      }
      return remember(await writer.finish())
    } catch (error) {
      await writer.abort()
      throw error
    }
  }

  function remember(blob: StoredBlob): StoredBlob {
    const { hash, modifiedAt } = blob
    if (modifiedAt !== undefined) created.push({ hash, modifiedAt })
    return blob
  }

  return {
    count,
    store: async (bytes) => write(bytes, await blobs.writer()),
    hold: async (bytes) => write(bytes, await holdingWriter()),
    remember,
    async storeHeld() {
      const stored = await storeHeld()
      if (stored) remember(stored)
    },
    async takeBack() {
      for (const { hash, modifiedAt } of created) await blobs.discard(hash, modifiedAt)
    },
  }
}

/** Throws invalid_request when one of the paths may not be published, by itself or beside the others. */
export function checkPaths(filePaths: Iterable<string>): void {
  const paths = new PathSet()
  for (const filePath of filePaths) addPath(paths, filePath)
}

/** Adds a path to those of an upload; false for one that no visitor could ask for. */
function addPath(paths: PathSet, filePath: string): boolean {
  checkPath(filePath)
  if (isSystemClutter(filePath)) return false
  const problem = paths.add(filePath)
  if (problem) throw errors.invalidRequest(`${quotePath(filePath)} ${problem}.`)
  return true
}

function checkPath(filePath: string): void {
  const problem = pathProblem(filePath)
  if (problem) throw errors.invalidRequest(`The path ${quotePath(filePath)} ${problem}.`)
}

async function* capped(bytes: AsyncIterable<Uint8Array>, capBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > capBytes) throw errors.uploadTooLarge(capBytes)
    yield chunk
  }
}
