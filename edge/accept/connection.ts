/** What is known about a connection for as long as it lasts. */
import type { TLSSocket } from 'node:tls'
import type { CertificateIndex } from '../../certs/certificates.ts'
import type { Exchange } from '../context.ts'
import type { VisitorIps } from './visitors/address.ts'
import type { Network, NetworkLimits } from './visitors/limits.ts'
import type { Lane, Outgoing } from './outgoing/outgoing.ts'

export interface ConnectionContext {
  readonly visitorIps: VisitorIps
  readonly limits: NetworkLimits
  readonly certificates: Pick<CertificateIndex, 'coversHost'>
  readonly outgoing: Outgoing
}

export class Connection {
  readonly lane: Lane
  /** Then the visitors are behind it, and its word about their addresses is taken. */
  readonly isTrustedProxy: boolean
  readonly #peer: string
  readonly #network: Network
  readonly #servername: string | false | undefined
  readonly #context: ConnectionContext
  // Browsers reuse a connection for one host, seldom for a few: the last answer is enough.
  #coveredHost: string | undefined

  /** `peer`: address of the socket's other end. */
  constructor(socket: TLSSocket, peer: string, network: Network, context: ConnectionContext) {
    this.lane = context.outgoing.lane(socket)
    this.isTrustedProxy = context.visitorIps.isTrusted(peer)
    this.#peer = peer
    this.#network = network
    this.#servername = (socket as { servername?: string | false }).servername
    this.#context = context
  }

  /** The visitor's address for a request with this `x-forwarded-for`. */
  visitor(forwardedFor: string | undefined): string {
    return this.#context.visitorIps.visitorOf(this.#peer, forwardedFor)
  }

  covers(host: string): boolean {
    if (host === this.#coveredHost) return true
    if (!this.#context.certificates.coversHost(this.#servername, host)) return false
    this.#coveredHost = host
    return true
  }

  mayRequest(forwardedFor: string | undefined): boolean {
    return this.#context.limits.mayRequest(this.#networkOf(forwardedFor))
  }

  mayDivide(forwardedFor: string | undefined, bytes: number): boolean {
    return this.#context.limits.mayDivide(this.#networkOf(forwardedFor), bytes)
  }

  /** Behind a proxy all visitors share one socket: there the visitor counts, not the peer. */
  #networkOf(forwardedFor: string | undefined): Network {
    return this.isTrustedProxy ? this.#context.limits.of(this.visitor(forwardedFor)) : this.#network
  }
}

/** The part of an exchange that its connection answers, whichever protocol it speaks. */
export abstract class ConnectionExchange implements Pick<Exchange, 'host' | 'ip' | 'named' | 'header'> {
  readonly connection: Connection
  host = ''

  constructor(connection: Connection) {
    this.connection = connection
  }

  abstract header(name: string): string | undefined

  named(host: string): void {
    this.host = host
  }

  get ip(): string {
    return this.connection.visitor(this.#forwardedFor)
  }

  countRequest(): boolean {
    return this.connection.mayRequest(this.#forwardedFor)
  }

  certificateCovers(host: string): boolean {
    return this.connection.covers(host)
  }

  protected mayDivide(bytes: number): boolean {
    return this.connection.mayDivide(this.#forwardedFor, bytes)
  }

  get #forwardedFor(): string | undefined {
    return this.connection.isTrustedProxy ? this.header('x-forwarded-for') : undefined
  }
}

export interface ExchangeHandlers {
  readonly onExchange: (exchange: Exchange) => void
  /** An answer begins; `status` is what the visitor sees. */
  readonly onAnswer: (exchange: Exchange, status: number) => void
}
