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

export function closeInStages(socket: Duplex, lastWords = ''): void {
  let thrownAway = 0
  // Nobody reads requests here any more.
  socket.removeAllListeners('data')
  socket.on('data', () => {
    thrownAway += 1
    if (thrownAway > MAX_THROWN_AWAY) socket.destroy()
  })
  socket.resume()
  socket.end(lastWords, () => {
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(timer))
  })
}

/** Of a body that is not wanted nothing is kept, and its connection ends after the answer. */
export function endAfterAnswer(request: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = false
  if (!isStillSent(request)) return
  const { socket } = request
  // What node:http calls then.
  socket.destroySoon = () => closeInStages(socket)
}

/** Of a request without a body node:http says only later that it is complete. */
export function isStillSent({ complete, headers }: IncomingMessage): boolean {
  return !complete && ((headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined)
}
