/** What is known about a connection for as long as it lasts. */
import type { TLSSocket } from 'node:tls'
import type { CertificateIndex } from '../../certs/certificates.ts'
import type { Exchange } from '../context.ts'
import type { VisitorIps } from './address.ts'
import type { Network, NetworkLimits } from './limits.ts'
import type { Lane, Outgoing } from './outgoing.ts'

export interface Connection {
  /** Address of the socket's other end. */
  readonly peer: string
  /** The visitor's address for a request with this `x-forwarded-for`. */
  visitor(forwardedFor: string | undefined): string
  isTrustedProxy(): boolean
  covers(host: string): boolean
  mayRequest(forwardedFor: string | undefined): boolean
  mayDivide(forwardedFor: string | undefined, bytes: number): boolean
  readonly lane: Lane
}

export interface ConnectionContext {
  readonly visitorIps: VisitorIps
  readonly limits: NetworkLimits
  readonly certificates: Pick<CertificateIndex, 'coversHost'>
  readonly outgoing: Outgoing
}

export function describeConnection(
  socket: TLSSocket,
  peer: string,
  network: Network,
  context: ConnectionContext,
): Connection {
  const { visitorIps, limits, certificates, outgoing } = context
  const servername = (socket as { servername?: string | false }).servername
  const isTrusted = visitorIps.isTrusted(peer)
  // Browsers reuse a connection for one host, seldom for a few: the last answer is enough.
  let coveredHost: string | undefined
  // Behind a proxy all visitors share one socket: there the visitor counts, not the peer.
  const networkOf = (forwardedFor: string | undefined): Network =>
    isTrusted ? limits.of(visitorIps.visitorOf(peer, forwardedFor)) : network
  return {
    peer,
    lane: outgoing.lane(socket),
    visitor: (forwardedFor) => visitorIps.visitorOf(peer, forwardedFor),
    isTrustedProxy: () => isTrusted,
    covers(host) {
      if (host === coveredHost) return true
      if (!certificates.coversHost(servername, host)) return false
      coveredHost = host
      return true
    },
    mayRequest: (forwardedFor) => limits.mayRequest(networkOf(forwardedFor)),
    mayDivide: (forwardedFor, bytes) => limits.mayDivide(networkOf(forwardedFor), bytes),
  }
}

export interface ExchangeHandlers {
  readonly onExchange: (exchange: Exchange) => void
  /** An answer begins; `status` is what the visitor sees. */
  readonly onAnswer: (exchange: Exchange, status: number) => void
}
