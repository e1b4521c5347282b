/** HTTP/2 visitors: the stream API (a `request` listener would double the CPU per request) behind our own limits. */
import { MAX_HEADER_BYTES } from '../../../shared/contracts/limits.ts'
import http2 from 'node:http2'
import type { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { ForControl, FullExchange, HeaderList } from '../../context.ts'
import { ConnectionExchange, type Connection, type ExchangeHandlers } from '../connection.ts'
import { createHeaderWeight } from './header-weight.ts'
import { bodyBytesOf } from '../messages/body-length.ts'
import { createHttpDate } from '../messages/http-date.ts'
import { inTurns } from '../in-turns.ts'
import type { Stall } from '../outgoing/stalled.ts'
import { resetConnection } from '../raw-socket.ts'
import { readForm } from '../messages/read-form.ts'
import { IDLE_MS } from '../timeouts.ts'
import { lossOf } from './stalled-session.ts'

const MAX_CONCURRENT_STREAMS = 128
/** Uploads over long distances need more than the default 64 kB in flight. */
const STREAM_WINDOW_BYTES = 1_000_000
const SESSION_WINDOW_BYTES = 4_000_000
/** Rapid reset (CVE-2023-44487) and its relatives: a burst is a browser leaving a page, more is an attack. */
const RESET_BURST = 500
const RESETS_PER_SECOND = 50
/** Counts queued answers too, which are shared buffers: a page with a hundred large images is legitimate. */
const MAX_SESSION_MEMORY_MB = 200
const MAX_INVALID_FRAMES = 100
const MAX_REJECTED_STREAMS = 100
const MAX_SETTINGS_ENTRIES = 32
const MAX_OUTSTANDING_PINGS = 10
const MAX_HEADER_PAIRS = 128
const GOAWAY_GRACE_MS = 1000
/**
 * PING, SETTINGS and WINDOW_UPDATE are legal in any number. A session that says this much in this time, and neither
 * begins a request nor has one with a body under way, floods: acknowledging a download of 1 GB/s takes a tenth of it.
 */
const FLOOD_BYTES = 256_000
const SESSION_CHECK_MS = 500
/** Browsers connect ahead, and ask within ten seconds or give the connection up themselves. */
const FIRST_REQUEST_MS = 15_000
/** What was sent before the visitor heard of the end still arrives (RFC 9113 §6.8): one long round trip. */
const LAST_REQUESTS_MS = 500
const HIGHEST_STREAM_ID = 2 ** 31 - 1

/** Names and values of whole answers, prepared: with the status before them, and the date at the end. */
class AnswerLists {
  readonly #date = createHttpDate()
  readonly #prepared = new WeakMap<HeaderList, string[]>()

  of(status: number, headers: HeaderList): string[] {
    const date = this.#date.text()
    const text = STATUS_TEXTS[status] ?? String(status)
    let list = this.#prepared.get(headers)
    if (list?.[1] !== text) this.#prepared.set(headers, (list = [':status', text, ...headers, 'date', date]))
    else if (list.at(-1) !== date) list[list.length - 1] = date
    return list
  }
}

const STATUS_TEXTS: readonly string[] = Array.from({ length: 600 }, (_, status) => String(status))

export interface Http2Side {
  take(socket: TLSSocket, connection: Connection): void
  /** GOAWAY to all; sessions end when their streams have. */
  drain(): void
  destroy(): void
  sessions(): number
}

const kConnection = Symbol('connection')
const kProxied = Symbol('proxied')
const kMeter = Symbol('meter')
const kSocket = Symbol('socket')
type KnownSession = http2.ServerHttp2Session & { [kConnection]: Connection; [kProxied]: number; [kMeter]: Meter }

/** What a session has said, and how many requests it has begun, at the last check. */
interface Meter {
  readonly socket: TLSSocket
  readonly startedAt: number
  hasAsked: boolean
  bytes: number
  requests: number
}
type KnownSocket = TLSSocket & { [kConnection]: Connection; [kSocket]: TLSSocket }

export function createHttp2Side({ onExchange, onAnswer }: ExchangeHandlers): Http2Side {
  const sessions = new Set<KnownSession>()
  const headerWeight = createHeaderWeight()
  const context: Http2Context = { onAnswer, lists: new AnswerLists() }
  const server = http2.createServer({
    settings: {
      maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxHeaderListSize: MAX_HEADER_BYTES,
      enablePush: false,
    },
    maxSessionMemory: MAX_SESSION_MEMORY_MB,
    maxSessionInvalidFrames: MAX_INVALID_FRAMES,
    maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
    maxSettings: MAX_SETTINGS_ENTRIES,
    maxOutstandingPings: MAX_OUTSTANDING_PINGS,
    maxHeaderListPairs: MAX_HEADER_PAIRS,
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
  })
  const sessionCheck = setInterval(() => {
    const askedBy = performance.now() - FIRST_REQUEST_MS
    for (const session of sessions) if (isFlooding(session) || isMute(session, askedBy)) end(session)
  }, SESSION_CHECK_MS)
  sessionCheck.unref()
  const end = inTurns((session: KnownSession) => session.destroy())
  const giveUp = inTurns(cutOff)
  const closeSoon = inTurns(closeGently)
  let draining = false
  server.on('session', (fresh) => {
    const socket = fresh.socket as unknown as KnownSocket
    const meter: Meter = {
      socket: socket[kSocket],
      startedAt: performance.now(),
      hasAsked: false,
      bytes: 0,
      requests: 0,
    }
    const session: KnownSession = Object.assign(fresh, {
      [kConnection]: socket[kConnection],
      [kProxied]: 0,
      [kMeter]: meter,
    })
    sessions.add(session)
    session.setTimeout(IDLE_MS, () => endIdle(session, giveUp))
    session[kConnection].lane.whenStalled((stall) => endStalled(session, stall, giveUp))
    session.setLocalWindowSize(SESSION_WINDOW_BYTES)
    session.on('close', () => sessions.delete(session))
    if (draining) closeGently(session)
  })
  // Broken sessions and streams are the visitor's affair; unheard they would end the process.
  server.on('sessionError', () => {})
  server.on('error', () => {})
  server.on('stream', (anyStream, headers, _flags, rawHeaders) => {
    // What a server hears of is a server's stream; the types of Node 26 say less.
    const stream = anyStream as http2.ServerHttp2Stream
    stream.on('error', ignore)
    const session = stream.session as KnownSession | undefined
    if (session === undefined) return
    session[kMeter].requests += 1
    session[kMeter].hasAsked = true
    headerWeight.add(rawHeaders)
    onExchange(new Http2Exchange(stream, headers, rawHeaders, session[kConnection], context))
  })
  return {
    take(fresh, connection) {
      // A session shows a stand-in for its socket, which does not tell what was read.
      const socket: KnownSocket = Object.assign(fresh, { [kConnection]: connection, [kSocket]: fresh })
      server.emit('connection', socket)
    },
    drain() {
      draining = true
      for (const session of sessions) closeSoon(session)
    },
    destroy() {
      for (const session of sessions) session.destroy()
    },
    sessions: () => sessions.size,
  }
}

function ignore(): void {}

function isFlooding(session: KnownSession): boolean {
  const meter = session[kMeter]
  const { bytesRead } = meter.socket
  const isQuiet = bytesRead - meter.bytes < FLOOD_BYTES
  const isAsking = meter.requests > 0 || session[kProxied] > 0
  meter.bytes = bytesRead
  meter.requests = 0
  return !isQuiet && !isAsking
}

/** PINGs alone keep no connection. */
function isMute(session: KnownSession, askedBy: number): boolean {
  const { hasAsked, startedAt } = session[kMeter]
  return !hasAsked && startedAt < askedBy
}

/** First the news that no more requests should come, then, a round trip later, the refusal of those that do. */
function closeGently(session: http2.ServerHttp2Session): void {
  if (session.destroyed) return
  session.goaway(http2.constants.NGHTTP2_NO_ERROR, HIGHEST_STREAM_ID)
  setTimeout(() => session.close(), LAST_REQUESTS_MS).unref()
}

/** Silent for too long. What control answers may take its time: the session ends with it, and takes no more requests. */
function endIdle(session: KnownSession, giveUp: (session: KnownSession) => void): void {
  session.close()
  if (session[kProxied] === 0) setTimeout(giveUp, GOAWAY_GRACE_MS, session).unref()
}

/** A reader who stopped reading is told (GOAWAY), and loses the connection or the answers that stand still. */
function endStalled(session: KnownSession, stall: Stall, giveUp: (session: KnownSession) => void): void {
  session.close()
  const controlAnswers = session.destroyed ? 0 : session[kProxied]
  if (lossOf({ ...stall, controlAnswers }) === 'answers') session[kConnection].lane.resetStanding()
  else setTimeout(giveUp, GOAWAY_GRACE_MS, session).unref()
}

/** Destroying a session that was asked to close waits for what is queued: with a reader who stopped, for ever. */
function cutOff(session: KnownSession): void {
  const { socket } = session[kMeter]
  session.destroy()
  resetConnection(socket)
}

interface Http2Context extends Pick<ExchangeHandlers, 'onAnswer'> {
  readonly lists: AnswerLists
}

class Http2Exchange extends ConnectionExchange implements FullExchange {
  readonly method: string
  readonly target: string
  readonly #stream: http2.ServerHttp2Stream
  readonly #headers: http2.IncomingHttpHeaders
  readonly #rawHeaders: readonly string[]
  readonly #context: Http2Context

  constructor(
    stream: http2.ServerHttp2Stream,
    headers: http2.IncomingHttpHeaders,
    rawHeaders: readonly string[],
    connection: Connection,
    context: Http2Context,
  ) {
    super(connection)
    this.#context = context
    this.#stream = stream
    this.#headers = headers
    this.#rawHeaders = rawHeaders
    this.method = headers[':method'] ?? ''
    this.target = headers[':path'] ?? ''
  }

  /** RFC 9113 §8.3.1: `host` may come instead of `:authority`, and must not say anything else beside it. */
  get authority(): string | undefined {
    const authority = this.#headers[':authority']
    const host = this.#headers.host
    if (host === undefined) return authority
    if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) return undefined
    return hasTwoHosts(this.#rawHeaders) ? undefined : host
  }

  get full(): this {
    return this
  }

  get isAnswered(): boolean {
    return this.#stream.headersSent || this.#stream.destroyed
  }

  header(name: string): string | undefined {
    const value = this.#headers[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }

  send(status: number, headers: HeaderList, body: Buffer | undefined): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    this.#context.onAnswer(this, status)
    const list = this.#context.lists.of(status, headers)
    if (body === undefined || body.length === 0 || this.method === 'HEAD') {
      stream.respond(list, END_STREAM)
      this.#stopBody()
      return
    }
    stream.respond(list)
    this.connection.lane.end(stream, body)
    this.#stopBody()
  }

  stream(status: number, headers: HeaderList, source: Readable, length: number | undefined): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return void source.destroy()
    this.#context.onAnswer(this, status)
    stream.respond([':status', String(status), ...headers])
    this.connection.lane.pump(source, stream, length)
    this.#stopBody()
  }

  relay(status: number, headers: HeaderList, source: Readable): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return void source.destroy()
    this.#context.onAnswer(this, status)
    stream.respond([':status', String(status), ...headers])
    this.connection.lane.pump(source, stream, bodyBytesOf(this.method, status, headers))
  }

  countPiece(bytes: number): void {
    const { session } = this.#stream
    if (session === undefined || session.destroyed) return
    if (!this.mayDivide(bytes)) session.destroy(undefined, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  /**
   * The body is not read, and must not wait for a reader. A stream without one is left alone: resumed, it would be
   * destroyed before its write completes, and node:http2 would make an Error of every answer (10 µs).
   */
  #stopBody(): void {
    if (this.#stream.endAfterHeaders || this.#stream.readableEnded) return
    this.#stream.on('data', (chunk: Buffer) => this.countPiece(chunk.length))
    this.#endWithAnswer()
  }

  /**
   * A visitor who still sends a body when the answer is out is told to stop (RFC 9113 §8.1): flow control would hold
   * the stream open, and the visitor waiting, for as long as both have patience.
   */
  #endWithAnswer(): void {
    const stream = this.#stream
    if (stream.endAfterHeaders) return
    stream.once('finish', () => {
      if (!stream.destroyed && stream.state.remoteClose === 0) stream.close(http2.constants.NGHTTP2_NO_ERROR)
    })
  }

  askForBody(): void {
    const stream = this.#stream
    if (this.header('expect')?.toLowerCase() !== '100-continue' || stream.endAfterHeaders || stream.destroyed) return
    stream.additionalHeaders({ ':status': 100 })
  }

  readForm(maxBytes: number): Promise<Buffer | undefined> {
    this.askForBody()
    return readForm(this.#stream, maxBytes, (bytes) => this.countPiece(bytes))
  }

  forControl(): ForControl {
    const stream = this.#stream
    const session = stream.session as KnownSession
    session[kProxied] += 1
    stream.once('close', () => {
      session[kProxied] -= 1
      // What was on its way when control had heard enough is no flood.
      session[kMeter].requests += 1
    })
    stream.on('aborted', endStream)
    this.#endWithAnswer()
    return { headers: this.#headers, body: stream, answer: stream }
  }

  /** As in `#stopBody`, a stream without one is left alone. */
  ignoreBody(): void {
    if (!this.#stream.endAfterHeaders) this.#stream.resume()
  }
}

const END_STREAM = { endStream: true }

/**
 * A visitor who leaves before the answer is out. node:http2 would wait for an end that nobody writes. It says `aborted` in
 * the middle of closing the stream, before it has told nghttp2: destroyed there, the stream stays in nghttp2 without an
 * owner, and the next frame of the session asks it for data for ever.
 */
function endStream(this: http2.Http2Stream): void {
  process.nextTick(() => this.destroy())
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) if (rawHeaders[index] === 'host') count += 1
  return count > 1
}
