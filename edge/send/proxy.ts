/**
 * The service's own host: control answers, through http-proxy. Bodies stream both ways at the slower side's pace; when
 * one side leaves, the other ends too. What a visitor says about their own address is never passed on.
 *
 *   target that no request line can hold ─▶ 400     no place of this network's share in time ─▶ 429 | 503
 *   body that hardly arrives ─▶ 408                 no answer for seconds, and control does not say that it lives ─▶ 504
 */
import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { nodeHttp } from '../../shared/http/node-http.ts'
import { Socket } from 'node:net'
import { Stream, type Duplex } from 'node:stream'
import { urlToHttpOptions } from 'node:url'
import httpProxy from 'http-proxy'
import { limitKeyOfIp } from '../../shared/http/ip.ts'
import { PROXY_HEADERS, RELAYED_HEADER } from '../../shared/http/relayed.ts'
import { patiently } from '../../shared/settings/patience.ts'
import { createShares } from '../../shared/running/shares.ts'
import type { ControlsAnswer, ForControl, FullExchange } from '../context.ts'
import { createControlHealth } from './control-health.ts'
import { CONTROL_SHARES } from './control-shares.ts'
import { GatheredBody } from './gathered-body.ts'

/** Meaningless or forbidden beyond one connection (RFC 9110 §7.6.1), and what only we may say. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  // Node frames what it sends by itself.
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-real-ip',
])
const NOT_RETURNED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
])

/**
 * Until control's headers arrive, as long as it says every few seconds that it lives: on a busy machine the publish of a
 * large site takes minutes, and a caller who is told 504 meanwhile sends it all again. The visitor's connection is left
 * open for as long (PROXIED_IDLE_MS). As long between two pieces of an answer: an event stream may have nothing to say.
 */
const SILENCE_MS = 600_000
/** A request that has not moved for this long is looked at. */
const CHECK_MS = 4000
/** Then control has this long to say that it lives: together less than the ten seconds that a person waits for a page. */
const ALIVE_MS = patiently(4500)
/** What arrives of a body between two checks at least: the slowest line in use carries ten times as much. */
const MIN_BODY_BYTES = 4096
/** In a row. */
const MAX_SLOW_CHECKS = 3
/** A whole request with its body; a large upload over a thin line is legitimate. */
const MAX_REQUEST_MS = 3_600_000
/** A control that refused a connection is passed over for this long; one that does not move, for longer. */
const AVOID_MS = 1000
const AVOID_FROZEN_MS = 10_000
/** For a control to say that it takes requests. */
const READY_MS = patiently(1000)
/** How long a connection is kept that writes; a control says for a second that it is about to stop. */
const RECENT_MS = 500
/** A body that is sent with its head, as a page and most calls of the API are. */
const SHORT_BODY_BYTES = 65_536
const MAX_ATTEMPTS = 3
/** What Node writes into a request line; HTTP/2 lets more arrive. */
const FORWARDABLE = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/
/** Change nothing: may be tried again when no answer has begun. */
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/**
 * The body of any other request is never passed on. Node sends that of a GET or DELETE without a length as bare bytes
 * after the headers: on a kept connection they would be the beginning of another visitor's request.
 */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export interface ProxyFailure {
  readonly status: 400 | 408 | 429 | 502 | 503 | 504
  /** Undefined when the caller is the cause. */
  readonly error: Error | undefined
}

export interface Proxy {
  forward(exchange: FullExchange, onFailure: (failure: ProxyFailure) => void): void
  /** Requests that control is answering. */
  inUse(): number
  close(): void
}

export interface ProxyDependencies {
  readonly controlUrls: readonly [string, ...string[]]
  /** `host[:port]` as the service is known to the world. */
  readonly publicHost: string
  /** The trace that the exchange is part of, where there are traces. */
  readonly traceparent?: ((exchange: FullExchange) => string | undefined) | undefined
}

/** One exchange on its way to a control, and again on its way to the next one. */
interface Forwarding {
  readonly exchange: FullExchange
  readonly headers: ControlHeaders
  readonly answer: ControlsAnswer
  readonly body: GatheredBody | undefined
  readonly startedAt: number
  readonly onFailure: (failure: ProxyFailure) => void
  readonly tried: Set<string>
  attempts: number
  control: string
  outgoing: ClientRequest | undefined
  check: NodeJS.Timeout | undefined
  receivedAtCheck: number
  slowChecks: number
  /** Set when this side ends the attempt, and why. */
  ending: ProxyFailure | undefined
  hasTimedOut: boolean
}

type ControlHeaders = Record<string, string | string[] | undefined>

/**
 * What http-proxy reads of a request, and no more: node:http2 would make stand-ins for a request and a response of node:http,
 * with a dozen listeners, for each one. It never breaks off: the end of its visitor is heard of by `answer`.
 */
