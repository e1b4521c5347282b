/**
 * Visitors who keep their connections: opens so many, asks for one page on each and then nothing more. On `ask`, a share
 * of them asks again and again for some seconds, one request at a time. Answers its parent by message.
 *
 *   node bench/edge/connection-holder.ts '{"port":8443,"host":"bench.localhost","path":"/4.html","protocol":"h1","count":1000}'
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import tls from 'node:tls'

export interface HolderOptions {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly protocol: 'h1' | 'h2'
  readonly count: number
}

export interface AskCommand {
  readonly connections: number
  readonly seconds: number
}

export type HolderReport =
  | { readonly kind: 'open'; readonly open: number }
  | { readonly kind: 'asked'; readonly requests: number; readonly open: number; readonly p99Ms: number }

/** One who keeps a connection; resolves when an answer has come whole. */
interface Held {
  ask(): Promise<void>
  isOpen(): boolean
}

/** Handshakes under way: more would only wait for the server. */
const OPENED_AT_ONCE = 32

async function openH1({ port, host, path }: HolderOptions): Promise<Held> {
  const socket = tls.connect({ port, servername: host, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  let answered = (): void => {}
  let left = -1
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    if (left < 0) {
      const head = chunk.indexOf('\r\n\r\n')
      left = Number(/content-length: (\d+)/i.exec(chunk.toString('latin1', 0, head))![1]) + head + 4
    }
    left -= chunk.length
    if (left > 0) return
    left = -1
    answered()
  })
  await once(socket, 'secureConnect')
  const request = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  return {
    ask: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      answered = resolve
      socket.write(request)
      return promise
    },
    isOpen: () => !socket.destroyed,
  }
}

async function openH2({ port, host, path }: HolderOptions): Promise<Held> {
  const session = http2.connect(`https://127.0.0.1:${port}`, { servername: host, rejectUnauthorized: false })
  session.on('error', () => {})
  await once(session, 'connect')
  return {
    ask: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const stream = session.request({ ':path': path, ':authority': host })
      stream.on('error', () => {})
      stream.on('end', resolve)
      stream.resume()
      return promise
    },
    isOpen: () => !session.destroyed,
  }
}

async function main(options: HolderOptions): Promise<void> {
  const held: Held[] = []
  const openOne = options.protocol === 'h1' ? openH1 : openH2
  const openSome = async (): Promise<void> => {
    while (held.length + underWay < options.count) {
      underWay += 1
      const one = await openOne(options)
      await one.ask()
      underWay -= 1
      held.push(one)
    }
  }
  let underWay = 0
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome))
  const open = (): number => held.filter((one) => one.isOpen()).length
  const tell = (report: HolderReport): void => void process.send!(report)
  process.on(
    'message',
    (command: AskCommand) => void ask(held, command).then((asked) => tell({ ...asked, open: open() })),
  )
  tell({ kind: 'open', open: open() })
}

async function ask(held: readonly Held[], { connections, seconds }: AskCommand) {
  const until = performance.now() + seconds * 1000
  const times: number[] = []
  // Spread over all of them, as it happens.
  const every = Math.max(1, Math.floor(held.length / connections))
  await Promise.all(
    held
      .filter((_, index) => index % every === 0)
      .map(async (one) => {
        for (let before = performance.now(); before < until;) {
          await one.ask()
          const now = performance.now()
          times.push(now - before)
          before = now
        }
      }),
  )
  const sorted = times.toSorted((a, b) => a - b)
  return { kind: 'asked' as const, requests: times.length, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0 }
}

await main(JSON.parse(process.argv[2]!) as HolderOptions)
