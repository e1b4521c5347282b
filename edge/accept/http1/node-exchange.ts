/** A request that node:http has read. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { ReceivedRequest } from '../../../shared/http/received-request.ts'
import type { ForControl, FullExchange, HeaderList } from '../../context.ts'
import { ConnectionExchange, type Connection, type ExchangeHandlers } from '../connection.ts'
import { bodyBytesOf } from '../messages/body-length.ts'
import { readForm } from '../messages/read-form.ts'
import { PROXIED_IDLE_MS } from '../timeouts.ts'
import { endAfterAnswer, hasBody } from './close-in-stages.ts'
import { refuseInTurn } from './refuse.ts'

export class NodeExchange extends ConnectionExchange implements FullExchange {
  readonly method: string
  readonly target: string
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #onAnswer: ExchangeHandlers['onAnswer']
  readonly #authority: string | undefined
  /** As the visitor said; who forwards the request leaves out what that went by. */
  readonly #hasBody: boolean
  /** The visitor waits for a word before they send it (RFC 9110 §10.1.1). */
  readonly #isAskedFor: boolean

  constructor(
    request: ReceivedRequest,
    response: ServerResponse,
    connection: Connection,
    onAnswer: ExchangeHandlers['onAnswer'],
  ) {
    super(connection)
    this.#onAnswer = onAnswer
    this.#request = request
    this.#response = response
    this.#hasBody = hasBody(request)
    this.#isAskedFor = request.headers.expect !== undefined && request.httpVersionMinor === 1
    const { method, url } = request
    this.method = method
    const absolute = url.charCodeAt(0) === SLASH ? undefined : splitAbsoluteForm(url)
    this.target = absolute === undefined ? url : absolute.target
    this.#authority = hostOf(request.rawHeaders, absolute?.authority)
  }

  get authority(): string | undefined {
    return this.#authority
  }

  get full(): this {
    return this
  }

  get isAnswered(): boolean {
    return this.#response.headersSent || this.#response.destroyed
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }

  send(status: number, headers: HeaderList, body: Buffer | undefined): void {
    const response = this.#response
    if (response.destroyed) return
    this.#stopBody()
    this.#onAnswer(this, status)
    response.writeHead(status, headers as string[])
    if (body === undefined || this.method === 'HEAD') return void response.end()
    this.connection.lane.end(response, body)
  }

  stream(status: number, headers: HeaderList, source: Readable, length: number | undefined): void {
    const response = this.#response
    if (response.destroyed) return void source.destroy()
    this.#stopBody()
    this.#onAnswer(this, status)
    response.writeHead(status, headers as string[])
    this.connection.lane.pump(source, response, length)
  }

  relay(status: number, headers: HeaderList, source: Readable): void {
    const response = this.#response
    if (response.destroyed) return void source.destroy()
    this.#onAnswer(this, status)
    // Control has heard enough: what the visitor still sends is read and thrown away, and the connection ends.
    this.#stopBody()
    const isLast = this.#request.httpVersionMinor === 0 || !response.shouldKeepAlive
    response.writeHead(status, [...headers, 'connection', isLast ? 'close' : 'keep-alive'])
    this.connection.lane.pump(source, response, bodyBytesOf(this.method, status, headers))
  }

  countPiece(bytes: number): void {
    if (!this.mayDivide(bytes)) refuseInTurn(this.#request.socket, '400 Bad Request')
  }

  #stopBody(): void {
    if (this.#hasBody && !this.#request.complete) endAfterAnswer(this.#request, this.#response)
  }

  askForBody(): void {
    if (this.#isAskedFor) this.#response.writeContinue()
  }

  readForm(maxBytes: number): Promise<Buffer | undefined> {
    this.askForBody()
    return readForm(this.#request, maxBytes, (bytes) => this.countPiece(bytes))
  }

  forControl(): ForControl {
    this.#request.socket.setTimeout(PROXIED_IDLE_MS)
    return { headers: this.#request.headers, body: this.#request, answer: this.#response }
  }

  ignoreBody(): void {
    this.#request.resume()
  }
}

const SLASH = 47

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
