/** Forms with files: one streamed from disk, or many small ones from memory. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Body } from './http-client.ts'

export interface Form {
  readonly body: Body
  readonly headers: Readonly<Record<string, string>>
}

export async function fileForm(file: string, fields: Readonly<Record<string, string>> = {}): Promise<Form> {
  const boundary = newBoundary()
  const texts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const head = texts.join('') + partHead(boundary, 'file', path.basename(file).replaceAll('"', '%22'))
  const tail = `\r\n--${boundary}--\r\n`
  const { size } = await stat(file)
  return {
    body: () => Readable.from(joined(head, file, tail)),
    headers: {
      ...typeOf(boundary),
      'content-length': String(Buffer.byteLength(head) + size + Buffer.byteLength(tail)),
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

async function* joined(head: string, file: string, tail: string): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  yield* createReadStream(file) as AsyncIterable<Buffer>
  yield Buffer.from(tail)
}
