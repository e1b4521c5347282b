/** A form with one file, streamed from disk. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'

export interface Form {
  readonly body: Readable
  readonly headers: Readonly<Record<string, string>>
}

export async function fileForm(file: string, fields: Readonly<Record<string, string>> = {}): Promise<Form> {
  const boundary = `dropway-${randomUUID()}`
  const texts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const filename = path.basename(file).replaceAll('"', '%22')
  const head = `${texts.join('')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${filename}"\r\ncontent-type: application/octet-stream\r\n\r\n`
  const tail = `\r\n--${boundary}--\r\n`
  const { size } = await stat(file)
  return {
    body: Readable.from(joined(head, file, tail)),
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(Buffer.byteLength(head) + size + Buffer.byteLength(tail)),
    },
  }
}

async function* joined(head: string, file: string, tail: string): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  yield* createReadStream(file) as AsyncIterable<Buffer>
  yield Buffer.from(tail)
}
