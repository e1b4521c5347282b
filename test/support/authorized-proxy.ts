/** For tools that can neither trust our local CA nor send a token: plain HTTP on loopback in front of the stack. */
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Stack } from './stack.ts'

export interface AuthorizedProxy {
  readonly url: string
  close(): void
}

export async function openAuthorizedProxy(stack: Stack, token: string): Promise<AuthorizedProxy> {
  const service = new URL(stack.baseUrl)
  const server = http.createServer((incoming, response) => {
    const own = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const { host, origin, ...headers } = incoming.headers
    const outgoing = https.request(
      {
        host: '127.0.0.1',
        port: service.port,
        servername: service.hostname,
        ca: stack.ca,
        method: incoming.method,
        path: incoming.url,
        headers: {
          ...headers,
          // What names the proxy means the service behind it; everything else goes through as it is.
          host: host === own ? service.host : host,
          ...(origin === undefined ? {} : { origin: origin === `http://${own}` ? stack.baseUrl : origin }),
          authorization: `Bearer ${token}`,
        },
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(response)
      },
    )
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
