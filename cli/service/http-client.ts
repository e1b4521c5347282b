/**
 * HTTP/1.1 over node:http(s), on few connections that are kept. Batches make one request of two hundred files, so that
 * HTTP/2 would win nothing; the node:http2 client of Node 20 has no pool, no retry and no upload back-pressure of its own.
 */
import { readFileSync } from 'node:fs'
import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Readable } from 'node:stream'
import { createSecureContext, rootCertificates } from 'node:tls'
import { nodeHttp } from '../../shared/http/node-http.ts'
import { CliError, exitCodes, unreadable, usageError } from '../terminal/failure.ts'
import { createTunnelAgent, ProxyTrouble } from './proxy.ts'

/** Requests at the same time; each holds a connection and at most one open file. */
export const MAX_CONNECTIONS = 4
/** A line that does not come to be within this is dead; a distant server needs one or two seconds. */
const CONNECT_TIMEOUT_MS = 15_000
/** No byte in either direction for this long: the line is dead. */
const IDLE_TIMEOUT_MS = 60_000
/** Publishing a large site takes a while in which the service says nothing; on a busy machine, minutes. */
export const PUBLISH_TIMEOUT_MS = 600_000

/** A stream is opened when the request is ready to take it, and again when the request has to be made again. */
export type Body = string | Buffer | (() => Readable)

export interface HttpRequest {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body
  /** Longest silence; IDLE_TIMEOUT_MS unless told otherwise. */
  readonly timeoutMs?: number
}

export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** A caller that asks for the bytes reads them to the end: only then is the connection free again. */
  readonly body: IncomingMessage
  text(): Promise<string>
}

export interface HttpClient {
  send(url: string, request: HttpRequest): Promise<HttpReply>
  close(): void
}

/** The service did not answer. `delivered`: the request may have arrived, and may have been acted on. */
export class Unreachable extends CliError {
  readonly delivered: boolean
  /** No server listens there, or there is no such name: hardly a passing trouble, unless one was there before. */
  readonly refused: boolean
  constructor(message: string, delivered: boolean, refused: boolean) {
    super(message, exitCodes.unreachable, 'unreachable')
    this.delivered = delivered
    this.refused = refused
  }
}

export interface HttpClientOptions {
  readonly caFile: string | undefined
  readonly userAgent: string
  /** The proxy on the way to an address; none is undefined. */
  proxyFor(target: URL): URL | undefined
}

export function createHttpClient({ caFile, userAgent, proxyFor }: HttpClientOptions): HttpClient {
  const kept = { keepAlive: true, maxSockets: MAX_CONNECTIONS }
  // The certificates are parsed once: every connection would otherwise read 150 roots again.
  const trust =
    caFile === undefined ? {} : { secureContext: createSecureContext({ ca: [...rootCertificates, readCa(caFile)] }) }
  const agents = new Map<string, Agent>()
  function agentFor(target: URL): Agent {
    const isSecure = target.protocol === 'https:'
    const proxy = proxyFor(target)
    const key = `${target.protocol} ${proxy?.href ?? ''}`
    let agent = agents.get(key)
    if (agent !== undefined) return agent
    const options = { ...kept, ...(isSecure ? trust : {}) }
    if (proxy !== undefined) agent = createTunnelAgent(proxy, isSecure, options, CONNECT_TIMEOUT_MS)
    else agent = isSecure ? new https.Agent(options) : new nodeHttp.Agent(options)
    agents.set(key, agent)
    return agent
  }
  return {
    async send(url, { method, headers = {}, body, timeoutMs = IDLE_TIMEOUT_MS }) {
      const target = new URL(url)
      const secure = target.protocol === 'https:'
      const agent = agentFor(target)
      return new Promise((resolve, reject) => {
        const options = {
          method,
          headers: { 'user-agent': userAgent, ...lengthOf(body), ...headers },
          agent,
        }
        const request = (secure ? https : nodeHttp).request(target, options, (reply) => resolve(replyOf(target, reply)))
        const isConnected = limitConnecting(request, secure)
        request.setTimeout(timeoutMs, () => request.destroy(new Error('the connection went silent')))
        request.on('error', (error) => reject(unreachable(target, error, isConnected())))
        sendBody(request, body)
      })
    },
    close() {
      for (const agent of agents.values()) agent.destroy()
    },
  }
}

function replyOf(target: URL, reply: IncomingMessage): HttpReply {
  return {
    status: reply.statusCode ?? 0,
    headers: reply.headers,
    body: reply,
    async text() {
      const chunks: Buffer[] = []
      try {
        for await (const chunk of reply as AsyncIterable<Buffer>) chunks.push(chunk)
      } catch (error) {
        throw unreachable(target, error as NodeJS.ErrnoException, true)
      }
      return Buffer.concat(chunks).toString('utf8')
    },
  }
}

/** Ends a request whose connection does not come to be; tells whether it has. */
function limitConnecting(request: ClientRequest, secure: boolean): () => boolean {
  let connected = false
  request.once('socket', (socket) => {
    // One that was used before, or a tunnel without TLS, is there already.
    if (!socket.connecting && (request.reusedSocket || !secure)) {
      connected = true
      return
    }
    const timer = setTimeout(() => request.destroy(new Error('no connection came to be')), CONNECT_TIMEOUT_MS)
    socket.once(secure ? 'secureConnect' : 'connect', () => (connected = true))
    socket.once(secure ? 'secureConnect' : 'connect', () => clearTimeout(timer))
    socket.once('close', () => clearTimeout(timer))
  })
  return () => connected
}

function sendBody(request: ClientRequest, body: Body | undefined): void {
  if (typeof body !== 'function') {
    request.end(body)
    return
  }
  const stream = body()
  // A file that cannot be read is no trouble of the line: it is told at once, and nothing is tried again.
  stream.on('error', (error: NodeJS.ErrnoException) => request.destroy(unreadable(error.path ?? 'The file', error)))
  // A reply that comes before the body is sent (413) ends the sending.
  request.on('close', () => stream.destroy())
  stream.pipe(request)
}

function lengthOf(body: Body | undefined): Record<string, string> {
  if (typeof body === 'string') return { 'content-length': String(Buffer.byteLength(body)) }
  return Buffer.isBuffer(body) ? { 'content-length': String(body.byteLength) } : {}
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw usageError(`The certificate authority "${file}" cannot be read. Check DROPWAY_CA_FILE.`)
  }
}

const CERTIFICATE_ERRORS = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/

function unreachable(target: URL, error: NodeJS.ErrnoException, delivered: boolean): CliError {
  if (error instanceof CliError) return error
  if (error instanceof ProxyTrouble) return new Unreachable(error.message, false, error.refused)
  if (CERTIFICATE_ERRORS.test(error.code ?? '')) {
    const message = `The certificate of ${target.host} is not trusted (${error.code}). For a service with its own certificate authority, set DROPWAY_CA_FILE to its PEM file.`
    return new CliError(message, exitCodes.unreachable, 'untrusted_certificate')
  }
  const message = `${target.origin} cannot be reached (${error.code ?? error.message}). Check the connection and the address.`
  return new Unreachable(message, delivered, ['ECONNREFUSED', 'ENOTFOUND'].includes(error.code ?? ''))
}
