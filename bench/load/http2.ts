/** HTTP/2: some requests at a time on each connection, which is opened again when it ends. */
import { once } from 'node:events'
import http2 from 'node:http2'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { CLOSED, kindOf, NO_ANSWER } from './failures.ts'
import { createDraw, HEADERS } from './requests.ts'
import type { Page, Target } from './target.ts'
import type { Generator, Notes, ThreadOptions } from './generator.ts'

const TIMEOUT_MS = 10_000
/** After a connection that failed: an edge that is away is not asked thousands of times a second. */
const AGAIN_MS = 100
/** Visitors read; windows are not what is measured. */
const WINDOW_BYTES = 8_000_000

export function loadHttp2(options: ThreadOptions, notes: Notes): Generator {
  const { target, connections, streams, seconds, thread } = options
  const draw = createDraw(target.pages, thread + 1)
  const sessions = new Set<http2.ClientHttp2Session>()
  let isOver = false
  const stop = (): void => {
    isOver = true
    for (const session of sessions) session.destroy()
  }
  const timer = setTimeout(stop, seconds * 1000)

  async function keepConnection(): Promise<void> {
    while (!isOver) {
      const session = open(target)
      sessions.add(session)
      try {
        await once(session, 'connect')
        await Promise.all(Array.from({ length: streams }, () => askOn(session)))
      } catch (error) {
        if (!isOver) notes.failed(kindOf(error as NodeJS.ErrnoException))
      }
      session.destroy()
      sessions.delete(session)
      if (!isOver) await sleep(AGAIN_MS)
    }
  }

  async function askOn(session: http2.ClientHttp2Session): Promise<void> {
    while (!isOver && !session.closed && !session.destroyed) {
      const startedAt = performance.now()
      const answer = await ask(session, draw())
      if (isOver) return
      if ('failure' in answer) notes.failed(answer.failure)
      else notes.answered(answer.status, performance.now() - startedAt, answer.bytes)
    }
  }

  const done = Promise.all(Array.from({ length: connections }, keepConnection)).then(() => clearTimeout(timer))
  return { done, stop }
}

function open({ ip, port, servername }: Target): http2.ClientHttp2Session {
  const session = http2.connect(`https://${isIPv6(ip) ? `[${ip}]` : ip}:${port}`, {
    servername: servername ?? '',
    // The certificate was looked at before the first request.
    rejectUnauthorized: false,
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  })
  session.on('connect', () => session.setLocalWindowSize(WINDOW_BYTES))
  session.on('error', () => {})
  return session
}

type Asked = { readonly status: number; readonly bytes: number } | { readonly failure: string }

/** Resolves when the answer has come whole, or will not come. */
function ask(session: http2.ClientHttp2Session, { host, path }: Page): Promise<Asked> {
  return new Promise((resolve) => {
    let status = 0
    let bytes = 0
    let failure = CLOSED
    let isWhole = false
    const stream = session.request({ ':authority': host, ':path': path, ...HEADERS })
    stream.setTimeout(TIMEOUT_MS, () => {
      failure = NO_ANSWER
      stream.close(http2.constants.NGHTTP2_CANCEL)
    })
    stream.on('response', (headers) => (status = Number(headers[':status'])))
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
    stream.on('end', () => (isWhole = status > 0 && stream.rstCode === http2.constants.NGHTTP2_NO_ERROR))
    stream.on('error', (error) => (failure = kindOf(error)))
    stream.on('close', () => resolve(isWhole ? { status, bytes } : { failure }))
  })
}
