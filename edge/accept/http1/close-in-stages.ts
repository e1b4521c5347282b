/**
 * Ends a connection after its last answer while its visitor still sends. Closed at once, it would be reset by the kernel
 * for what comes later, and the reset takes the answer with it (RFC 9112 §9.6). So it is closed for writing first; what
 * comes is thrown away, within bounds, until the visitor has heard of it: many programs send a whole upload before they
 * read a byte of the answer that refused it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A visitor who sends nothing for this long has heard, or never will. */
const QUIET_MS = 5000
/** However steadily a visitor sends. */
const MAX_LINGER_MS = 60_000
/** More than most uploads; opening it costs a worker some tenths of a second. */
const MAX_THROWN_BYTES = 128_000_000
/** A TLS record counts as a full one, whatever it holds: a visitor who sends byte by byte is heard for 8,000 of them. */
const MIN_RECORD_BYTES = 16_000

const ending = new WeakSet<object>()

export function closeInStages(socket: Duplex, lastWords = ''): void {
  if (socket.writableEnded || socket.destroyed) return
  let pieces = 0
  const quiet = setTimeout(() => {
    const before = pieces
    // What came while this process stood still is read before the end of this turn.
    setImmediate(() => pieces === before && socket.destroy())
  }, QUIET_MS)
  const end = setTimeout(() => socket.destroy(), MAX_LINGER_MS)
  throwAway(socket, () => {
    pieces += 1
    quiet.refresh()
  })
  socket.end(lastWords)
  socket.once('close', () => {
    clearTimeout(quiet)
    clearTimeout(end)
  })
}

/** Nobody reads requests of this connection any more. */
export function throwAway(socket: Duplex, onPiece = (): unknown => undefined): void {
  let thrownBytes = 0
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => {
    thrownBytes += Math.max(chunk.length, MIN_RECORD_BYTES)
    onPiece()
    if (thrownBytes > MAX_THROWN_BYTES) socket.destroy()
  })
  socket.resume()
  // node:http may have stopped the connection below the stream, which knows nothing of it.
  socket._read(0)
}

/** Keeps nothing of a body that is not wanted, and ends its connection after the answer. */
export function endAfterAnswer({ socket }: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = false
  ending.add(socket)
  // What node:http calls then.
  socket.destroySoon = () => closeInStages(socket)
}

/** Its last answer is under way. */
export function isEnding(socket: Duplex): boolean {
  return ending.has(socket)
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined
}
