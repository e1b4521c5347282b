/** What both MCP endpoints do with a request before and after the SDK: bounds of a message, callers in browsers, headers. */
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { requireJsonShape, type JsonBounds } from '../../../ground/http/bodies/json-shape.ts'
import { json } from '../../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import { corsHeaders, createOriginCheck, PREFLIGHT_HEADERS } from './origins.ts'
import { readBody, type Body, type MessageLimits } from './oversize.ts'

type Handle = (request: Request) => Promise<Reply>

/** A message that is whole, or the answer to one that is too large to be kept. */
export type ReceivedCall = { readonly bytes: Buffer | undefined } | { readonly refused: Reply }

/** `tooLarge`: what a tool says to a message over the limit, from in front of it. */
export async function receiveCall(
  request: Request,
  { limits, bounds, tooLarge }: { limits: MessageLimits; bounds: JsonBounds; tooLarge: string },
): Promise<ReceivedCall> {
  if (request.method !== 'POST') return { bytes: undefined }
  const body: Body = await readBody(request.stream(), request.header('content-length'), limits, (size) =>
    request.hold(size),
  )
  if (body.kind === 'oversize') return { refused: json(200, refusalOf(body.id, tooLarge)) }
  requireJsonShape(body.bytes, bounds)
  return { bytes: body.bytes }
}

function refusalOf(id: string | number, text: string): unknown {
  // `resultType` is asked for by the protocol of 2026, and unknown to the ones before.
  const result = { resultType: 'complete', isError: true, content: [{ type: 'text', text }] }
  return { jsonrpc: '2.0', id, result }
}

export interface BrowserDoor {
  /** A page that may call hears everything, refusals too: without these headers a browser hides the answer from it. */
  forOrigin(handle: Handle): Handle
  /** Answers what a browser asks before it calls. */
  preflight(path: string): Route
}

export function createBrowserDoor(baseUrl: string): BrowserDoor {
  const mayCall = createOriginCheck(baseUrl)
  const forOrigin =
    (handle: Handle): Handle =>
    async (request) => {
      const origin = request.header('origin')
      if (origin === undefined) return handle(request)
      if (!mayCall(origin)) throw errors.forbidden('Browsers may not call this address from another origin.')
      const reply = await handle(request).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        return json(error.status, error.toBody(), error.headers)
      })
      return { ...reply, headers: { ...reply.headers, ...corsHeaders(origin) } }
    }
  const handle = forOrigin(async () => ({ status: 204, headers: PREFLIGHT_HEADERS }))
  return { forOrigin, preflight: (path) => ({ method: 'OPTIONS', path, handle }) }
}

const PASSED_ON = [
  'content-type',
  'accept',
  'mcp-protocol-version',
  'mcp-session-id',
  'mcp-method',
  'mcp-name',
  'last-event-id',
]

export function toWebRequest(request: Request, address: string, bytes: Buffer | undefined): globalThis.Request {
  const headers = new Headers()
  for (const name of PASSED_ON) {
    const value = request.header(name)
    if (value !== undefined) headers.set(name, value)
  }
  // `*/*` and silence take both kinds of answer; the SDK wants to read their names.
  if (/^$|\*\/\*/.test(request.header('accept') ?? '')) headers.set('accept', 'application/json, text/event-stream')
  const body = bytes === undefined ? null : new Uint8Array(bytes)
  return new globalThis.Request(address, { method: request.method, headers, body, signal: request.signal })
}

export function toReply(response: Response): Reply {
  const headers = { 'cache-control': 'no-store', ...Object.fromEntries(response.headers) }
  return {
    status: response.status,
    headers,
    ...(response.body ? { body: Readable.fromWeb(response.body as ReadableStream) } : {}),
  }
}
