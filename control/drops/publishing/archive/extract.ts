/** Unpacks judged entries into the blob store, holding each to its announced size and checksum. Runs in a worker thread. */
import zlib from 'node:zlib'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { ArchiveFile } from './archive-file.ts'
import type { ArchiveEntry } from './gate.ts'
import { quotePath } from '../../../../shared/quoted-path.ts'

/** Up to here an entry is inflated in one go; a larger one flows through in pieces. */
const MAX_WHOLE_BYTES = 4_000_000
/** Blobs being written at the same time: enough to keep the disk busy, few enough to stay small. */
const MAX_PENDING_BYTES = 8_000_000
const MAX_PENDING_BLOBS = 16

/** What zlib takes at least. One chunk holds the whole entry, so that nothing is copied together afterwards. */
const MIN_CHUNK_BYTES = 64

/** The entry is not what the archive says it is. */
class BadEntry extends Error {}

type Store = Pick<BlobStore, 'put' | 'writer'>

/** What was stored is told even when the archive turns out to be bad: the upload takes it back. */
export interface ExtractResult {
  readonly stored: readonly StoredBlob[]
  readonly rejection?: string
}

export async function extractEntries(
  blobs: Store,
  file: string,
  entries: readonly ArchiveEntry[],
): Promise<ExtractResult> {
  const archive = new ArchiveFile(file)
  const stored = new Map<number, StoredBlob>()
  const pending = new Set<Promise<void>>()
  let pendingBytes = 0
  let rejection: string | undefined
  try {
    for (const [index, entry] of entries.entries()) {
      while (pending.size > 0 && (pending.size >= MAX_PENDING_BLOBS || pendingBytes + entry.size > MAX_PENDING_BYTES)) {
        await Promise.race(pending)
      }
      const isWhole = entry.size <= MAX_WHOLE_BYTES && entry.length <= MAX_WHOLE_BYTES
      const storing = isWhole ? blobs.put(inflateWhole(archive, entry)) : inflateInto(blobs, archive, entry)
      pendingBytes += entry.size
      const done = storing.then((blob) => {
        stored.set(index, blob)
        pending.delete(done)
        pendingBytes -= entry.size
      })
      pending.add(done)
    }
    await Promise.all(pending)
  } catch (error) {
    await Promise.allSettled(pending)
    if (!(error instanceof BadEntry)) throw error
    rejection = error.message
  } finally {
    archive.closeFile()
  }
  return {
    stored: entries.flatMap((_, index) => stored.get(index) ?? []),
    ...(rejection !== undefined && { rejection }),
  }
}

function inflateWhole(archive: ArchiveFile, entry: ArchiveEntry): Buffer {
  const packed = archive.bytes(entry.start, entry.length)
  const bytes = entry.method === 'stored' ? packed : inflate(packed, entry)
  if (bytes.length !== entry.size) throw wrongSize(entry)
  if (zlib.crc32(bytes) !== entry.crc32) throw wrongChecksum(entry)
  return bytes
}

function inflate(packed: Buffer, entry: ArchiveEntry): Buffer {
  try {
    // The limit ends a bomb at its announced size; one byte more is enough to know that it lies.
    const maxOutputLength = entry.size + 1
    return zlib.inflateRawSync(packed, { maxOutputLength, chunkSize: Math.max(maxOutputLength, MIN_CHUNK_BYTES) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw wrongSize(entry)
    throw new BadEntry(`Entry ${quotePath(entry.path)} cannot be unpacked: ${(error as Error).message}.`)
  }
}

async function inflateInto(blobs: Store, archive: ArchiveFile, entry: ArchiveEntry): Promise<StoredBlob> {
  const writer = await blobs.writer()
  let size = 0
  let checksum = 0
  const store = async (chunk: Buffer): Promise<void> => {
    size += chunk.length
    if (size > entry.size) throw wrongSize(entry)
    checksum = zlib.crc32(chunk, checksum)
    await writer.write(chunk)
  }
  const end = entry.start + entry.length
  try {
    if (entry.method === 'stored') await archive.eachChunk(entry.start, end, store)
    else
      await pipeline(Readable.from(archive.chunks(entry.start, end)), zlib.createInflateRaw(), async (chunks) => {
        for await (const chunk of chunks as AsyncIterable<Buffer>) await store(chunk)
      })
    if (size !== entry.size) throw wrongSize(entry)
    if (checksum !== entry.crc32) throw wrongChecksum(entry)
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    if ((error as NodeJS.ErrnoException).code?.startsWith('Z_')) {
      throw new BadEntry(`Entry ${quotePath(entry.path)} cannot be unpacked: ${(error as Error).message}.`)
    }
    throw error
  }
}

function wrongSize(entry: ArchiveEntry): BadEntry {
  return new BadEntry(`Entry ${quotePath(entry.path)} does not unpack to the ${entry.size} bytes that it announces.`)
}

function wrongChecksum(entry: ArchiveEntry): BadEntry {
  return new BadEntry(`Entry ${quotePath(entry.path)} has a wrong checksum; the archive is damaged.`)
}
