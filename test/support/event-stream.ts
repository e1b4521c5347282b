/** A tab that listens: server-sent events over HTTP/1.1, as they come. */
import https from 'node:https'
import type { Stack } from './stack.ts'

export interface EventStream {
  readonly status: number
  /** Resolves with the text so far once it holds this, so many times. */
  until(text: string, times?: number): Promise<string>
  /** The edge has ended it. */
  readonly ended: Promise<void>
  close(): void
}

/** `hostname`: that of a drop; the service's own where it is left out. */
export function listenTo(
  { baseUrl, ca }: Pick<Stack, 'baseUrl' | 'ca'>,
  path: string,
  headers: Readonly<Record<string, string>>,
  hostname = new URL(baseUrl).hostname,
): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(baseUrl)
    const options = { host: '127.0.0.1', servername: hostname, port, path, ca, agent: false } as const
    const request = https.get({ ...options, headers: { host: `${hostname}:${port}`, ...headers } }, (answer) => {
      let seen = ''
      const waiting = new Set<() => void>()
      answer.setEncoding('utf8').on('data', (piece: string) => {
        seen += piece
        for (const look of waiting) look()
      })
      answer.on('error', () => {})
      const ended = new Promise<void>((end) => answer.once('end', end))
      resolve({
        status: answer.statusCode ?? 0,
        ended,
        close: () => request.destroy(),
        until: (text, times = 1) =>
          new Promise((found) => {
            const look = (): void => {
              if (seen.split(text).length <= times) return
              waiting.delete(look)
              found(seen)
            }
            waiting.add(look)
            look()
          }),
      })
    })
    request.on('error', reject)
  })
}
