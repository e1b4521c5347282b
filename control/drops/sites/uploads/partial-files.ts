/** Bytes of one file on their way: in pieces to a partial file, or at once, and from there to the store if they are what was announced. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rm, stat, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { errors } from '../../../../shared/contracts/errors.ts'

/** arrivedBytes is how much of a file has come, none of one that has not begun. */
export async function arrivedBytes(file: string): Promise<number> {
  return stat(file).then(
    (stats) => stats.size,
    () => 0,
  )
}

/** What arrived, also when the caller went away in between. */
export async function readUpTo(maxSize: number, body: Readable): Promise<{ bytes: Buffer; failure?: Error }> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxSize) throw tooMany(maxSize)
      chunks.push(chunk)
    }
    return { bytes: Buffer.concat(chunks) }
  } catch (error) {
    return { bytes: Buffer.concat(chunks), failure: error as Error }
  }
}

function tooMany(announced: number): Error {
  return errors.invalidRequest(`The file was announced with ${announced} bytes; more arrived.`)
}

export function blobHash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Appends at `offset`; keeps what arrived when the caller goes away. Returns the size afterwards. */
export async function append(file: string, offset: number, maxSize: number, body: Readable): Promise<number> {
  await mkdir(path.dirname(file), { recursive: true })
  const size = await arrivedBytes(file)
  if (offset > size)
    throw errors.invalidRequest(`Only ${size} bytes have arrived so far; continue with upload-offset: ${size}.`)
  const handle = await open(file, size === 0 ? 'a+' : 'r+')
  let position = offset
  try {
    await handle.truncate(offset)
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (position + chunk.length > maxSize) throw tooMany(maxSize)
      await writeAll(handle, chunk, position)
      position += chunk.length
    }
  } finally {
    await handle.close()
  }
  return position
}

/** A single write may be short, for instance when the disk is nearly full. */
async function writeAll(handle: FileHandle, chunk: Buffer, position: number): Promise<void> {
  for (let at = 0; at < chunk.length;) {
    const { bytesWritten } = await handle.write(chunk, at, chunk.length - at, position + at)
    at += bytesWritten
  }
}

/** What is compared is what is stored: another control, which shares the folder, may be writing to the file. */
export async function storeVerified(blobs: BlobStore, partial: string, expected: string): Promise<void> {
  const hash = createHash('sha256')
  const writer = await blobs.writer()
  try {
    for await (const chunk of createReadStream(partial) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      await writer.write(chunk)
    }
    if (hash.digest('hex') !== expected) {
      await rm(partial, { force: true })
      throw errors.invalidRequest('The bytes do not match their sha256. Send the file again from the start.')
    }
    await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
  await rm(partial, { force: true })
}
