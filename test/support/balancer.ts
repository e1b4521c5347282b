/**
 * What stands in front of several edges in production: a TCP balancer. It hands each connection to the next edge that
 * accepts one, and knows nothing of TLS.
 */
import { once } from 'node:events'
import net from 'node:net'

export interface Balancer {
  readonly port: number
  /** Connections go to these from now on; those that are open stay where they are. */
  setTargets(ports: readonly number[]): void
  stop(): Promise<void>
}

export async function startBalancer(): Promise<Balancer> {
  let targets: readonly number[] = []
  let turn = 0
  const open = new Set<net.Socket>()

  const server = net.createServer({ pauseOnConnect: true, noDelay: true }, (visitor) => {
    open.add(visitor)
    visitor.once('close', () => open.delete(visitor))
    visitor.on('error', () => visitor.destroy())
    const order = targets.map((_, index) => targets[(turn + index) % targets.length]!)
    turn++
    void connectFirst(order).then((edge) => {
      if (!edge || visitor.destroyed) {
        edge?.destroy()
        visitor.destroy()
        return
      }
      edge.on('error', () => visitor.destroy())
      visitor.once('close', () => edge.destroy())
      edge.once('close', () => visitor.end())
      visitor.pipe(edge).pipe(visitor)
      visitor.resume()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    setTargets: (ports) => void (targets = ports),
    async stop() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function connectFirst(ports: readonly number[]): Promise<net.Socket | undefined> {
  for (const port of ports) {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    if (isOpen) return socket
    socket.destroy()
  }
  return undefined
}
