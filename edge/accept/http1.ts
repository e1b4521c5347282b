/** HTTP/1.1 visitors. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { ReceivedRequest } from '../../shared/received-request.ts'
import type { Exchange, HeaderList } from '../context.ts'
import type { Connection, ExchangeHandlers } from './connection.ts'
import { resetConnection, stopReading } from './raw-socket.ts'
import { readForm } from './read-form.ts'
import { HEADERS_MS, IDLE_MS, KEEP_ALIVE_MS, MAX_HEADER_BYTES, PROXIED_IDLE_MS, REQUEST_MS } from './timeouts.ts'

const CHECK_TIMEOUTS_MS = 2000
const MAX_HEADER_LINES = 128
/** Browsers send none ahead, programs a handful. */
const MAX_PIPELINED = 256
const PIPELINED_PER_TURN = 16

export interface Http1Side {
  take(socket: TLSSocket, connection: Connection): void
  /** Idle connections end now, busy ones after their answer. */
  drain(): void
  destroy(): void
  connections(): number
}

const kConnection = Symbol('connection')
const kPipeline = Symbol('pipeline')
type KnownSocket = TLSSocket & { [kConnection]: Connection; [kPipeline]?: Pipeline }

export function createHttp1Side({ onExchange, onAnswer }: ExchangeHandlers): Http1Side {
  const sockets = new Set<KnownSocket>()
  let draining = false
  const server = http.createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
    // classify answers a missing or repeated Host itself, with a page.
    requireHostHeader: false,
  })
  server.maxHeadersCount = MAX_HEADER_LINES
  server.timeout = IDLE_MS
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    if (draining) response.shouldKeepAlive = false
    const connection = (request.socket as KnownSocket)[kConnection]
    onExchange(new Http1Exchange(request as ReceivedRequest, response, connection, onAnswer))
  }
  server.on('request', (request, response) => {
    // Without a socket it stands behind the answer to an earlier request of the same connection.
    if (response.socket === null) pipelineOf(request.socket as KnownSocket, take).push(request, response)
    else take(request, response)
  })
  server.on('connect', (_request, socket) => refuse(socket, '405 Method Not Allowed', 'allow: GET, HEAD\r\n'))
  server.on('clientError', onClientError)
  server.on('timeout', (socket: unknown) => endSilent(socket as TLSSocket))
  // Never listens (sockets come from the TLS side), but this is what starts its check for slow senders.
  server.emit('listening')
  return {
    take(fresh, connection) {
      const socket: KnownSocket = Object.assign(fresh, { [kConnection]: connection })
      sockets.add(socket)
      connection.lane.whenStalled(() => resetConnection(socket))
      socket.once('close', () => sockets.delete(socket))
      server.emit('connection', socket)
    },
    drain() {
      draining = true
      server.closeIdleConnections()
    },
    destroy() {
      for (const socket of sockets) socket.destroy()
    },
    connections: () => sockets.size,
  }
}

type Take = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Requests that came before the answers to earlier ones. Ten thousand fit into what is read in one turn: a few are
 * answered per turn, others in between. A visitor who sends more than any browser does is refused.
 */
class Pipeline {
  readonly #take: Take
  #waiting: [IncomingMessage, ServerResponse][] = []
  #isClosed = false

  constructor(take: Take) {
    this.#take = take
  }

  push(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isClosed) return
    if (this.#waiting.length === 0) setImmediate(() => this.#proceed())
    this.#waiting.push([request, response])
    if (this.#waiting.length < MAX_PIPELINED) return
    this.#isClosed = true
    response.shouldKeepAlive = false
    // Node makes an Error of every request that is open when its connection ends: 10,000 of them took seconds.
    stopReading(request.socket as TLSSocket)
  }

  #proceed(): void {
    for (const [request, response] of this.#waiting.splice(0, PIPELINED_PER_TURN)) {
      if (request.socket.destroyed) return void (this.#waiting = [])
      if (this.#isClosed && this.#waiting.length === 0) return refuseNext(response)
      this.#take(request, response)
    }
    if (this.#waiting.length > 0) setImmediate(() => this.#proceed())
  }
}

function pipelineOf(socket: KnownSocket, take: Take): Pipeline {
  return (socket[kPipeline] ??= new Pipeline(take))
}

function refuseNext(response: ServerResponse): void {
  response.writeHead(429, [
    'content-length',
    '0',
    'cache-control',
    'no-store',
    'retry-after',
    '5',
    'connection',
    'close',
  ])
  response.end()
}

const PARSE_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  refuse(socket, PARSE_ERRORS[error.code ?? ''] ?? '400 Bad Request', '')
}

/** Before there is a request that a page could answer. */
function refuse(socket: Duplex, status: string, headers: string): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(
    `HTTP/1.1 ${status}\r\n${headers}content-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n`,
  )
}

function endSilent(socket: TLSSocket): void {
  if (socket.writableLength > 0) resetConnection(socket)
  else socket.destroy()
}

class Http1Exchange implements Exchange {
  readonly method: string
  readonly target: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #connection: Connection
  readonly #onAnswer: ExchangeHandlers['onAnswer']
  readonly #authority: string | undefined
  #host = ''

