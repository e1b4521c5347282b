/** Sends a file: 200, 206, 304, 412 or 416. */
import { once } from 'node:events'
import { addAbortSignal, type Readable } from 'node:stream'
import { randomBytes } from 'node:crypto'
import { pacedStream } from '../../shared/blobs/blob-store.ts'
import type { Exchange, HeaderList } from '../context.ts'
import { evaluate } from './preconditions.ts'
import { headerOf, type Representation } from './representation.ts'
import type { ByteRange } from '../../shared/blobs/blob-store.ts'

/** What a file is asked for and answered with. */
export type FileExchange = Pick<Exchange, 'method' | 'header' | 'send' | 'stream'>

/** What was sent, for the view count. */
export type Sent = 'content' | 'not-modified' | 'other'

/** A 404 page is sent whole: conditions and ranges are about what was asked for, and that is not there. */
export function sendFile(exchange: FileExchange, status: 200 | 404, file: Representation): Sent | Promise<Sent> {
  const outcome = status === 404 ? WHOLE : evaluate(preconditionsOf(exchange), file)
  switch (outcome.kind) {
    case 'whole':
      return sendWhole(exchange, status, file)
    case 'not-modified':
      exchange.send(304, file.notModified, undefined)
      return 'not-modified'
    case 'precondition-failed':
      exchange.send(412, [...file.always, ...EMPTY], undefined)
      return 'other'
    case 'unsatisfiable':
      exchange.send(416, ['content-range', `bytes */${file.size}`, ...file.always, ...EMPTY], undefined)
      return 'other'
    case 'ranges':
      return outcome.ranges.length === 1
        ? sendRange(exchange, file, outcome.ranges[0])
        : sendRanges(exchange, file, outcome.ranges)
    default:
      return outcome satisfies never
  }
}

const WHOLE = { kind: 'whole' } as const
const EMPTY = ['content-length', '0'] as const

function preconditionsOf(exchange: FileExchange): Parameters<typeof evaluate>[0] {
  return {
    method: exchange.method,
    ifMatch: exchange.header('if-match'),
    ifNoneMatch: exchange.header('if-none-match'),
    ifRange: exchange.header('if-range'),
    range: exchange.header('range'),
  }
}

function sendWhole(exchange: FileExchange, status: number, file: Representation): Sent | Promise<Sent> {
  const { source } = file
  if (exchange.method === 'HEAD') exchange.send(status, file.whole, undefined)
  else if ('stream' in source) return sendStream(exchange, status, file.whole, source.stream(), file.size, 'content')
  else {
    const bytes = source.bytes()
    if (bytes === undefined) return source.load().then((loaded) => sent(exchange, status, file.whole, loaded))
    exchange.send(status, file.whole, bytes)
  }
  return 'content'
}

function sent(exchange: FileExchange, status: number, headers: HeaderList, bytes: Buffer): Sent {
  exchange.send(status, headers, bytes)
  return 'content'
}

/** Waits for the first bytes: a blob that is missing must answer 500, not a broken 200. */
async function sendStream(
  exchange: FileExchange,
  status: number,
  headers: HeaderList,
  source: Readable,
  length: number,
  sent: Sent,
): Promise<Sent> {
  await once(source, 'readable')
  exchange.stream(status, headers, source, length)
  return sent
}

async function sendRange(exchange: FileExchange, file: Representation, range: ByteRange): Promise<Sent> {
  const length = range.end - range.start + 1
  const headers = [...file.headers, 'content-range', contentRange(range, file.size), 'content-length', String(length)]
  const { source } = file
  if ('stream' in source) return sendStream(exchange, 206, headers, source.stream(range), length, 'other')
  exchange.send(206, headers, (source.bytes() ?? (await source.load())).subarray(range.start, range.end + 1))
  return 'other'
}

/** RFC 9110 §14.6: each part with its own range, in the order asked for. */
async function sendRanges(exchange: FileExchange, file: Representation, ranges: readonly ByteRange[]): Promise<Sent> {
  const boundary = randomBytes(12).toString('hex')
  const type = headerOf(file.headers, 'content-type') ?? 'application/octet-stream'
  const parts = ranges.map((range) => ({
    range,
    head: Buffer.from(
      `\r\n--${boundary}\r\ncontent-type: ${type}\r\ncontent-range: ${contentRange(range, file.size)}\r\n\r\n`,
    ),
  }))
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  const length = parts.reduce((sum, { head, range }) => sum + head.length + range.end - range.start + 1, tail.length)
  const headers = [
    ...without(file.headers, 'content-type'),
    'content-type',
    `multipart/byteranges; boundary=${boundary}`,
    'content-length',
    String(length),
  ]
  const { source } = file
  if ('stream' in source) {
    const stream = pacedStream((left) =>
      streamParts((range) => addAbortSignal(left, source.stream(range)), parts, tail),
    )
    return sendStream(exchange, 206, headers, stream, length, 'other')
  }
  const bytes = source.bytes() ?? (await source.load())
  exchange.send(
    206,
    headers,
    Buffer.concat([...parts.flatMap(({ head, range }) => [head, bytes.subarray(range.start, range.end + 1)]), tail]),
  )
  return 'other'
}

/** A part is announced when its first bytes are there, see sendStream. */
async function* streamParts(
  open: (range: ByteRange) => Readable,
  parts: readonly { readonly range: ByteRange; readonly head: Buffer }[],
  tail: Buffer,
): AsyncGenerator<Buffer> {
  for (const { range, head } of parts) {
    let isAnnounced = false
    for await (const chunk of open(range) as AsyncIterable<Buffer>) {
      if (!isAnnounced) yield head
      isAnnounced = true
      yield chunk
    }
  }
  yield tail
}

function contentRange({ start, end }: ByteRange, size: number): string {
  return `bytes ${start}-${end}/${size}`
}

function without(headers: HeaderList, name: string): string[] {
  return headers.filter((_, index) => headers[index - (index % 2)] !== name)
}
