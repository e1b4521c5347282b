/** The body of a request as a stream with true back-pressure, and read whole up to a cap. */
import { Readable } from 'node:stream'
import type { Request as ServerRequest } from 'hyper-express'
import { ApiError } from '../../shared/errors.ts'

/** A caller that sends nothing for this long has gone, or pretends to. */
const BODY_IDLE_MS = 60_000

/** Thrown inside handlers when nobody is left to answer. */
export class CallerLeft extends Error {
  constructor() {
    super('The caller closed the connection.')
  }
}

/**
 * hyper-express's own stream flows again whenever its inner buffer runs low, also while a pipe waits
 * for its destination. Reading it in paused mode keeps the pace with whoever reads this one.
 */
export function bodyStream(request: ServerRequest, onBytes: (count: number) => void): Readable {
  // hyper-express never ends the stream of a body that is not there.
  if (!hasBody(request)) return Readable.from([])
  let wanted = false
  const body = new Readable({
    read() {
      wanted = true
      pump()
    },
    destroy(error, done) {
      clearTimeout(idle)
      done(error)
    },
  })
  const idle = setTimeout(
    () => body.destroy(new ApiError(408, 'timeout', 'The body stopped arriving. Send it again.')),
    BODY_IDLE_MS,
  )
  idle.unref()
  function pump(): void {
    if (body.destroyed) return
    idle.refresh()
    while (wanted) {
      const chunk: Buffer | null = request.read()
      if (chunk === null) return
      onBytes(chunk.byteLength)
      wanted = body.push(chunk)
    }
  }
  // Without this listener hyper-express ends an aborted body as if it were complete.
  request.on('error', () => body.destroy(new CallerLeft()))
  request.on('readable', pump)
  request.on('end', () => body.push(null))
  // A handler may fail before it reads: the error then belongs to nobody.
  body.on('error', () => {})
  return body
}

function hasBody({ headers }: ServerRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

export async function readWhole(body: Readable, declared: string | undefined, maxBytes: number): Promise<Buffer> {
  if (Number(declared ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > maxBytes) throw bodyTooLarge(maxBytes)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
}

function bodyTooLarge(maxBytes: number): ApiError {
  return new ApiError(413, 'upload_too_large', `The body is larger than ${maxBytes} bytes.`)
}
