/**
 * A server in front of Pebble, which has no renewal information (ARI, RFC 9773): passes everything on, names
 * `renewalInfo` in the directory, and lets a test answer that and whatever else it likes.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { systemClock } from '../../shared/running/clock.ts'
import type { Pebble } from './pebble.ts'

export interface AcmeFront {
  /** For ACME_DIRECTORY_URL; ACME_CA_FILE is Pebble's. */
  readonly directoryUrl: string
  stop(): void
}

/** Where the front answers questions about renewal: followed by the certificate's id. */
export const RENEWAL_INFO = '/renewal-info/'

/** `answer` returns false for what is to be passed on. */
export async function startAcmeFront(
  pebble: Pebble,
  answer: (target: string, body: Buffer, response: ServerResponse) => boolean,
): Promise<AcmeFront> {
  const { cert, key } = openLocalCa(path.dirname(path.dirname(pebble.caFile)), systemClock).issue(['127.0.0.1'])
  const server = https.createServer({ cert, key }, (request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`

  /** Pebble takes the address that a request names for its own, so everything but the directory passes unchanged. */
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    if (answer(request.url!, body, response)) return
    const upstream = https.request(new URL(request.url!, pebble.directoryUrl), {
      method: request.method,
      headers: request.headers,
      agent: false,
      rejectUnauthorized: false,
    })
    upstream.end(body)
    const [received] = (await once(upstream, 'response')) as [IncomingMessage]
    if (request.url !== '/dir') return void received.pipe(response.writeHead(received.statusCode!, received.headers))
    const directory = JSON.parse((await buffer(received)).toString()) as Record<string, unknown>
    sendJson(response, { ...directory, renewalInfo: `${origin}${RENEWAL_INFO.slice(0, -1)}` })
  }

  return {
    directoryUrl: `${origin}/dir`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export function sendJson(response: ServerResponse, value: unknown, retryAfter?: string): void {
  if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

/** A suggested window of one minute. */
export function sendWindow(response: ServerResponse, startMs: number, retryAfter?: string): void {
  const iso = (ms: number): string => new Date(ms).toISOString()
  sendJson(response, { suggestedWindow: { start: iso(startMs), end: iso(startMs + 60_000) } }, retryAfter)
}
