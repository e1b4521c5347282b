/** uWS.App over node:http: listens, routes, and hands each request to its handler. */
import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { MAX_HEADER_BYTES } from '../../../shared/contracts/limits.ts'
import { nodeHttp } from '../../../shared/http/node-http.ts'
import type { ReceivedRequest } from '../../../shared/http/received-request.ts'
import { Connections } from './connections.ts'
import { HttpRequest } from './http-request.ts'
import { HttpResponse } from './http-response.ts'
import { Router } from './router.ts'

export type Handler = (response: HttpResponse, request: HttpRequest) => void
export type ListenSocket = Server

/** Longer than a proxy keeps an idle connection for reuse: the proxy closes first, so no request meets a closing socket. */
const KEEP_ALIVE_MS = 65_000
const HEADERS_TIMEOUT_MS = 30_000
/** For a head that is late: what this process did not read while it stood still is read within its next turns, on a busy machine too. */
const LAST_CHANCE_MS = 10_000

const connectionsOf = new WeakMap<ListenSocket, Connections>()

export class App {
  readonly #routers = new Map<string, Router<Handler>>()
  readonly #any = new Router<Handler>()
  readonly #servers = new Set<Server>()
  /** How many have come on a connection. */
  readonly #heads = new WeakMap<Duplex, number>()

  readonly #connections = new Connections()

  #headsOf(socket: Duplex): number {
    return this.#heads.get(socket) ?? 0
  }

  #on(method: string, pattern: string, handler: Handler): this {
    let router = this.#routers.get(method)
    if (!router) this.#routers.set(method, (router = new Router()))
    router.add(pattern, handler)
    return this
  }

  get(pattern: string, handler: Handler): this {
    return this.#on('GET', pattern, handler)
  }
  head(pattern: string, handler: Handler): this {
    return this.#on('HEAD', pattern, handler)
  }
  post(pattern: string, handler: Handler): this {
    return this.#on('POST', pattern, handler)
  }
  put(pattern: string, handler: Handler): this {
    return this.#on('PUT', pattern, handler)
  }
  patch(pattern: string, handler: Handler): this {
    return this.#on('PATCH', pattern, handler)
  }
  del(pattern: string, handler: Handler): this {
    return this.#on('DELETE', pattern, handler)
  }
  options(pattern: string, handler: Handler): this {
    return this.#on('OPTIONS', pattern, handler)
  }
  trace(pattern: string, handler: Handler): this {
    return this.#on('TRACE', pattern, handler)
  }
  connect(pattern: string, handler: Handler): this {
    return this.#on('CONNECT', pattern, handler)
  }
  any(pattern: string, handler: Handler): this {
    this.#any.add(pattern, handler)
    return this
  }

  ws(): never {
    throw new Error('WebSockets need the native uWebSockets.js; install @uwsjs/core.')
  }

  /** Server names belong to TLS, which the edge terminates. */
  missingServerName(): this {
    return this
  }

  listen(host: string, port: number, done: (socket: ListenSocket | false) => void): this {
    return this.#listen({ host, port }, done)
  }

  listen_unix(done: (socket: ListenSocket | false) => void, path: string): this {
    return this.#listen({ path }, done)
  }

  #listen(
    where: { host: string; port: number } | { path: string },
    done: (socket: ListenSocket | false) => void,
  ): this {
    const server = nodeHttp.createServer(
      {
        keepAliveTimeout: KEEP_ALIVE_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
        // An upload may take as long as it takes; its reader watches for a stall.
        requestTimeout: 0,
        maxHeaderSize: MAX_HEADER_BYTES,
        joinDuplicateHeaders: true,
      },
      (request, response) => {
        this.#heads.set(request.socket, this.#headsOf(request.socket) + 1)
        this.#handle(request as ReceivedRequest, response)
      },
    )
    server.on('clientError', (error, socket) => {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_HTTP_REQUEST_TIMEOUT') return refuseMalformed(error, socket)
      const before = this.#headsOf(socket)
      setTimeout(() => {
        if (this.#headsOf(socket) === before) refuseMalformed(error, socket)
      }, LAST_CHANCE_MS)
    })
    server.on('connection', (socket) => this.#connections.add(socket))
    connectionsOf.set(server, this.#connections)
    server.once('error', () => done(false))
    server.listen(where, () => {
      this.#servers.add(server)
      done(server)
    })
    return this
  }

  #handle(message: ReceivedRequest, reply: ServerResponse): void {
    const [path, query] = splitTarget(message.url)
    const match = this.#routers.get(message.method)?.match(path) ?? this.#any.match(path)
    this.#connections.owe(message.socket, reply)
    const response = new HttpResponse(message, reply)
    if (!match) {
      response.close()
      return
    }
    match.handler(response, new HttpRequest(message, path, query, match.parameters))
  }

  /** After it has stopped listening: resolves when every answer has left. */
  ended(): Promise<void> {
    return this.#connections.ended()
  }

  close(): this {
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
    this.#servers.clear()
    return this
  }
}

/** Absolute-form targets (RFC 9112 §3.2.2) are reduced to their path: the authority never decides anything here. */
function splitTarget(target: string): [path: string, query: string] {
  const relative = target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?]*/i, '')
  const mark = relative.indexOf('?')
  const path = mark < 0 ? relative : relative.slice(0, mark)
  return [path.startsWith('/') ? path : `/${path}`, mark < 0 ? '' : relative.slice(mark + 1)]
}

function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy())
}

/** Stops accepting; requests under way go on, and idle connections end. */
export function closeListenSocket(socket: ListenSocket): void {
  NetServer.prototype.close.call(socket)
  connectionsOf.get(socket)?.close()
}

export function localPort(socket: ListenSocket): number {
  return (socket.address() as AddressInfo | null)?.port ?? -1
}
