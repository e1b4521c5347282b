/** The redirect target of a sign-in: a server on the loopback address that lives for one answer. */
import type { AddressInfo } from 'node:net'
import { nodeHttp } from '../../../shared/http/node-http.ts'

export interface Loopback {
  readonly port: number
  /** The parameters that the browser came back with. */
  readonly answer: Promise<URLSearchParams>
  close(): void
}

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Back to the terminal</title>
<body style="font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem">
<h1>Back to the terminal</h1><p>The command line has what it needs. You can close this window.</p></body></html>`

export async function openLoopback(): Promise<Loopback> {
  let deliver: (answer: URLSearchParams) => void = () => {}
  const answer = new Promise<URLSearchParams>((resolve) => (deliver = resolve))
  const server = nodeHttp.createServer((request, response) => {
    const [path, query = ''] = (request.url ?? '').split('?', 2)
    if (request.method !== 'GET' || path !== '/callback') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      connection: 'close',
      'referrer-policy': 'no-referrer',
    })
    response.end(PAGE)
    deliver(new URLSearchParams(query))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    answer,
    close() {
      server.close()
      server.closeIdleConnections()
    },
  }
}
