/** A TCP proxy whose lines break: for what must go on afterwards. */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SEED } from './depth.ts'
import { createRandom } from './random.ts'

export interface CuttingProxy {
  readonly port: number
  /** Bytes that clients have sent so far. */
  readonly sent: number
  /** From now on the next `times` connections break after this many bytes from the client. */
  cutAfter(bytes: number, times: number): void
  /** From now on nothing passes once clients have sent this many bytes; resolves when that happens. */
  stallAfter(bytes: number): Promise<void>
  flow(): void
  /** Ends the connections that there are; the next ones pass what they carry. */
  breakLines(): void
  /** The next connection loses this share of what it carries, as TCP would see it: late, later, and dead in the end. */
  loseOnNext(share: number): void
  close(): Promise<void>
}

interface CuttingProxyOptions {
  /** What has come is delivered, however long that takes, also when its sender has gone meanwhile. */
  readonly isFaithful?: boolean
}

export async function startCuttingProxy(
  targetPort: number,
  { isFaithful = false }: CuttingProxyOptions = {},
): Promise<CuttingProxy> {
  let sent = 0
  let limit = Number.POSITIVE_INFINITY
  let cuts = 0
  let stallAt = Number.POSITIVE_INFINITY
  let stalled = (): void => {}
  let loss = 0
  const sockets = new Set<net.Socket>()
  const server = net.createServer((client) => {
    const upstream = net.connect(targetPort, '127.0.0.1')
    if (loss > 0) {
      const share = loss
      loss = 0
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        relayLossy(from, to, share)
      for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}))
      return
    }
    let seen = 0
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        // A socket that is closed with bytes to send is given up by the kernel after some fifty seconds.
        if (isFaithful) upstream.end()
        else upstream.destroy()
      })
    }
    client.on('data', (chunk: Buffer) => {
      seen += chunk.byteLength
      sent += chunk.byteLength
      if (sent > stallAt) {
        client.pause()
        stalled()
        return
      }
      if (cuts > 0 && seen > limit) {
        cuts--
        client.destroy()
        return
      }
      if (!upstream.write(chunk)) {
        client.pause()
        upstream.once('drain', () => client.resume())
      }
    })
    upstream.pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const flow = (): void => void (stallAt = Number.POSITIVE_INFINITY)
  return {
    port: (server.address() as net.AddressInfo).port,
    get sent() {
      return sent
    },
    cutAfter(bytes, times) {
      limit = bytes
      cuts = times
    },
    stallAfter(bytes) {
      stallAt = sent + bytes
      return new Promise((resolve) => (stalled = resolve))
    },
    flow,
    breakLines() {
      flow()
      for (const socket of sockets) socket.destroy()
    },
    loseOnNext(share) {
      loss = share
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const FIRST_RETRANSMISSION_MS = 200
/** After this many losses in a row nothing comes through any more, and no one says so. */
const DEAD_AFTER = 5

/** Chunks stay in order; each waits for as many retransmissions as it loses. */
function relayLossy(from: net.Socket, to: net.Socket, share: number): void {
  let previous = Promise.resolve(true)
  const random = createRandom(SEED)
  from.on('data', (chunk) => {
    previous = previous.then(async (alive) => {
      if (!alive) return false
      for (let losses = 0; random.chance(share); losses++) {
        if (losses === DEAD_AFTER) return false
        await sleep(FIRST_RETRANSMISSION_MS * 2 ** losses)
      }
      return to.writable && (to.write(chunk), true)
    })
  })
  from.on('close', () => to.destroy())
}
