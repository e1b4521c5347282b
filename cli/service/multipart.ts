/** Forms with files: one streamed from disk, or many small ones from memory. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { changedMeanwhile, unreadable } from '../terminal/failure.ts'
import type { Body } from './http-client.ts'

export interface Form {
  readonly body: Body
  readonly headers: Readonly<Record<string, string>>
}

/** One file of the size that it had when it was looked at. */
export function fileForm(announced: AnnouncedFile, fields: Readonly<Record<string, string>> = {}): Form {
  const boundary = newBoundary()
  const texts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const head = texts.join('') + partHead(boundary, 'file', announced.path.replaceAll('"', '%22'))
  const tail = `\r\n--${boundary}--\r\n`
  return {
    body: () => Readable.from(joined(head, announced, tail), { objectMode: false }),
    headers: {
      ...typeOf(boundary),
      'content-length': String(Buffer.byteLength(head) + announced.size + Buffer.byteLength(tail)),
    },
  }
}

/** Contents by the name of their part. */
export function contentsForm(contents: ReadonlyMap<string, Buffer>): Form {
  const boundary = newBoundary()
  const pieces: Buffer[] = []
  for (const [name, content] of contents)
    pieces.push(Buffer.from(partHead(boundary, name, 'blob')), content, Buffer.from('\r\n'))
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return { body: Buffer.concat(pieces), headers: typeOf(boundary) }
}

function newBoundary(): string {
  return `dropway-${randomUUID()}`
}

function typeOf(boundary: string): Record<string, string> {
  return { 'content-type': `multipart/form-data; boundary=${boundary}` }
}

function partHead(boundary: string, name: string, filename: string): string {
  return `--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\ncontent-type: application/octet-stream\r\n\r\n`
}

async function* joined(head: string, file: AnnouncedFile, tail: string): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  yield* announcedBytes(file)
  yield Buffer.from(tail)
}

export interface AnnouncedFile {
  /** How the person knows it. */
  readonly path: string
  readonly file: string
  readonly size: number
}

const READ_CHUNK_BYTES = 256_000

/**
 * The bytes of a file from `start` on, exactly as many as were announced: the service waits for those, and takes what
 * comes beyond them for the next request. A file that vanished or changed is named.
 */
export async function* announcedBytes({ path: name, file, size }: AnnouncedFile, start = 0): AsyncGenerator<Buffer> {
  let position = start
  try {
    const range = { start, end: size - 1, highWaterMark: READ_CHUNK_BYTES }
    const chunks: AsyncIterable<Buffer> | [] = size > start ? createReadStream(file, range) : []
    for await (const chunk of chunks) {
      position += chunk.length
      yield chunk
    }
    if (position !== size || (await stat(file)).size !== size) throw changedMeanwhile(name)
  } catch (error) {
    throw unreadable(name, error)
  }
}
