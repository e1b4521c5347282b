/** Small HTTP clients for tests: every host is reached at 127.0.0.1, with the right SNI and authority, over h1 or h2. */
import { once } from 'node:events'
import http, { type IncomingHttpHeaders } from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import tls, { type SecureContext } from 'node:tls'

export interface RequestOptions {
  readonly url: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** A FormData becomes multipart/form-data with its own content-type. */
  readonly body?: string | Uint8Array | FormData
  /** Sent as application/json. */
  readonly json?: unknown
  readonly h2?: boolean
  /** PEM of the CA to trust. */
  readonly ca?: string
  /** Answer to wait for at most. */
  readonly timeoutMs?: number
  /** Take a connection that an earlier request left, over HTTP/1.1: a new one costs twice what most requests do. */
  readonly keepAlive?: boolean
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** One header, joined when it came several times. */
  header(name: string): string | undefined
  /** The `name=value` part of each cookie that was set. */
  readonly cookies: readonly string[]
  text(): string
  json<Value = any>(): Value // oxlint-disable-line typescript/no-explicit-any -- a test asserts the shape right after
}

/** Status and error code of an endpoint's refusal. */
export function refusal(answer: Answer): string {
  return `${answer.status} ${answer.json().error}`
}

const DEFAULT_TIMEOUT_MS = 90_000

export async function request(options: RequestOptions): Promise<Answer> {
  const { headers, body } = await encodeBody(options)
  const prepared: Prepared = {
    url: new URL(options.url),
    // What was asked for, byte by byte: URL would tidy up `..`, `//` and odd escapes.
    target: /^https?:\/\/[^/?#]*([^#]*)/.exec(options.url)![1] || '/',
    method: options.method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...headers, ...options.headers },
    body,
    ca: options.ca,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    keepAlive: options.keepAlive ?? false,
  }
  return options.h2 ? await requestHttp2(prepared) : await requestHttp1(prepared)
}

interface Prepared {
  readonly url: URL
  readonly target: string
  readonly method: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Buffer | undefined
  readonly ca: string | undefined
  readonly timeoutMs: number
  readonly keepAlive: boolean
}

/** Authorities are read once each: that takes as long as the handshake. */
const contexts = new Map<string, SecureContext>()

function contextOf(ca: string | undefined): SecureContext | undefined {
  if (ca === undefined) return undefined
  const known = contexts.get(ca) ?? tls.createSecureContext({ ca })
  contexts.set(ca, known)
  return known
}

const agents = {
  'https:': new https.Agent({ keepAlive: true, maxFreeSockets: 4 }),
  'http:': new http.Agent({ keepAlive: true, maxFreeSockets: 4 }),
}

async function encodeBody({ body, json }: RequestOptions): Promise<{ headers: Record<string, string>; body?: Buffer }> {
  if (json !== undefined) {
    return { headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(json)) }
  }
  if (body instanceof FormData) {
    const form = new Response(body)
    return {
      headers: { 'content-type': form.headers.get('content-type')! },
      body: Buffer.from(await form.arrayBuffer()),
    }
  }
  return { headers: {}, body: body === undefined ? undefined : Buffer.from(body) }
}

async function requestHttp1(prepared: Prepared): Promise<Answer> {
  const { url, target, method, headers, body, ca, timeoutMs, keepAlive } = prepared
  const secure = url.protocol === 'https:'
  const sent = (secure ? https : http).request({
    host: '127.0.0.1',
    port: url.port || (secure ? 443 : 80),
    servername: url.hostname,
    path: target,
    method,
    headers: { host: url.host, ...(body ? { 'content-length': String(body.length) } : {}), ...headers },
    secureContext: contextOf(ca),
    agent: keepAlive && agents[secure ? 'https:' : 'http:'],
    timeout: timeoutMs,
  } as https.RequestOptions)
  sent.on('timeout', () => sent.destroy(new Error(`no answer from ${url.host}${target} within ${timeoutMs} ms`)))
  // A connection may break after the answer is whole: then nobody minds.
  const failed = once(sent, 'error').then(([error]) => Promise.reject(error as Error))
  failed.catch(() => {})
  sent.end(body)
  let response: http.IncomingMessage
  try {
    ;[response] = (await Promise.race([once(sent, 'response'), failed])) as [http.IncomingMessage]
  } catch (error) {
    // The server had closed the connection that was left: the request did not arrive.
    if (sent.reusedSocket && ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return requestHttp1({ ...prepared, keepAlive: false })
    throw error
  }
  return answer(response.statusCode!, response.headers, Buffer.concat(await response.toArray()))
}

async function requestHttp2({ url, target, method, headers, body, ca, timeoutMs }: Prepared): Promise<Answer> {
  const session = http2.connect(`https://127.0.0.1:${url.port || 443}`, {
    servername: url.hostname,
    secureContext: contextOf(ca),
  })
  try {
    const failed = once(session, 'error').then(([error]) => Promise.reject(error as Error))
    failed.catch(() => {})
    const stream = session.request({ ':method': method, ':path': target, ':authority': url.host, ...headers } as never)
    stream.setTimeout(timeoutMs, () =>
      stream.destroy(new Error(`no answer from ${url.host}${target} within ${timeoutMs} ms`)),
    )
    // A server that dies closes the stream without an error.
    const closed = once(stream, 'close').then(() => Promise.reject(new Error(`${url.host} closed before it answered`)))
    closed.catch(() => {})
    stream.end(body)
    const [received] = (await Promise.race([once(stream, 'response'), failed, closed])) as [http2.IncomingHttpHeaders]
    const chunks = await Promise.race([stream.toArray(), failed])
    const { ':status': status, ...rest } = received
    return answer(Number(status), rest, Buffer.concat(chunks as Buffer[]))
  } finally {
    session.close()
  }
}

function answer(status: number, headers: IncomingHttpHeaders, body: Buffer): Answer {
  return {
    status,
    headers,
    body,
    cookies: (headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0]!),
    header(name) {
      const value = headers[name.toLowerCase()]
      return Array.isArray(value) ? value.join(', ') : value
    },
    text: () => body.toString(),
    json: () => JSON.parse(body.toString()),
  }
}