  constructor(
    request: ReceivedRequest,
    response: ServerResponse,
    connection: Connection,
    onAnswer: ExchangeHandlers['onAnswer'],
  ) {
    this.#onAnswer = onAnswer
    this.#request = request
    this.#response = response
    this.#connection = connection
    const { method, url } = request
    this.method = method
    const absolute = url.charCodeAt(0) === SLASH ? undefined : splitAbsoluteForm(url)
    this.target = absolute === undefined ? url : absolute.target
    this.#authority = hostOf(request.rawHeaders, absolute?.authority)
  }

  get host(): string {
    return this.#host
  }

  get ip(): string {
    return this.#connection.visitor(this.header('x-forwarded-for'))
  }

  get authority(): string | undefined {
    return this.#authority
  }

  countRequest(): boolean {
    return this.#connection.mayRequest(this.#connection.isTrustedProxy() ? this.header('x-forwarded-for') : undefined)
  }

  get isAnswered(): boolean {
    return this.#response.headersSent || this.#response.destroyed
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }

  certificateCovers(host: string): boolean {
    return this.#connection.covers(host)
  }

  settle(host: string): void {
    this.#host = host
  }

  send(status: number, headers: HeaderList, body: Buffer | undefined): void {
    const response = this.#response
    if (response.destroyed) return
    this.#stopBody()
    this.#onAnswer(this, status)
    response.writeHead(status, headers as string[])
    if (body === undefined || this.method === 'HEAD') return void response.end()
    this.#connection.lane.end(response, body)
  }

  stream(status: number, headers: HeaderList, source: Readable, length: number): void {
    const response = this.#response
    if (response.destroyed) return void source.destroy()
    this.#stopBody()
    this.#onAnswer(this, status)
    response.writeHead(status, headers as string[])
    this.#connection.lane.pump(source, response, length)
  }

  relay(status: number, headers: HeaderList, source: Readable): void {
    const response = this.#response
    if (response.destroyed) return void source.destroy()
    this.#onAnswer(this, status)
    // A connection that closes while its visitor still sends would take the answer with it.
    const isLast = this.#request.httpVersionMinor === 0 || (!response.shouldKeepAlive && this.#request.complete)
    response.writeHead(status, [...headers, 'connection', isLast ? 'close' : 'keep-alive'])
    this.#connection.lane.relay(source, response)
  }

  countPiece(bytes: number): void {
    const forwardedFor = this.#connection.isTrustedProxy() ? this.header('x-forwarded-for') : undefined
    if (!this.#connection.mayDivide(forwardedFor, bytes)) refuse(this.#request.socket, '400 Bad Request', '')
  }

  /** An unwanted body is not read: the connection ends after the answer instead. */
  #stopBody(): void {
    if (!this.#request.complete && hasBody(this.#request)) this.#response.shouldKeepAlive = false
  }

  readForm(maxBytes: number): Promise<Buffer | undefined> {
    return readForm(this.#request, maxBytes, (bytes) => this.countPiece(bytes))
  }

  forProxy(): { request: IncomingMessage; response: ServerResponse } {
    this.#request.socket.setTimeout(PROXIED_IDLE_MS)
    return { request: this.#request, response: this.#response }
  }
}

const SLASH = 47

function hasBody(request: IncomingMessage): boolean {
  return request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
}

/** RFC 9112 §3.2.2: absolute-form is legal; what it names must not differ from Host (we never switch hosts for it). */
export function splitAbsoluteForm(url: string): { authority: string; target: string } | undefined {
  const [, authority, rest = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? []
  if (authority === undefined) return undefined
  return { authority, target: rest.startsWith('/') ? rest : `/${rest}` }
}

/** The one Host of a request; undefined when it is missing, repeated, or not what an absolute target says. */
export function hostOf(rawHeaders: readonly string[], absolute: string | undefined): string | undefined {
  let host: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue
    if (host !== undefined) return undefined
    host = rawHeaders[index + 1]
  }
  if (absolute !== undefined && absolute.toLowerCase() !== host?.toLowerCase()) return undefined
  return host
}
