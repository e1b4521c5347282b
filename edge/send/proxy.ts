/**
 * The service's own host: control answers, through http-proxy. Bodies stream both ways at the slower side's pace; whoever
 * leaves first ends the other side too. What a visitor says about their own address is never passed on.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import httpProxy from 'http-proxy'
import { PROXY_HEADERS, RELAYED_HEADER } from '../../shared/relayed.ts'
import type { Exchange } from '../context.ts'

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
const NOT_RETURNED = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'trailer']

/** Until control's headers arrive; exports and long publishes take a while. */
const ANSWER_MS = 120_000
/** Between two pieces of an answer. */
const SILENCE_MS = 600_000
/** A control that refused a connection is passed over for this long. */
const AVOID_MS = 1000
/** For a control to say that it takes requests. */
const READY_MS = 1000
const MAX_SOCKETS = 512
const MAX_ATTEMPTS = 3
/** Change nothing: may be tried again when no answer has begun. */
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
/**
 * The body of any other request is never passed on. Node sends that of a GET or DELETE without a length as bare bytes
 * after the headers: on a kept connection they would be the beginning of somebody else's request.
 */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export interface ProxyFailure {
  readonly status: 502 | 504
  readonly error: Error
}

export interface Proxy {
  forward(exchange: Exchange, onFailure: (failure: ProxyFailure) => void): void
  close(): void
}

export interface ProxyDependencies {
  readonly controlUrls: readonly string[]
  /** `host[:port]` as the service is known to the world. */
  readonly publicHost: string
  onAnswer(exchange: Exchange, status: number): void
}

export function createProxy({ controlUrls, publicHost, onAnswer }: ProxyDependencies): Proxy {
  const pooled = new http.Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, scheduling: 'lifo' })
  // A kept connection may end just as a request goes out on it. Reading can be tried again; writing must not be.
  const fresh = new http.Agent({ keepAlive: false, maxSockets: MAX_SOCKETS })
  const proxy = httpProxy.createProxyServer({ xfwd: false, changeOrigin: false, proxyTimeout: ANSWER_MS })
  const timedOut = new WeakSet<object>()
  const exchanges = new WeakMap<object, Exchange>()
  const avoidUntil = new Map<string, number>()
  let turn = 0

  /** Round robin over those that are not known to be away; when all are, over all. */
  function nextTarget(tried: ReadonlySet<string>): string | undefined {
    const now = performance.now()
    const untried = controlUrls.filter((url) => !tried.has(url))
    const healthy = untried.filter((url) => (avoidUntil.get(url) ?? 0) <= now)
    const candidates = healthy.length > 0 ? healthy : untried
    return candidates.length === 0 ? undefined : candidates[turn++ % candidates.length]
  }

  proxy.on('proxyReq', (outgoing, request, response) => {
    outgoing.once('timeout', () => timedOut.add(request))
    // Whoever leaves before the end ends control's work too.
    response.once('close', () => {
      if (!response.writableFinished) outgoing.destroy()
    })
  })
  proxy.on('proxyRes', (answer, request, response) => {
    const keepAlive = answer.headers['keep-alive']
    for (const name of NOT_RETURNED) delete answer.headers[name]
    // The pool must know how long control keeps a connection, the visitor must not: http-proxy copies in between.
    if (keepAlive !== undefined) queueMicrotask(() => void (answer.headers['keep-alive'] = keepAlive))
    // http-proxy says "keep-alive" where nothing is said; whoever wants to close would wait for it. Not while they still
    // send: a connection that closes then takes the answer with it.
    if (response instanceof http.ServerResponse && !response.shouldKeepAlive && request.complete)
      answer.headers['connection'] = 'close'
    // HTTP/2 has no reason phrase; Node would warn about one.
    if (!(response instanceof http.ServerResponse)) answer.statusMessage = ''
    // From here on silence is an event stream that has nothing to say.
    answer.setTimeout(SILENCE_MS)
    // An answer that breaks off must not look whole.
    answer.once('error', () => response.destroy())
    const exchange = exchanges.get(request)
    if (exchange !== undefined) onAnswer(exchange, answer.statusCode!)
  })

  function attempt(
    pair: { request: IncomingMessage; response: ServerResponse },
    tried: Set<string>,
    attempts: number,
    onFailure: (failure: ProxyFailure) => void,
    preferred?: string,
  ): void {
    const { request, response } = pair
    const isReading = READING.has(request.method!)
    const target = preferred ?? nextTarget(tried) ?? controlUrls[0]!
    tried.add(target)
    const options = { target, agent: isReading ? pooled : fresh, ...bodyOf(request) }
    proxy.web(request, response, options, (error: NodeJS.ErrnoException) => {
      if (response.headersSent || response.destroyed) return void response.destroy()
      if (error.code === 'ECONNREFUSED') avoidUntil.set(target, performance.now() + AVOID_MS)
      const mayRetry = isReading && !timedOut.has(request) && attempts < MAX_ATTEMPTS
      if (mayRetry && (error.code === 'ECONNRESET' || nextTarget(tried) !== undefined))
        return attempt(pair, error.code === 'ECONNRESET' ? new Set() : tried, attempts + 1, onFailure)
      onFailure({ status: timedOut.has(request) ? 504 : 502, error })
    })
  }

  /** Writing is never tried twice, so with several controls the one that gets it has just said that it is there to stay. */
  async function readyTarget(): Promise<string | undefined> {
    const tried = new Set<string>()
    for (let target = nextTarget(tried); target !== undefined; target = nextTarget(tried)) {
      if (await isReady(target, pooled)) return target
      tried.add(target)
      avoidUntil.set(target, performance.now() + AVOID_MS)
    }
    return undefined
  }

  return {
    forward(exchange, onFailure) {
      const pair = exchange.forProxy()
      exchanges.set(pair.request, exchange)
      rewriteRequest(exchange, pair.request, publicHost)
      if (READING.has(exchange.method) || controlUrls.length === 1) return attempt(pair, new Set(), 1, onFailure)
      void readyTarget().then((target) => attempt(pair, new Set(), 1, onFailure, target))
    },
    close() {
      pooled.destroy()
      fresh.destroy()
    },
  }
}

