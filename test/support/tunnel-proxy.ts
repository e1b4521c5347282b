/** A proxy that opens tunnels (CONNECT) and notes for whom, wherever the name that was asked for may lead. */
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'

export interface TunnelProxy {
  readonly url: string
  /** `name:port`, with the login where one came along. */
  readonly asked: string[]
  /** Answers with this status instead of a tunnel. */
  refusal: number | undefined
  close(): void
}

/** `portFor` says where on this machine a tunnel to `name:port` ends. */
export async function startTunnelProxy(portFor: (target: string) => number): Promise<TunnelProxy> {
  const asked: string[] = []
  const sockets = new Set<net.Socket>()
  const server = http.createServer((_request, response) => response.writeHead(400).end())
  server.on('connect', (request, socket: net.Socket) => {
    const { url: wanted = '', headers } = request
    asked.push(`${wanted} ${headers['proxy-authorization'] ?? ''}`.trim())
    if (proxy.refusal !== undefined) return void socket.end(`HTTP/1.1 ${proxy.refusal} No\r\n\r\n`)
    const target = net.connect(portFor(wanted), '127.0.0.1')
    for (const end of [socket, target]) sockets.add(end.on('error', () => socket.destroy()))
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    socket.pipe(target).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: TunnelProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    refusal: undefined,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
  return proxy
}
