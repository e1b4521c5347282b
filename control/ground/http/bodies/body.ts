/** The body of a request as a stream with true back-pressure, and read whole up to a cap. */
import { Readable } from 'node:stream'
import type { Request as ServerRequest } from 'hyper-express'
import { errors } from '../../../../shared/contracts/errors.ts'

/**
 * A body must arrive at this pace, counted over the time in which we wait for it: the slowest line in use is
 * ten times as fast. Time in which we are busy with what came is ours.
 */
export interface Pace {
  readonly minBytesPerMs: number
  readonly graceMs: number
}
export const PACE: Pace = { minBytesPerMs: 1, graceMs: 15_000 }
/** A whole body; a large upload over a thin line is legitimate. */
const MAX_BODY_MS = 3_600_000
const PACE_CHECK_MS = 500

/** Thrown inside handlers when the caller has left. */
export class CallerLeft extends Error {
  constructor() {
    super('The caller closed the connection.')
  }
}

/**
 * hyper-express's own stream flows again whenever its inner buffer runs low, also while a pipe waits
 * for its destination. Reading it in paused mode keeps the pace of this stream's reader.
 */
export function bodyStream(request: ServerRequest, onBytes: (count: number) => void, pace: Pace): Readable {
  // hyper-express never ends the stream of a body that is not there.
  if (!hasBody(request)) return Readable.from([])
  let wanted = false
  const body = new Readable({
    read() {
      wanted = true
      pump()
    },
    destroy(error, done) {
      clearInterval(paceCheck)
      done(error)
    },
  })
  const startedAt = performance.now()
  let received = 0
  let waitedMs = 0
  const paceCheck = setInterval(() => {
    if (wanted) waitedMs += PACE_CHECK_MS
    const isLate = performance.now() - startedAt > MAX_BODY_MS
    if (isLate || received < (waitedMs - pace.graceMs) * pace.minBytesPerMs) body.destroy(errors.bodyTooSlow())
  }, PACE_CHECK_MS)
  paceCheck.unref()
  body.once('end', () => clearInterval(paceCheck))
  function pump(): void {
    if (body.destroyed) return
    while (wanted) {
      const chunk: Buffer | null = request.read()
      if (chunk === null) return
      received += chunk.byteLength
      onBytes(chunk.byteLength)
      wanted = body.push(chunk)
    }
  }
  // Without this listener hyper-express ends an aborted body as if it were complete.
  request.on('error', () => body.destroy(new CallerLeft()))
  request.on('readable', pump)
  request.on('end', () => body.push(null))
  // A handler may fail before it reads: the error then has no taker.
  body.on('error', () => {})
  return body
}

function hasBody({ headers }: ServerRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Reads a body whole, up to `maxBytes`; `hold` hears of every chunk that is kept, and may refuse it. */
export async function readWhole(
  body: Readable,
  declared: string | undefined,
  maxBytes: number,
  hold: (bytes: number) => void,
): Promise<Buffer> {
  if (Number(declared ?? 0) > maxBytes) throw errors.bodyTooLarge(maxBytes)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > maxBytes) throw errors.bodyTooLarge(maxBytes)
    hold(chunk.byteLength)
    chunks.push(chunk)
  }
  const [first] = chunks
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, size)
}