/** http-proxy sends the request's own body unless it is given another. */
function bodyOf(request: IncomingMessage): { buffer?: Readable } {
  if (WITH_BODY.has(request.method!)) return {}
  request.resume()
  return { buffer: Readable.from([]) }
}

/** A control that is about to stop says 503 here while it still answers everything else. */
function isReady(target: string, agent: http.Agent): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = http.get(`${target}/healthz`, { agent, timeout: READY_MS }, (answer) => {
      answer.resume()
      resolve(answer.statusCode! < 500)
    })
    probe.on('timeout', () => probe.destroy(new Error('no answer')))
    probe.on('error', () => resolve(false))
  })
}

/** http-proxy reads method, url and headers from the request: they are replaced by what control may see. */
function rewriteRequest(exchange: Exchange, request: IncomingMessage, publicHost: string): void {
  const headers: Record<string, string | string[] | undefined> = Object.create(null)
  const named = connectionNames(request.headers['connection'])
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith(':') && !NOT_FORWARDED.has(name) && !named.has(name)) headers[name] = value
  }
  // Nobody may take the length from a body by calling it a matter of this connection, nor announce one that is not sent.
  const length = request.headers['content-length']
  if (!WITH_BODY.has(exchange.method)) delete headers['content-length']
  else if (length !== undefined) headers['content-length'] = length
  headers['host'] = exchange.authority ?? publicHost
  headers['x-forwarded-for'] = exchange.ip
  headers['x-forwarded-proto'] = 'https'
  if (PROXY_HEADERS.some((name) => request.headers[name] !== undefined)) headers[RELAYED_HEADER] = '1'
  headers['x-forwarded-host'] = exchange.authority ?? publicHost
  Object.defineProperties(request, {
    headers: { value: headers },
    method: { value: exchange.method },
    url: { value: exchange.target, writable: true },
  })
}

/** Headers that the sender declared to be about this connection only. */
function connectionNames(connection: string | undefined): Set<string> {
  return new Set(
    (connection ?? '')
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}
