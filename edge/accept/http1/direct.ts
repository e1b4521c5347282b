/**
 * Plain requests of HTTP/1.1, read straight from the connection and answered in one write: node:http takes twice the
 * processor time for them. One at a time:
 *
 *   a plain head (request-head.ts) ─▶ an Exchange ─▶ its answer ─▶ the next
 *   anything else, and what control answers      ─▶ the connection with what was read goes to node:http, for good
 *
 * So every rule about slow, broken and unusual requests stands in one place, node:http and its settings. Here are those
 * about connections that have sent nothing odd: the first request must come in time, silence ends them, what is sent ahead
 * waits for its turn, and a request that ends its connection is the last that is answered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Writable, type Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Exchange, HeaderList } from '../../context.ts'
import { ConnectionExchange, type Connection, type ExchangeHandlers } from '../connection.ts'
import { isReviewEvents } from '../../store/live/watching.ts'
import { readsByItself } from '../raw-socket.ts'
import { FAREWELL_MS, HEADERS_MS, IDLE_MS } from '../timeouts.ts'
import type { AnswerHeads } from './answer-head.ts'
import { closeInStages } from './close-in-stages.ts'
import { readRequestHead, type RequestHead } from './request-head.ts'

/** Larger bodies are not copied to stand behind their head: the two are written together. */
const MAX_JOINED_BYTES = 16_384

export interface DirectContext extends ExchangeHandlers {
  readonly heads: AnswerHeads
  isDraining(): boolean
  /** Control answers there. */
  isService(authority: string): boolean
  /** No request came in time. */
  onTooSlow(socket: TLSSocket): void
  /** Nothing happened for too long. */
  onSilent(socket: TLSSocket): void
  /** Gives the connection to node:http; nothing of it is read or written here any more. */
  handOver(socket: TLSSocket, read: Buffer): void
}

/** A method and the beginning of a path. */
const BEGINNING_BYTES = 64
const API_REQUEST = /^[A-Z]{3,7} \/api\/v1(?:[/? ]|$)/

function unheard(): void {}

export class DirectConnection {
  readonly connection: Connection
  readonly #socket: TLSSocket
  readonly #context: DirectContext
  readonly #onData = (bytes: Buffer): void => this.#read(bytes)
  readonly #onTimeout = (): void => this.#end()
  readonly #onWritten = (): void => this.#written()
  #isHandedOver = false
  #beginning = ''
  /** The request that node:http has read the head of last. */
  #headRead: Pick<IncomingMessage, 'complete'> | undefined
  /** Those that node:http has not sent yet, in their order. */
  readonly #answers = new Set<ServerResponse>()
  /** How much had come when the last of them was out. */
  #answeredBytes = -1
  #isWatched = false
  #hasAsked = false
  #isBusy = false
  /** Came before the answer under way was out. */
  #ahead: Buffer | undefined
  #heldBytes = 0
  /** The connection ends after the answer under way. */
  #isLast = false
  /** An answer that leaves piece by piece. */
  #answer: PiecemealAnswer | undefined
  /** The host of the request before, which is not the service's. The next request mostly names it again. */
  #host = ''

