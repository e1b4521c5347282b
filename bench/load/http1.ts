/** HTTP/1.1 by autocannon: one request at a time on each connection. */
import autocannon from 'autocannon'
import { isIPv6 } from 'node:net'
import { CLOSED, kindOf, NO_ANSWER } from './failures.ts'
import { createDraw, HEADERS } from './requests.ts'
import type { Generator, Notes, ThreadOptions } from './generator.ts'

const TIMEOUT_SECONDS = 10

export function loadHttp1({ target, connections, seconds, thread }: ThreadOptions, notes: Notes): Generator {
  const draw = createDraw(target.pages, thread + 1)
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const running = autocannon(
    {
      url: `${target.isSecure ? 'https' : 'http'}://${isIPv6(target.ip) ? `[${target.ip}]` : target.ip}:${target.port}`,
      connections,
      duration: seconds,
      timeout: TIMEOUT_SECONDS,
      servername: target.servername,
      headers: { ...HEADERS },
      requests: [{ setupRequest: (request) => addressed(request, draw()) }],
      setupClient: (client) => watch(client, notes),
    },
    (error) => (error ? reject(error) : resolve()),
  )
  return { done, stop: () => (running as unknown as { stop(): void }).stop() }
}

type Request = autocannon.Request

function addressed(request: Request, { host, path }: { host: string; path: string }): Request {
  return { ...request, path, headers: { ...request.headers, host } }
}

/**
 * Counts for itself: autocannon passes over a connection that is closed before its answer, and then takes the time of the
 * next answer from the request before. A request that is sent while another waits says that the other was lost. It sends
 * one more on a connection whose end the answer has announced, too: no visitor would, and it is not counted.
 */
function watch(client: autocannon.Client, notes: Notes): void {
  let sentAt: number | undefined
  let isEnding = false
  const lose = (kind: string): void => {
    if (!isEnding) notes.failed(kind)
    isEnding = false
    sentAt = undefined
  }
  const events: NodeJS.EventEmitter = client
  events.on('request', () => {
    if (sentAt !== undefined) lose(CLOSED)
    sentAt = performance.now()
  })
  events.on('headers', (head: { readonly shouldKeepAlive: boolean }) => (isEnding = !head.shouldKeepAlive))
  events.on('response', (status: number, bytes: number) => {
    notes.answered(status, performance.now() - (sentAt ?? performance.now()), bytes)
    sentAt = undefined
  })
  events.on('connError', (error: NodeJS.ErrnoException) => lose(kindOf(error)))
  // Autocannon has sent the next request by then.
  events.on('timeout', () => {
    notes.unfailed(CLOSED)
    notes.failed(NO_ANSWER)
  })
}
