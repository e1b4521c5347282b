/**
 * The TLS port: TCP → who it is → limits → handshake (SNI over memory) → HTTP/2 or HTTP/1.1 by ALPN.
 * Every worker listens itself (`reusePort`): the kernel spreads connections, none passes through the primary.
 */
import net from 'node:net'
import tls, { type TLSSocket } from 'node:tls'
import type { CertificateIndex } from '../../certs/certificates.ts'
import type { CertificateBundle } from '../../shared/certificates/bundle.ts'
import type { VisitorIps } from './visitors/address.ts'
import { announced } from './visitors/announced.ts'
import { Connection, type ConnectionContext } from './connection.ts'
import { createHttp1Side, type Http1Handlers } from './http1/http1.ts'
import { createHttp2Side } from './http2/http2.ts'
import { inTurns } from './in-turns.ts'
import type { Network, NetworkLimits } from './visitors/limits.ts'
import { createOutgoing } from './outgoing/outgoing.ts'
import { rawSocketOf } from './raw-socket.ts'
import { HANDSHAKE_MS, IDLE_MS } from './timeouts.ts'
import { limitUnsent } from './outgoing/unsent.ts'

/** TLS 1.3 has no weak suites; of TLS 1.2 only forward-secret AEAD ones remain. */
export const TLS_OPTIONS = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  // Ours first: AES-128 is as good as AES-256 here and a third cheaper for both sides.
  honorCipherOrder: true,
  // Browsers bring keys for the first two; the hybrid keeps today's traffic closed to tomorrow's quantum computers.
  ecdhCurve: 'X25519MLKEM768:X25519:P-256:P-384',
  // Tickets of one worker are good at every other one, whichever certificate it has.
  sessionIdContext: 'dropway-edge',
} as const satisfies tls.SecureContextOptions

const LISTEN_BACKLOG = 4096

export interface TlsListenerDependencies extends Http1Handlers {
  readonly certificates: CertificateIndex
  readonly visitorIps: VisitorIps
  readonly limits: NetworkLimits
  /** For clients that send no name; they never reach SNICallback. */
  readonly fallback: CertificateBundle
  readonly ticketKeys: Buffer
  onRefusedConnection(): void
}

export interface TlsListener {
  listen(port: number, host: string): Promise<number>
  setTicketKeys(keys: Buffer): void
  setFallback(bundle: CertificateBundle): void
  connections(): { readonly http1: number; readonly http2: number }
  /** Bytes of answers that their readers have not taken yet. */
  heldBytes(): number
  /** No new connections; GOAWAY and `connection: close` to those that are there. Resolves when all have ended. */
  drain(maxMs: number): Promise<void>
}

export function createTlsListener(dependencies: TlsListenerDependencies): TlsListener {
  const { certificates, limits } = dependencies
  const outgoing = createOutgoing()
  const context: ConnectionContext = { ...dependencies, outgoing }
  const http1 = createHttp1Side(dependencies)
  const http2 = createHttp2Side(dependencies)
  let { ticketKeys } = dependencies
  const visitors = new WeakMap<net.Socket, { peer: string; network: Network }>()

  const tlsServer = tls.createServer({
    ...TLS_OPTIONS,
    ...dependencies.fallback,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: HANDSHAKE_MS,
    ticketKeys,
    SNICallback: (servername, done) => done(null, certificates.contextFor(servername)),
  })
  tlsServer.on('tlsClientError', (_error, socket) => socket.destroy())
  tlsServer.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => socket.destroy())
    const visitor = visitors.get(rawSocketOf(socket))
    if (visitor === undefined) return void socket.destroy()
    const connection = new Connection(socket, visitor.peer, visitor.network, context)
    if (socket.alpnProtocol === 'h2') http2.take(socket, connection)
    else http1.take(socket, connection)
  })

  // A handshake takes a millisecond of slow processors, and hundreds may come in one turn.
  const shakeHands = inTurns((socket: net.Socket) => {
    if (!socket.destroyed) tlsServer.emit('connection', socket)
  })
  const admit = (socket: net.Socket, peer: string): void => {
    const network = limits.of(peer)
    if (peer === '' || !limits.mayConnect(network)) {
      dependencies.onRefusedConnection()
      return void socket.destroy()
    }
    network.connections += 1
    socket.once('close', () => void (network.connections -= 1))
    visitors.set(socket, { peer, network })
    shakeHands(socket)
  }
  const server = net.createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: IDLE_MS }, (socket) => {
    socket.on('error', () => socket.destroy())
    announced(socket, dependencies.visitorIps, (peer) => admit(socket, peer))
  })

  return {
    async listen(port, host) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ port, host, backlog: LISTEN_BACKLOG, reusePort: true, exclusive: true }, resolve)
      })
      limitUnsent(server)
      return (server.address() as net.AddressInfo).port
    },
    setTicketKeys(keys) {
      ticketKeys = keys
      tlsServer.setTicketKeys(keys)
    },
    setFallback(bundle) {
      tlsServer.setSecureContext({ ...TLS_OPTIONS, ...bundle })
      tlsServer.setTicketKeys(ticketKeys)
    },
    connections: () => ({ http1: http1.connections(), http2: http2.sessions() }),
    heldBytes: outgoing.heldBytes,
    async drain(maxMs) {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
      http1.drain()
      http2.drain()
      const timer = setTimeout(() => {
        http1.destroy()
        http2.destroy()
      }, maxMs)
      await closed
      clearTimeout(timer)
    },
  }
}
