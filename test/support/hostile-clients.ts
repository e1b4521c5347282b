/**
 * Requests that would stop a server that is not careful, as a program of its own, so that what measures the others
 * does nothing else:
 *
 *   node test/support/hostile-clients.ts '{"kind":"pipelined","seconds":3,…}'
 *
 * It comes from 127.0.0.7, keeps to its attack for the time it is given, and tells its parent what it was answered.
 */
import http2 from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { connectRawH2, FLAG, FRAME, frame, getHeaders } from './h2-frames.ts'

export type HostileKind = 'paths' | 'pipelined' | 'one-byte chunks' | 'one-byte frames'

export interface HostileOptions {
  readonly kind: HostileKind
  readonly seconds: number
  readonly port: number
  readonly host: string
  readonly ca: string
  /** Of `paths`: asked for in turn, on one connection with this many streams. */
  readonly targets?: readonly string[]
  readonly streams?: number
}

export interface HostileReport {
  /** Answers by status; 0: the connection ended without one. */
  readonly statuses: Readonly<Record<string, number>>
}

const ADDRESS = '127.0.0.7'
const CONNECTIONS = 4
const PIPELINED = 10_000

type Count = (status: number) => void
type Attack = (options: HostileOptions, count: Count) => Promise<void>

function connect({ port, host, ca }: HostileOptions, protocol: string): tls.TLSSocket {
  const options = { port, host: '127.0.0.1', ca, servername: host, localAddress: ADDRESS, ALPNProtocols: [protocol] }
  const socket = tls.connect(options as tls.ConnectionOptions)
  socket.on('error', () => {})
  return socket
}

/** Sends, and counts what comes until the connection ends, or a moment has passed. */
async function say(options: HostileOptions, text: string, count: Count): Promise<void> {
  const socket = connect(options, 'http/1.1')
  let answers = 0
  socket.on('data', (chunk: Buffer) => {
    for (const [, status] of chunk.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
      answers += 1
      count(Number(status))
    }
  })
  socket.write(text)
  await Promise.race([new Promise((resolve) => socket.once('close', resolve)), sleep(2000)])
  if (answers === 0) count(0)
  socket.destroy()
}

const KINDS: Readonly<Record<HostileKind, Attack>> = {
  async paths(options, count) {
    const session = http2.connect(`https://${options.host}`, { createConnection: () => connect(options, 'h2') })
    session.on('error', () => {})
    const ask = (target: string): Promise<void> =>
      new Promise((resolve) => {
        const stream = session.request({ ':authority': options.host, ':path': target })
        let status = 0
        stream.on('response', (headers) => (status = Number(headers[':status'])))
        stream.on('error', () => {})
        stream.on('close', () => {
          count(status)
          resolve()
        })
        stream.resume()
      })
    const targets = options.targets!
    await Promise.all(Array.from({ length: options.streams! }, (_, index) => ask(targets[index % targets.length]!)))
    session.destroy()
  },
  pipelined: (options, count) =>
    say(options, `GET / HTTP/1.1\r\nhost: ${options.host}\r\n\r\n`.repeat(PIPELINED), count),
  'one-byte chunks': (options, count) =>
    say(
      options,
      `POST /api/v1/drops-md HTTP/1.1\r\nhost: ${options.host}\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(100_000)}`,
      count,
    ),
  async 'one-byte frames'({ port, ca, host }, count) {
    const { socket, write, closed } = await connectRawH2({ port, ca, servername: host, localAddress: ADDRESS })
    // Static table: 3 = :method POST.
    const headers = Buffer.concat([Buffer.from([0x83]), getHeaders(host, '/api/v1/drops-md').subarray(1)])
    await write(frame(FRAME.headers, FLAG.endHeaders, 1, headers))
    const pieces = Buffer.concat(Array.from({ length: 5000 }, () => frame(FRAME.data, 0, 1, Buffer.from('a'))))
    for (let turn = 0; turn < 20 && (await write(pieces)); turn++);
    await Promise.race([closed, sleep(1000)])
    socket.destroy()
    count(0)
  },
}

async function attack(options: HostileOptions): Promise<void> {
  const statuses: Record<string, number> = {}
  const count = (status: number): void => void (statuses[status] = (statuses[status] ?? 0) + 1)
  const endsAt = performance.now() + options.seconds * 1000
  const keepOn = async (): Promise<void> => {
    while (performance.now() < endsAt) await KINDS[options.kind](options, count).catch(() => count(0))
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, keepOn))
  process.send!({ statuses } satisfies HostileReport)
  process.disconnect!()
}

await attack(JSON.parse(process.argv[2]!) as HostileOptions)
