/** HTTP/1.1 visitors: plain requests are answered directly, node:http has the others. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_HEADER_BYTES } from '../../../shared/contracts/limits.ts'
import { nodeHttp } from '../../../shared/http/node-http.ts'
import type { ReceivedRequest } from '../../../shared/http/received-request.ts'
import type { Connection, ExchangeHandlers } from '../connection.ts'
import { createHttpDate } from '../messages/http-date.ts'
import { inTurns } from '../in-turns.ts'
import { resetConnection } from '../raw-socket.ts'
import { CHECK_SLOW_MS, HEADERS_MS, IDLE_MS, KEEP_ALIVE_MS, REQUEST_MS } from '../timeouts.ts'
import { createAnswerHeads } from './answer-head.ts'
import { DirectConnection, type DirectContext } from './direct.ts'
import { NodeExchange } from './node-exchange.ts'
import { Pipeline } from './pipelined.ts'
import { refuse, refuseInTurn } from './refuse.ts'

const MAX_HEADER_LINES = 128

export interface Http1Side {
  take(socket: TLSSocket, connection: Connection): void
  /** Idle connections end now, or within a second where a first request may be on its way; busy ones after their answer. */
  drain(): void
  destroy(): void
  connections(): number
}

export interface Http1Handlers extends ExchangeHandlers {
  /** Control answers what is asked of this host. */
  isService(authority: string): boolean
}

export function createHttp1Side({ onExchange, onAnswer, isService }: Http1Handlers): Http1Side {
  const taken = new Map<object, DirectConnection>()
  const pipelines = new WeakMap<object, Pipeline>()
  const endSoon = inTurns((reading: DirectConnection) => reading.drain())
  let draining = false
  const server = nodeHttp.createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_SLOW_MS,
    // classify answers a missing or repeated Host itself, with a page.
    requireHostHeader: false,
  })
  server.maxHeadersCount = MAX_HEADER_LINES
  server.timeout = IDLE_MS
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    const direct = taken.get(request.socket)
    if (direct === undefined) return
    direct.onHeadRead(request, isService(request.headers.host ?? ''))
    // Node reads nothing behind an upgrade that was not taken.
    if ((draining && response === direct.lastAnswer) || request.headers.upgrade !== undefined)
      response.shouldKeepAlive = false
    onExchange(new NodeExchange(request as ReceivedRequest, response, direct.connection, onAnswer))
  }
  const pipelineOf = (socket: object): Pipeline => {
    let pipeline = pipelines.get(socket)
    if (pipeline === undefined) pipelines.set(socket, (pipeline = new Pipeline(take)))
    return pipeline
  }
  const receive = (request: IncomingMessage, response: ServerResponse): void => {
    taken.get(request.socket)?.answering(response)
    // Without a socket it stands behind the answer to an earlier request of the same connection.
    if (response.socket === null) pipelineOf(request.socket).push(request, response)
    else take(request, response)
  }
  server.on('request', receive)
  // Their body is asked for by who wants it: mostly nobody does.
  server.on('checkContinue', receive)
  server.on('connect', (_request, socket) => refuse(socket, '405 Method Not Allowed', 'allow: GET, HEAD\r\n'))
  server.on('clientError', (error, socket) => onClientError(error, socket, taken.get(socket)?.beginsForApi() ?? false))
  server.on('timeout', (socket: unknown) => endSilent(socket as TLSSocket))
  // Never listens (sockets come from the TLS side), but this is what starts its check for slow senders.
  server.emit('listening')

  const direct: DirectContext = {
    onExchange,
    onAnswer,
    isService,
    heads: createAnswerHeads(createHttpDate()),
    isDraining: () => draining,
    onTooSlow: (socket) => refuse(socket, TOO_SLOW),
    onSilent: endSilent,
    handOver(socket, read) {
      server.emit('connection', socket)
      socket.unshift(read)
    },
  }
  return {
    take(socket, connection) {
      const reading = new DirectConnection(socket, connection, direct)
      taken.set(socket, reading)
      connection.lane.whenStalled(() => resetConnection(socket))
      socket.once('close', () => {
        taken.delete(socket)
        reading.close()
      })
    },
    drain() {
      draining = true
      for (const reading of taken.values()) endSoon(reading)
    },
    destroy() {
      for (const reading of taken.values()) reading.destroy()
    },
    connections: () => taken.size,
  }
}

const TOO_SLOW = '408 Request Timeout'

const PARSE_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: TOO_SLOW,
}

function onClientError(error: NodeJS.ErrnoException, socket: Duplex, isForApi: boolean): void {
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const status = PARSE_ERRORS[error.code ?? ''] ?? '400 Bad Request'
  refuseInTurn(socket, status, isTooLarge && isForApi ? errors.headersTooLarge(MAX_HEADER_BYTES) : undefined)
}

function endSilent(socket: TLSSocket): void {
  if (socket.writableLength > 0) resetConnection(socket)
  else socket.destroy()
}
