/** Writes a Reply to the connection. */
import { STRICT_TRANSPORT_SECURITY } from '../../../../shared/http/header-policy.ts'
import { Readable } from 'node:stream'
import type { Request as ServerRequest, Response as ServerResponse } from 'hyper-express'
import type { Reply } from '../route.ts'

/** An unwanted body is read this far, so that the connection can be used again. */
const MAX_DRAIN_BYTES = 1_000_000
/** An unwanted body is read for this long at most. */
const MAX_DRAIN_MS = 1000

/** On every reply; a page that needs more sets its own policy. */
const SECURITY_HEADERS = Object.entries({
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': STRICT_TRANSPORT_SECURITY,
})

export interface SendOptions {
  /** The server is stopping: ask the caller to open a new connection next time. */
  readonly closing: boolean
}

export async function send(
  request: ServerRequest,
  response: ServerResponse,
  reply: Reply,
  options: SendOptions,
): Promise<void> {
  const bodyLeft = !request.received && !(await drain(request))
  if (response.completed) {
    discard(reply.body)
    return
  }
  // hyper-express would hold the reply back until the last byte of the body arrived.
  if (bodyLeft) request.received = true
  const close = bodyLeft || options.closing
  response.status(reply.status)
  writeHeaders(response, reply.headers ?? {}, close)
  if (reply.body instanceof Readable) await sendStream(request, response, reply.body, reply.headers?.['content-length'])
  else response.send(reply.body as string | Buffer | undefined, close || undefined)
}

function writeHeaders(response: ServerResponse, headers: NonNullable<Reply['headers']>, close: boolean): void {
  const names = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    names.add(name.toLowerCase())
    response.header(name, typeof value === 'string' ? value : [...value])
  }
  for (const [name, value] of SECURITY_HEADERS) {
    if (!names.has(name)) response.header(name, value)
  }
  if (close && !names.has('connection')) response.header('connection', 'close')
}

async function sendStream(
  request: ServerRequest,
  response: ServerResponse,
  body: Readable,
  length: string | readonly string[] | undefined,
): Promise<void> {
  if (request.method === 'HEAD') {
    body.destroy()
    response.send()
    return
  }
  // Destroys the body when the caller leaves, and waits for the socket to drain between chunks.
  await response.stream(body, length === undefined ? undefined : Number(length))
}

function discard(body: Reply['body']): void {
  if (body instanceof Readable) body.destroy()
}

/** True when the rest of the body was short enough to be read and dropped. */
async function drain(request: ServerRequest): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  let dropped = 0
  const timer = setTimeout(() => resolve(false), MAX_DRAIN_MS)
  request.on('error', () => resolve(false))
  // Paused reading goes on where a half-read body stopped.
  request.on('readable', dropBuffered)
  request.once('received', () => resolve(true))
  function dropBuffered(): void {
    for (let chunk: Buffer | null; (chunk = request.read()) !== null;) {
      dropped += chunk.byteLength
      if (dropped > MAX_DRAIN_BYTES) resolve(false)
    }
  }
  dropBuffered()
  const whole = await promise
  clearTimeout(timer)
  request.off('readable', dropBuffered)
  return whole || request.received
}