  constructor(socket: TLSSocket, connection: Connection, context: DirectContext) {
    this.#socket = socket
    this.connection = connection
    this.#context = context
    socket.setTimeout(HEADERS_MS)
    socket.on('timeout', this.#onTimeout)
    socket.on('data', this.#onData)
    readsByItself(socket, true)
    if (context.isDraining()) this.drain()
  }

  /** Ends the connection: now if it is idle, else after what was asked for, and soon if nothing ever was. */
  drain(): void {
    if (this.#isHandedOver) return this.#drainOfNode()
    if (this.#hasAsked) return this.#endIfIdle()
    afterFarewell(() => this.#endIfIdle())
  }

  /** The last that node:http has to send here. */
  get lastAnswer(): ServerResponse | undefined {
    return [...this.#answers].at(-1)
  }

  #drainOfNode(): void {
    const last = this.lastAnswer
    if (last !== undefined && !last.headersSent) last.shouldKeepAlive = false
    // Something has come since the last answer: perhaps a part of a request, of which the rest is on its way.
    if (this.#socket.bytesRead !== this.#answeredBytes) afterFarewell(() => this.#endOfNode())
    else this.#endOfNode()
  }

  /** Unless an answer is owed, or a refusal is under way. */
  #endOfNode(): void {
    if (this.#answers.size === 0 && !this.#socket.writableEnded) this.#socket.destroy()
  }

  #endIfIdle(): void {
    if (!this.#isBusy && !this.#isHandedOver && this.#ahead === undefined) this.#socket.destroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** The connection is gone: what was under way is no more. */
  close(): void {
    this.#release()
    this.#answer?.destroy()
  }

  get isWritable(): boolean {
    return this.#socket.writable
  }

  #read(bytes: Buffer): void {
    if (this.#isBusy) {
      this.#ahead = bytes
      return void this.#socket.pause()
    }
    const head = readRequestHead(bytes)
    if (head === undefined) return this.#handOver(bytes)
    const isForDrop = this.#isForDrop(head.host)
    if (!isForDrop && !(head.method === 'GET' && isReviewEvents(head.target))) return this.#handOver(bytes)
    if (!this.#hasAsked) this.#socket.setTimeout(IDLE_MS)
    this.#hasAsked = true
    this.#isBusy = true
    this.#isLast = head.isLast
    // The very text of the request before, which all look-ups know already.
    const authority = isForDrop ? this.#host : head.host
    this.#context.onExchange(new DirectExchange(head, authority, this, this.#context.onAnswer))
  }

  #isForDrop(host: string): boolean {
    if (host === this.#host) return true
    if (this.#context.isService(host)) return false
    this.#host = host
    return true
  }

  /**
   * The request that is being read asks for the API, as far as its first line tells. node:http does not say what the
   * request was for whose headers are too large.
   */
  beginsForApi(): boolean {
    return API_REQUEST.test(this.#beginning) && this.#headRead === undefined
  }

  /** The head of a request that was handed over has been read: what follows its body is another. */
  onHeadRead(request: Pick<IncomingMessage, 'complete'>, isForService: boolean): void {
    this.#headRead = request
    if (isForService && !this.#isWatched) this.#watchBeginnings()
  }

  /** node:http has read a request, and has it answered. */
  answering(response: ServerResponse): void {
    this.#answers.add(response)
    response.once('close', () => {
      this.#answers.delete(response)
      if (this.#answers.size > 0) return
      this.#answeredBytes = this.#socket.bytesRead
      // What has been ended for writing is being refused, and ends by itself (close-in-stages.ts).
      if (this.#context.isDraining() && !this.#socket.writableEnded) this.#socket.destroySoon()
    })
  }

  /** Sees what comes before node:http does, which reads a connection itself until someone else listens to it. */
  #watchBeginnings(): void {
    this.#isWatched = true
    this.#socket.on('data', unheard)
    this.#socket.off('data', unheard)
    this.#socket.prependListener('data', (bytes: Buffer) => this.#noteBeginning(bytes))
  }

  #noteBeginning(bytes: Buffer): void {
    if (this.#headRead !== undefined) {
      if (!this.#headRead.complete) return
      this.#headRead = undefined
      this.#beginning = ''
    }
    if (this.#beginning.length < BEGINNING_BYTES) this.#beginning += bytes.toString('latin1', 0, BEGINNING_BYTES)
  }

  #handOver(bytes: Buffer): void {
    this.#isHandedOver = true
    this.#beginning = bytes.toString('latin1', 0, BEGINNING_BYTES)
    this.#socket.off('data', this.#onData)
    this.#socket.off('timeout', this.#onTimeout)
    readsByItself(this.#socket, false)
    this.#context.handOver(this.#socket, bytes)
  }

  #end(): void {
    if (this.#hasAsked) this.#context.onSilent(this.#socket)
    else this.#context.onTooSlow(this.#socket)
  }

  /** The whole answer at once. */
  write(status: number, headers: HeaderList, body: Buffer | undefined): void {
    const { lane } = this.connection
    if (body !== undefined && !lane.hasRoomFor(body.length))
      return lane.end(this.open(status, headers, body.length), body)
    const whole = body && !this.#endsAfterThis() ? this.#context.heads.whole(status, headers, body) : undefined
    if (whole !== undefined) return this.#send(whole.length, whole)
    const head = this.#headOf(status, headers)
    if (body === undefined) return this.#send(head[0].length + head[1].length, Buffer.concat(head))
    const length = head[0].length + head[1].length + body.length
    if (body.length <= MAX_JOINED_BYTES) return this.#send(length, Buffer.concat([...head, body], length))
    this.#socket.cork()
    this.#socket.write(Buffer.concat(head))
    this.#send(length, body)
    this.#socket.uncork()
  }

  /** The head now, the body piece by piece. A body whose length nobody knows ends with its connection: it is the rest of it. */
  open(status: number, headers: HeaderList, length: number | undefined): Writable {
    this.#isLast ||= length === undefined
    const head = this.#headOf(status, headers)
    this.#socket.write(Buffer.concat(head))
    if (length === undefined) return this.#socket
    this.#answer = new PiecemealAnswer(this.#socket, () => this.#written())
    return this.#answer
  }

  #headOf(status: number, headers: HeaderList): readonly [Buffer, Buffer] {
    const fields = this.#context.heads.fields(status, headers)
    return [fields, this.#context.heads.rest(this.#endsAfterThis())]
  }

  #endsAfterThis(): boolean {
    this.#isLast ||= this.#context.isDraining()
    return this.#isLast
  }

  #send(heldBytes: number, bytes: Buffer): void {
    this.#heldBytes = heldBytes
    this.connection.lane.hold(heldBytes)
    this.#socket.write(bytes, this.#onWritten)
  }

  #release(): void {
    if (this.#heldBytes > 0) this.connection.lane.release(this.#heldBytes)
    this.#heldBytes = 0
  }

  #written(): void {
    this.#release()
    this.#answer = undefined
    // It stays busy: what still comes is no request. What came ahead is answered, and says that it is the last.
    if (this.#isLast || (this.#ahead === undefined && this.#context.isDraining())) return this.#close()
    this.#isBusy = false
    // Others are answered in between.
    if (this.#ahead !== undefined) setImmediate(() => this.#proceed())
  }

  /** Bytes that nobody has read would make the kernel reset the connection, and the answer would be lost with it. */
  #close(): void {
    if (this.#ahead === undefined) this.#socket.destroySoon()
    else closeInStages(this.#socket)
  }

  #proceed(): void {
    const bytes = this.#ahead
    this.#ahead = undefined
    if (bytes === undefined || this.#socket.destroyed) return
    this.#read(bytes)
    this.#socket.resume()
  }
}

class DirectExchange extends ConnectionExchange implements Exchange {
  readonly method: 'GET' | 'HEAD'
  readonly target: string
  readonly authority: string
  readonly #head: RequestHead
  readonly #direct: DirectConnection
  readonly #onAnswer: ExchangeHandlers['onAnswer']
  readonly full = undefined
  #isAnswered = false

  constructor(head: RequestHead, authority: string, direct: DirectConnection, onAnswer: ExchangeHandlers['onAnswer']) {
    super(direct.connection)
    this.method = head.method
    this.target = head.target
    this.authority = authority
    this.#head = head
    this.#direct = direct
    this.#onAnswer = onAnswer
  }

  get isAnswered(): boolean {
    return this.#isAnswered || !this.#direct.isWritable
  }

  header(name: string): string | undefined {
    return this.#head.header(name)
  }

  send(status: number, headers: HeaderList, body: Buffer | undefined): void {
    if (this.isAnswered) return
    this.#direct.write(status, headers, this.method === 'HEAD' ? undefined : body)
    this.#answered(status)
  }

  stream(status: number, headers: HeaderList, source: Readable, length: number | undefined): void {
    if (this.isAnswered) return void source.destroy()
    this.connection.lane.pump(source, this.#direct.open(status, headers, length), length)
    this.#answered(status)
  }

  #answered(status: number): void {
    this.#isAnswered = true
    this.#onAnswer(this, status)
  }
}

/** The body of one answer as a stream that leaves the connection open, unless it breaks off. */
class PiecemealAnswer extends Writable {
  readonly #socket: TLSSocket
  readonly #onOut: () => void

  constructor(socket: TLSSocket, onOut: () => void) {
    super()
    this.#socket = socket
    this.#onOut = onOut
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  /** What breaks off must not look whole. Why it did is the connection's affair. */
  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    if (this.writableFinished) this.#onOut()
    else this.#socket.destroy()
    done(null)
  }
}

/** What came while this process stood still is read before it ends anything. */
function afterFarewell(end: () => void): void {
  setTimeout(() => setImmediate(end), FAREWELL_MS).unref()
}
