/** What Node's types do not show of a connection: the socket below TLS, on which limits are counted, and what ends or reads it. */
import type net from 'node:net'
import type { TLSSocket } from 'node:tls'

/** A TLSSocket made over a net.Socket keeps it here. */
export function rawSocketOf(socket: TLSSocket): net.Socket {
  return (socket as unknown as { _parent: net.Socket })._parent
}

/**
 * Ends a connection whose visitor takes nothing. An orderly end would come after what is queued, so the visitor would
 * never see it and the kernel would keep the queue; a reset (RFC 9293 §3.10.5) gives everything back at once.
 */
export function resetConnection(socket: TLSSocket): void {
  if (socket.destroyed) return
  rawSocketOf(socket).resetAndDestroy()
  socket.destroy()
}

/** For a connection that is about to end: what its visitor still sends stays in the kernel, resumed or not. */
export function stopReading(socket: TLSSocket): void {
  const { _handle: handle } = rawSocketOf(socket) as unknown as { _handle: { readStop(): void } | null }
  handle?.readStop()
}

/**
 * A stream looks for more after each chunk, in a turn of its own. What comes from a connection comes by itself, and needs no
 * such look: node:http and node:http2 do without in the same way, by the flag that says that the stream is looking already.
 */
export function readsByItself(socket: TLSSocket, isSo: boolean): void {
  const { _readableState: state } = socket as unknown as { readonly _readableState: { readingMore: boolean } }
  state.readingMore = isSo
}
