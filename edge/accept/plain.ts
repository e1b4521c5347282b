/** The plain port: answers the CA's http-01 question, and sends all others to https. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { MAX_HEADER_BYTES } from '../../shared/contracts/limits.ts'
import { parseAuthority } from '../../shared/http/hosts.ts'
import { nodeHttp } from '../../shared/http/node-http.ts'
import type { ReceivedRequest } from '../../shared/http/received-request.ts'
import { endAfterAnswer, hasBody } from './http1/close-in-stages.ts'
import { hostOf, splitAbsoluteForm } from './http1/node-exchange.ts'
import type { VisitorIps } from './visitors/address.ts'
import { announced } from './visitors/announced.ts'
import type { NetworkLimits } from './visitors/limits.ts'
import { CHECK_SLOW_MS, HEADERS_MS, IDLE_MS } from './timeouts.ts'

const CHALLENGE_PREFIX = '/.well-known/acme-challenge/'
const REQUEST_MS = 20_000

export interface PlainListenerDependencies {
  /** Key authorization of an http-01 token. */
  challenge(token: string): string | undefined
  /** Public https port; undefined when it is 443. */
  readonly publicPort: number | undefined
  readonly limits: NetworkLimits
  readonly visitorIps: Pick<VisitorIps, 'isTrusted'>
}

export interface PlainListener {
  listen(port: number, host: string): Promise<number>
  close(): void
}

export function createPlainListener({
  challenge,
  publicPort,
  limits,
  visitorIps,
}: PlainListenerDependencies): PlainListener {
  const parsing = nodeHttp.createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: CHECK_SLOW_MS,
    requireHostHeader: false,
  })
  parsing.timeout = IDLE_MS
  parsing.on('request', (request, response) => answer(request, response))
  // Never listens (sockets come from the server below), but this is what starts its check for slow senders.
  parsing.emit('listening')
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    announced(socket, visitorIps, (peer) => {
      const network = limits.of(peer)
      if (!limits.mayConnect(network)) return void socket.destroy()
      network.connections += 1
      socket.once('close', () => void (network.connections -= 1))
      parsing.emit('connection', socket)
    })
  })

  function answer(request: IncomingMessage, response: ServerResponse): void {
    response.shouldKeepAlive = false
    if (hasBody(request)) endAfterAnswer(request, response)
    // The connection ends after its first answer: nothing is done for what was sent ahead.
    if (response.socket === null) return
    const { url } = request as ReceivedRequest
    const target = url.startsWith('/') ? url : splitAbsoluteForm(url)?.target
    const host = parseAuthority(hostOf(request.rawHeaders, undefined))
    if (target === undefined) return reply(response, 400, {}, '')
    if (target.startsWith(CHALLENGE_PREFIX)) {
      const authorization = challenge(target.slice(CHALLENGE_PREFIX.length))
      return authorization === undefined
        ? reply(response, 404, {}, '')
        : reply(response, 200, { 'content-type': 'application/octet-stream' }, authorization)
    }
    if (host === undefined) return reply(response, 400, {}, '')
    // One slash only: `//evil` must not become another host in any parser.
    const location = `https://${host}${publicPort === undefined ? '' : `:${publicPort}`}/${target.replace(/^[/\\]+/, '')}`
    return reply(response, 308, { location }, '')
  }

  return {
    async listen(port, host) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ port, host, reusePort: true, exclusive: true }, resolve)
      })
      return (server.address() as AddressInfo).port
    },
    close() {
      server.close()
      parsing.closeAllConnections()
      parsing.close()
    },
  }
}

function reply(response: ServerResponse, status: number, headers: Record<string, string>, body: string): void {
  response.writeHead(status, {
    ...headers,
    'cache-control': 'no-store',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  })
  response.end(body)
}