class ControlRequest {
  readonly forwarding: Forwarding
  readonly method: string
  readonly url: string
  readonly headers: ControlHeaders
  readonly socket = CONNECTED

  constructor(forwarding: Forwarding) {
    const { exchange, headers } = forwarding
    this.forwarding = forwarding
    this.method = exchange.method
    this.url = exchange.target
    this.headers = headers
  }

  on(): this {
    return this
  }
}

const CONNECTED = { destroyed: false } as const
/** What http-proxy looks at of an answer that is sent by us (`sendBack`). */
const OUR_ANSWER = { finished: true } as unknown as ServerResponse

/** A request without a body is over with its head. */
class NoBody extends Stream {
  override pipe<To extends NodeJS.WritableStream>(to: To): To {
    to.end()
    return to
  }
}

const NO_BODY = new NoBody()

/**
 * What http-proxy fills in for node:http, whatever the protocol. It joins the parts of a path anew, `/a//b` as `/a/b` and
 * `/next/http:/x` as `/next/http://x`: of that nothing is kept.
 */
function asSent(target: string): { path: string } {
  return {
    get path() {
      return target
    },
    set path(_joined) {},
  }
}

export function createProxy(dependencies: ProxyDependencies): Proxy {
  return new ControlProxy(dependencies)
}

/**
 * Keeps connections for a moment only. A control closes none that was just in use, and one that is told to stop says so
 * for longer before it closes any (`control-health.ts`).
 */
class RecentConnections extends nodeHttp.Agent {
  override keepSocketAlive(socket: Duplex): void {
    // Whether it is kept, which the types do not tell.
    const isKept = super.keepSocketAlive(socket)
    if (socket instanceof Socket) socket.setTimeout(RECENT_MS)
    return isKept
  }
}

