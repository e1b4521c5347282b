/**
 * Unpacks judged entries in two passes, each in worker threads: the first holds every entry to its announced size and
 * checksum, the second stores it. Nothing of an archive that lies reaches the store, where it would be made durable for
 * nothing while other publishers wait for the disk. The first pass is a fifteenth of an honest upload.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'
import { ArchiveFile } from './archive-file.ts'
import type { ArchiveEntry } from './gate.ts'
import { quotePath } from '../../../../shared/values/quoted-path.ts'

/** Up to here an entry is inflated in one go; a larger one flows through in pieces. */
const MAX_WHOLE_BYTES = 4_000_000
/** What is stored together: enough to keep the disk busy, little enough to stay small. */
const MAX_WAITING_BYTES = 8_000_000

/** What zlib takes at least. One chunk holds the whole entry, so that nothing is copied together afterwards. */
const MIN_CHUNK_BYTES = 64

type Store = Pick<BlobStore, 'putAll' | 'writer'>

/** Throws `archive_rejected` with the first entry that is not what the archive says it is. */
export async function verifyEntries(file: string, entries: readonly ArchiveEntry[]): Promise<void> {
  const archive = new ArchiveFile(file)
  try {
    for (const entry of entries) {
      if (isWhole(entry)) verifyWhole(archive, entry)
      else await verifyInPieces(archive, entry)
    }
  } finally {
    archive.closeFile()
  }
}

/** Stores entries that have been verified. */
export async function extractEntries(
  blobs: Store,
  file: string,
  entries: readonly ArchiveEntry[],
): Promise<StoredBlob[]> {
  const archive = new ArchiveFile(file)
  const stored: StoredBlob[] = []
  let waiting: Buffer[] = []
  let waitingBytes = 0
  const storeWaiting = async (): Promise<void> => {
    const batch = waiting
    waiting = []
    waitingBytes = 0
    for (const blob of await blobs.putAll(batch)) stored.push(blob)
  }
  try {
    for (const entry of entries) {
      if (!isWhole(entry) || waitingBytes + entry.size > MAX_WAITING_BYTES) await storeWaiting()
      if (isWhole(entry)) {
        waiting.push(inflateWhole(archive, entry))
        waitingBytes += entry.size
      } else stored.push(await storeInPieces(blobs, archive, entry))
    }
    await storeWaiting()
    return stored
  } finally {
    archive.closeFile()
  }
}

function isWhole(entry: ArchiveEntry): boolean {
  return entry.size <= MAX_WHOLE_BYTES && entry.length <= MAX_WHOLE_BYTES
}

function verifyWhole(archive: ArchiveFile, entry: ArchiveEntry): void {
  let bytes: Buffer
  try {
    bytes = inflateWhole(archive, entry)
  } catch (error) {
    throw asRejection(error, entry)
  }
  requireAnnounced(entry, bytes.length, zlib.crc32(bytes))
}

async function verifyInPieces(archive: ArchiveFile, entry: ArchiveEntry): Promise<void> {
  let size = 0
  let checksum = 0
  try {
    await eachPiece(archive, entry, (piece) => {
      size += piece.length
      if (size > entry.size) throw wrongSize(entry)
      checksum = zlib.crc32(piece, checksum)
    })
  } catch (error) {
    throw asRejection(error, entry)
  }
  requireAnnounced(entry, size, checksum)
}

async function storeInPieces(blobs: Store, archive: ArchiveFile, entry: ArchiveEntry): Promise<StoredBlob> {
  const writer = await blobs.writer()
  try {
    await eachPiece(archive, entry, (piece) => writer.write(piece))
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

function inflateWhole(archive: ArchiveFile, entry: ArchiveEntry): Buffer {
  const packed = archive.bytes(entry.start, entry.length)
  if (entry.method === 'stored') return packed
  // The limit ends a bomb at its announced size; one byte more is enough to know that it lies.
  const maxOutputLength = entry.size + 1
  return zlib.inflateRawSync(packed, { maxOutputLength, chunkSize: Math.max(maxOutputLength, MIN_CHUNK_BYTES) })
}

/** `use` must be done with a piece when it resolves. */
async function eachPiece(
  archive: ArchiveFile,
  entry: ArchiveEntry,
  use: (piece: Buffer) => Promise<void> | void,
): Promise<void> {
  const end = entry.start + entry.length
  if (entry.method === 'stored') return archive.eachChunk(entry.start, end, use)
  await pipeline(Readable.from(archive.chunks(entry.start, end)), zlib.createInflateRaw(), async (pieces) => {
    for await (const piece of pieces as AsyncIterable<Buffer>) await use(piece)
  })
}

/** What zlib says is the archive's fault; what the disk says is not. */
function asRejection(error: unknown, entry: ArchiveEntry): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ERR_BUFFER_TOO_LARGE') return wrongSize(entry)
  if (!code?.startsWith('Z_')) return error
  return errors.archiveRejected(`Entry ${quotePath(entry.path)} cannot be unpacked: ${message}.`)
}

function requireAnnounced(entry: ArchiveEntry, size: number, checksum: number): void {
  if (size !== entry.size) throw wrongSize(entry)
  if (checksum !== entry.crc32)
    throw errors.archiveRejected(`Entry ${quotePath(entry.path)} has a wrong checksum; the archive is damaged.`)
}

function wrongSize(entry: ArchiveEntry): ApiError {
  return errors.archiveRejected(
    `Entry ${quotePath(entry.path)} does not unpack to the ${entry.size} bytes that it announces.`,
  )
}
