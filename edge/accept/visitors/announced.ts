/** Who is at the other end of a new connection: the peer itself, or whom a trusted balancer announces (proxy-header.ts). */
import type net from 'node:net'
import { normaliseIp } from '../../../shared/http/ip.ts'
import { HANDSHAKE_MS } from '../timeouts.ts'
import type { VisitorIps } from './address.ts'
import { readProxyHeader } from './proxy-header.ts'

/**
 * Calls `take` with the address that counts, at once for whoever is no trusted proxy. From a trusted one the first bytes
 * are awaited; what follows its header, or all of it where there is none, is there to be read again. A connection whose
 * header is broken or does not come is ended.
 */
export function announced(
  socket: net.Socket,
  visitorIps: Pick<VisitorIps, 'isTrusted'>,
  take: (peer: string) => void,
): void {
  const peer = normaliseIp(socket.remoteAddress ?? '')
  if (!visitorIps.isTrusted(peer)) return take(peer)
  const timer = setTimeout(() => socket.destroy(), HANDSHAKE_MS)
  let received: Buffer = Buffer.alloc(0)

  function onReadable(): void {
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const header = readProxyHeader(received)
    if (header.kind === 'unfinished') return
    stop()
    if (header.kind === 'broken') return void socket.destroy()
    const rest = header.kind === 'read' ? received.subarray(header.length) : received
    if (rest.length > 0) socket.unshift(rest)
    take(header.kind === 'read' ? (header.visitor ?? peer) : peer)
  }
  function stop(): void {
    clearTimeout(timer)
    socket.off('readable', onReadable)
    socket.off('end', onEnd)
    socket.off('close', stop)
  }
  function onEnd(): void {
    socket.destroy()
  }
  socket.on('readable', onReadable)
  socket.once('end', onEnd)
  socket.once('close', stop)
}