class ControlProxy implements Proxy {
  readonly #controlUrls: ProxyDependencies['controlUrls']
  readonly #publicHost: string
  readonly #traceparent: ProxyDependencies['traceparent']
  // How many there may be is the business of the shares.
  readonly #pooled = new nodeHttp.Agent({ keepAlive: true, scheduling: 'lifo' })
  // A kept connection may end just as a request goes out on it. Reading can be tried again; writing must not be, so that
  // it takes one that was in use a moment ago, or a new one. What is long has a new one, which ends with a refusal.
  readonly #recent = new RecentConnections({ keepAlive: true, scheduling: 'lifo' })
  readonly #fresh = new nodeHttp.Agent({ keepAlive: false })
  // With `toProxy` the target is not parsed: http-proxy would read `//a@b/c` as the path /c of another host, and throw
  // at `//a@[/`.
  readonly #proxy = httpProxy.createProxyServer({
    xfwd: false,
    changeOrigin: false,
    toProxy: true,
    selfHandleResponse: true,
    proxyTimeout: SILENCE_MS,
  })
  readonly #shares = createShares(CONTROL_SHARES)
  readonly #health = createControlHealth()
  /** Addresses of controls, taken apart once. */
  readonly #targets: ReadonlyMap<string, httpProxy.ProxyTarget>
  readonly #avoidUntil = new Map<string, number>()
  #turn = 0

  constructor({ controlUrls, publicHost, traceparent }: ProxyDependencies) {
    this.#traceparent = traceparent
    this.#controlUrls = controlUrls
    this.#publicHost = publicHost
    this.#targets = new Map(controlUrls.map((url) => [url, urlToHttpOptions(new URL(url)) as httpProxy.ProxyTarget]))
    this.#proxy.on('proxyReq', (outgoing, request) => sendOut(forwardingOf(request), outgoing))
    this.#proxy.on('proxyRes', (answer, request) => sendBack(forwardingOf(request), answer))
  }

  forward(exchange: FullExchange, onFailure: (failure: ProxyFailure) => void): void {
    if (!FORWARDABLE.test(exchange.target)) return onFailure({ status: 400, error: undefined })
    const visitor = exchange.forControl()
    const headers = headersFor(exchange, visitor.headers, this.#publicHost, this.#traceparent?.(exchange))
    let forwarding: Forwarding | undefined
    const start = (): void => {
      exchange.askForBody()
      forwarding = newForwarding(exchange, headers, visitor, onFailure)
      this.#begin(forwarding)
    }
    const refuse = (status: ProxyFailure['status']): void => onFailure({ status, error: undefined })
    const leave = this.#shares.enter(limitKeyOfIp(exchange.ip), start, refuse)
    // It comes once; `once` would make two more objects of it.
    visitor.answer.on('close', () => {
      if (forwarding !== undefined) abandon(forwarding)
      leave()
    })
  }

  inUse(): number {
    return this.#shares.inUse()
  }

  close(): void {
    this.#pooled.destroy()
    this.#recent.destroy()
    this.#fresh.destroy()
    this.#health.close()
  }

  /** Round robin over those that are not known to be away; when all are, over all. */
  #nextControl(tried: ReadonlySet<string>): string | undefined {
    const now = performance.now()
    const untried = this.#controlUrls.filter((url) => !tried.has(url))
    const healthy = untried.filter((url) => (this.#avoidUntil.get(url) ?? 0) <= now)
    const candidates = healthy.length > 0 ? healthy : untried
    return candidates.length === 0 ? undefined : candidates[this.#turn++ % candidates.length]
  }

  #attempt(forwarding: Forwarding, control: string): void {
    const { exchange, headers, body } = forwarding
    forwarding.control = control
    forwarding.outgoing = undefined
    forwarding.ending = undefined
    forwarding.attempts += 1
    forwarding.tried.add(control)
    this.#scheduleCheck(forwarding)
    const options = {
      target: this.#targets.get(control),
      agent: this.#agentFor(exchange.method, headers),
      buffer: body ?? NO_BODY,
      ssl: asSent(exchange.target),
    }
    const request = new ControlRequest(forwarding) as unknown as IncomingMessage
    try {
      this.#proxy.web(request, OUR_ANSWER, options, (error: NodeJS.ErrnoException) => this.#onError(forwarding, error))
    } catch (error) {
      clearTimeout(forwarding.check)
      forwarding.onFailure(asFailure(error as NodeJS.ErrnoException))
    }
  }

  #agentFor(method: string, headers: ControlHeaders): Agent {
    if (READING.has(method)) return this.#pooled
    return Number(headers['content-length']) <= SHORT_BODY_BYTES ? this.#recent : this.#fresh
  }

  #onError(forwarding: Forwarding, error: NodeJS.ErrnoException): void {
    const { exchange, answer, control, tried, attempts, ending, hasTimedOut } = forwarding
    clearTimeout(forwarding.check)
    if (exchange.isAnswered) return void answer.destroy()
    if (error.code === 'ECONNREFUSED') this.#avoid(control, AVOID_MS)
    const isSafe = READING.has(exchange.method) && !hasTimedOut && attempts < MAX_ATTEMPTS
    if (error.code === 'ECONNRESET' && ending === undefined) tried.clear()
    const next = isSafe && ending?.status !== 408 ? this.#nextControl(tried) : undefined
    if (next !== undefined) return this.#attempt(forwarding, next)
    forwarding.onFailure(ending ?? { status: hasTimedOut ? 504 : 502, error })
  }

  #avoid(control: string, forMs: number): void {
    this.#avoidUntil.set(control, performance.now() + forMs)
  }

  #scheduleCheck(forwarding: Forwarding): void {
    clearTimeout(forwarding.check)
    forwarding.check = setTimeout(() => void this.#look(forwarding), CHECK_MS)
  }

  /** Gives up on a side that does not move: a visitor with their body, or control with its answer. */
  async #look(forwarding: Forwarding): Promise<void> {
    const { body, control, startedAt } = forwarding
    const received = body?.receivedBytes ?? 0
    const moved = received - forwarding.receivedAtCheck
    forwarding.receivedAtCheck = received
    if (body?.isWaiting && moved < MIN_BODY_BYTES) {
      if (++forwarding.slowChecks >= MAX_SLOW_CHECKS) return this.#end(forwarding, { status: 408, error: undefined })
    } else {
      forwarding.slowChecks = 0
      if (moved === 0 && (await this.#isSilent(control)) && isUnanswered(forwarding, control)) {
        this.#avoid(control, AVOID_FROZEN_MS)
        return this.#end(forwarding, { status: 504, error: new Error(`${control} does not answer`) })
      }
    }
    if (performance.now() - startedAt > MAX_REQUEST_MS) return this.#end(forwarding, { status: 408, error: undefined })
    if (isUnanswered(forwarding, control)) this.#scheduleCheck(forwarding)
  }

  async #isSilent(control: string): Promise<boolean> {
    return (await this.#health.stateOf(control, ALIVE_MS)) === 'silent'
  }

  #end(forwarding: Forwarding, why: ProxyFailure): void {
    forwarding.ending = why
    forwarding.outgoing?.destroy(why.error ?? new Error('given up'))
  }

  /** Writing is never tried twice, so with several controls the one that gets it has just said that it is there to stay. */
  async #readyControl(): Promise<string | undefined> {
    const tried = new Set<string>()
    for (let control = this.#nextControl(tried); control !== undefined; control = this.#nextControl(tried)) {
      if ((await this.#health.stateOf(control, READY_MS)) === 'ready') return control
      tried.add(control)
      this.#avoid(control, AVOID_MS)
    }
    return undefined
  }

  #begin(forwarding: Forwarding): void {
    const any = (): string => this.#nextControl(forwarding.tried) ?? this.#controlUrls[0]
    if (READING.has(forwarding.exchange.method) || this.#controlUrls.length === 1)
      return this.#attempt(forwarding, any())
    void this.#readyControl()
      .then((control) => this.#attempt(forwarding, control ?? any()))
      .catch((error: unknown) => forwarding.onFailure({ status: 502, error: error as Error }))
  }
}

function newForwarding(
  exchange: FullExchange,
  headers: ControlHeaders,
  { body, answer }: ForControl,
  onFailure: (failure: ProxyFailure) => void,
): Forwarding {
  return {
    exchange,
    headers,
    answer,
    body: bodyOf(exchange, body),
    startedAt: performance.now(),
    onFailure,
    tried: new Set(),
    attempts: 0,
    control: '',
    outgoing: undefined,
    check: undefined,
    receivedAtCheck: 0,
    slowChecks: 0,
    ending: undefined,
    hasTimedOut: false,
  }
}

function forwardingOf(request: IncomingMessage): Forwarding {
  return (request as unknown as ControlRequest).forwarding
}

/** A request to control begins. */
function sendOut(forwarding: Forwarding, outgoing: ClientRequest): void {
  forwarding.outgoing = outgoing
  outgoing.once('timeout', () => (forwarding.hasTimedOut = true))
  // Ended, or left, before there was a connection.
  if (forwarding.ending !== undefined || forwarding.answer.destroyed) outgoing.destroy(new Error('given up'))
}

/** Control's answer begins. */
function sendBack({ exchange, check }: Forwarding, answer: IncomingMessage): void {
  clearTimeout(check)
  exchange.relay(answer.statusCode ?? 502, headersOf(answer), answer)
}

/** The answer is out, or the visitor gone. One who leaves early ends control's work too. */
function abandon({ check, body, answer, outgoing }: Forwarding): void {
  clearTimeout(check)
  body?.destroy()
  if (answer.aborted === true || !answer.writableFinished) outgoing?.destroy()
}

function isUnanswered({ exchange, control }: Forwarding, asked: string): boolean {
  return !exchange.isAnswered && control === asked
}

/** Node refuses to write what HTTP/1.1 cannot say: that is the caller's doing. Anything else is ours. */
function asFailure(error: NodeJS.ErrnoException): ProxyFailure {
  const isUnsayable = /^ERR_(?:INVALID_CHAR|HTTP_INVALID_HEADER_VALUE|INVALID_HTTP_TOKEN|UNESCAPED_CHARACTERS)$/
  return isUnsayable.test(error.code ?? '') ? { status: 400, error: undefined } : { status: 502, error }
}

/** Undefined: none is passed on. */
function bodyOf(exchange: FullExchange, body: ForControl['body']): GatheredBody | undefined {
  if (WITH_BODY.has(exchange.method)) return new GatheredBody(body, (bytes) => exchange.countPiece(bytes))
  exchange.ignoreBody()
  return undefined
}

/** What control says to the visitor; what it says to us about its connection stays here. */
function headersOf({ rawHeaders }: IncomingMessage): string[] {
  const headers: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase()
    const value = rawHeaders[index + 1]
    if (name !== undefined && value !== undefined && !NOT_RETURNED.has(name)) headers.push(name, value)
  }
  return headers
}

