/**
 * The service's own host: control answers, through http-proxy. Bodies stream both ways at the slower side's pace; whoever
 * leaves first ends the other side too. What a visitor says about their own address is never passed on.
 */
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import httpProxy from 'http-proxy'
import type { Exchange } from '../context.ts'

/** Meaningless or forbidden beyond one connection (RFC 9110 §7.6.1), and what only we may say. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
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
/** A control that refused a connection is passed over for this long. */
const AVOID_MS = 1000
const MAX_SOCKETS = 512

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
  const agent = new http.Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, scheduling: 'lifo' })
  const proxy = httpProxy.createProxyServer({ agent, xfwd: false, changeOrigin: false, proxyTimeout: ANSWER_MS })
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
    for (const name of NOT_RETURNED) delete answer.headers[name]
    // HTTP/2 has no reason phrase; Node would warn about one.
    if (!(response instanceof http.ServerResponse)) answer.statusMessage = ''
    // An answer that breaks off must not look whole.
    answer.once('error', () => response.destroy())
    const exchange = exchanges.get(request)
    if (exchange !== undefined) onAnswer(exchange, answer.statusCode!)
  })

  function attempt(
    pair: { request: IncomingMessage; response: ServerResponse },
    tried: Set<string>,
    onFailure: (failure: ProxyFailure) => void,
  ): void {
    const target = nextTarget(tried)!
    tried.add(target)
    proxy.web(pair.request, pair.response, { target }, (error: NodeJS.ErrnoException) => {
      if (pair.response.headersSent || pair.response.destroyed) return void pair.response.destroy()
      const isAway = error.code === 'ECONNREFUSED'
      if (isAway) avoidUntil.set(target, performance.now() + AVOID_MS)
      // Nothing was sent yet, so a second control may try; a body that was already read cannot be sent again.
      if (isAway && !hasBody(pair.request) && nextTarget(tried) !== undefined) return attempt(pair, tried, onFailure)
      onFailure({ status: timedOut.has(pair.request) ? 504 : 502, error })
    })
  }

  return {
    forward(exchange, onFailure) {
      const pair = exchange.forProxy()
      exchanges.set(pair.request, exchange)
      rewriteRequest(exchange, pair.request, publicHost)
      attempt(pair, new Set(), onFailure)
    },
    close: () => agent.destroy(),
  }
}

/** http-proxy reads method, url and headers from the request: they are replaced by what control may see. */
function rewriteRequest(exchange: Exchange, request: IncomingMessage, publicHost: string): void {
  const headers: Record<string, string | string[] | undefined> = Object.create(null)
  const named = connectionNames(request.headers['connection'])
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith(':') && !NOT_FORWARDED.has(name) && !named.has(name)) headers[name] = value
  }
  headers['host'] = exchange.authority ?? publicHost
  headers['x-forwarded-for'] = exchange.ip
  headers['x-forwarded-proto'] = 'https'
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

function hasBody(request: IncomingMessage): boolean {
  return (
    request.headers['content-length'] !== undefined ||
    request.headers['transfer-encoding'] !== undefined ||
    !['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(request.method ?? '')
  )
}
