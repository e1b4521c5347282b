/** One request before all others: what cannot work at all is said in a sentence, not counted ten thousand times. */
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { isIPv6 } from 'node:net'
import { isUntrusted, kindOf } from './failures.ts'
import { HEADERS } from './requests.ts'
import type { Page, Target } from './target.ts'

export interface Probed {
  readonly status: number
  readonly bytes: number
}

const TIMEOUT_MS = 10_000

/** Throws an Error whose message is a sentence. Only here a certificate is looked at: autocannon takes any. */
export async function probe(target: Target): Promise<Probed> {
  const [page] = target.pages
  if (page === undefined) throw new Error('There is nothing to ask for.')
  try {
    return await (target.isHttp2 ? probeHttp2(target, page) : probeHttp1(target, page))
  } catch (error) {
    throw new Error(sentenceOf(error as NodeJS.ErrnoException, target), { cause: error })
  }
}

function sentenceOf(error: NodeJS.ErrnoException, { ip, port, servername, isHttp2 }: Target): string {
  const place = `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`
  if (isUntrusted(error))
    return `The certificate at ${place} is not trusted for ${servername ?? ip} (${error.message}); --insecure takes it.`
  if (isHttp2 && /PROTOCOL_ERROR|ERR_HTTP2_ERROR|ALPN|no application protocol/i.test(`${error.code} ${error.message}`))
    return `${place} offers no HTTP/2.`
  return `Nothing can be loaded at ${place}: ${kindOf(error)}.`
}

async function probeHttp1(
  { isSecure, ip, port, servername, isInsecure }: Target,
  { host, path }: Page,
): Promise<Probed> {
  const request = (isSecure ? https : http).get({
    host: ip,
    port,
    path,
    headers: { host, ...HEADERS },
    agent: false,
    timeout: TIMEOUT_MS,
    ...(isSecure ? { servername: servername ?? '', rejectUnauthorized: !isInsecure } : {}),
  })
  request.on('timeout', () => request.destroy(new Error('no answer within 10 s')))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let bytes = 0
  for await (const chunk of response) bytes += (chunk as Buffer).length
  return { status: response.statusCode ?? 0, bytes }
}

async function probeHttp2({ ip, port, servername, isInsecure }: Target, { host, path }: Page): Promise<Probed> {
  const session = http2.connect(`https://${isIPv6(ip) ? `[${ip}]` : ip}:${port}`, {
    servername: servername ?? '',
    rejectUnauthorized: !isInsecure,
  })
  try {
    session.setTimeout(TIMEOUT_MS, () => session.destroy(new Error('no answer within 10 s')))
    await once(session, 'connect')
    const stream = session.request({ ':authority': host, ':path': path, ...HEADERS })
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
    let bytes = 0
    for await (const chunk of stream) bytes += (chunk as Buffer).length
    return { status: Number(headers[':status']), bytes }
  } finally {
    session.destroy()
  }
}
