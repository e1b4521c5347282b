/**
 * Ends a connection after its last answer while its visitor still sends. Closed at once, it would be reset by the kernel
 * for what comes later, and the reset takes the answer with it (RFC 9112 §9.6). So it is closed for writing first; what
 * comes is thrown away until the visitor has heard of it, or for a moment.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

const LINGER_MS = 5000
/** TLS records: 16 MB of one who sends as programs do, a kilobyte of one who sends byte by byte. */
const MAX_THROWN_AWAY = 1000

const ending = new WeakSet<object>()

export function closeInStages(socket: Duplex, lastWords = ''): void {
  if (socket.writableEnded || socket.destroyed) return
  let thrownAway = 0
  // Nobody reads requests here any more.
  socket.removeAllListeners('data')
  socket.on('data', () => {
    thrownAway += 1
    if (thrownAway > MAX_THROWN_AWAY) socket.destroy()
  })
  socket.resume()
  // node:http may have stopped the connection below the stream, which knows nothing of it.
  socket._read(0)
  socket.end(lastWords)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
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