/** What control may see of what the visitor said. */
function headersFor(
  exchange: FullExchange,
  received: IncomingHttpHeaders,
  publicHost: string,
  traceparent: string | undefined,
): ControlHeaders {
  const headers: ControlHeaders = Object.create(null)
  const named = connectionNames(received['connection'])
  for (const [name, value] of Object.entries(received)) {
    if (!name.startsWith(':') && !NOT_FORWARDED.has(name) && !named.has(name)) headers[name] = value
  }
  // A visitor may not take the length from a body by naming it in `connection`, nor announce one that is not sent.
  const length = received['content-length']
  if (!WITH_BODY.has(exchange.method)) delete headers['content-length']
  else if (length !== undefined) headers['content-length'] = length
  // A visitor's own trace ends here: ours is nobody else's to name.
  delete headers['traceparent']
  if (traceparent !== undefined) headers['traceparent'] = traceparent
  headers['host'] = exchange.authority ?? publicHost
  headers['x-forwarded-for'] = exchange.ip
  headers['x-forwarded-proto'] = 'https'
  if (PROXY_HEADERS.some((name) => received[name] !== undefined)) headers[RELAYED_HEADER] = '1'
  headers['x-forwarded-host'] = exchange.authority ?? publicHost
  return headers
}

const NO_NAMES: ReadonlySet<string> = new Set()

/** Headers that the sender declared to be about this connection only. */
function connectionNames(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined) return NO_NAMES
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}
