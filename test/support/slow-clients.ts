/**
 * Thousands of visitors who dawdle, as a program of its own, so that the one that measures does nothing else:
 *
 *   node test/support/slow-clients.ts '{"kind":"h1 headers","count":5000,…}'
 *
 * It connects from many loopback addresses, says a little more each second on every connection, and tells its parent
 * how it goes until the server has let all of them go.
 */
import { once } from 'node:events'
import net from 'node:net'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { connectRawH2, FLAG, FRAME, frame, getHeaders, uint32 } from './h2-frames.ts'

export type SlowKind =
  | 'no handshake'
  | 'h1 headers'
  | 'h2 without a request'
  | 'h2 headers'
  | 'h2 closed window'
  | 'h2 unread answers'

export interface SlowOptions {
  readonly kind: SlowKind
  readonly count: number
  /** New connections per second; the server lets the first go ten seconds later. */
  readonly perSecond: number
  readonly port: number
  readonly host: string
  readonly ca: string
}

export interface SlowProgress {
  readonly opened: number
  /** Refused, or ended before there was anything to be slow with. */
  readonly failed: number
  readonly open: number
  readonly mostOpen: number
  /** The longest that a connection has lasted so far, those that are still open among them. */
  readonly longestMs: number
  readonly isOpening: boolean
}

interface Dawdler {
  readonly socket: net.Socket
  readonly startedAt: number
  endedAt?: number
  /** Says a little more. */
  trickle?(): void
  readonly takesNothing?: boolean
}

/** The edge allows an address 512 connections at once and 200 handshakes per second. */
const PER_ADDRESS = 100
const OPENED_PER_TURN = 10
/** More than kernels take. */
const UNREAD_FILES = ['/middle.bin', '/middle.bin', '/large.bin']
const TRICKLE_MS = 1000
const TELL_MS = 250
const GIVE_UP_MS = 60_000

const addressOf = (index: number): string =>
  `127.0.${1 + (Math.floor(index / PER_ADDRESS) >> 8)}.${1 + (Math.floor(index / PER_ADDRESS) & 255)}`

type Start = (options: SlowOptions & { localAddress: string }) => Promise<Omit<Dawdler, 'startedAt'>>

const KINDS: Readonly<Record<SlowKind, Start>> = {
  async 'no handshake'({ port, localAddress }) {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress })
    await once(socket, 'connect')
    return { socket }
  },
  async 'h1 headers'({ port, ca, host, localAddress }) {
    const ALPNProtocols = ['http/1.1']
    const how = { port, host: '127.0.0.1', ca, servername: host, localAddress, ALPNProtocols }
    const socket = tls.connect(how as tls.ConnectionOptions)
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\n`)
    let sent = 0
    return { socket, trickle: () => void socket.write(`x-${(sent += 1)}: y\r\n`) }
  },
  async 'h2 without a request'({ port, ca, host, localAddress }) {
    const { socket } = await connectRawH2({ port, ca, servername: host, localAddress })
    return { socket, trickle: () => void socket.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))) }
  },
  async 'h2 headers'({ port, ca, host, localAddress }) {
    const { socket } = await connectRawH2({ port, ca, servername: host, localAddress })
    socket.write(frame(FRAME.headers, 0, 1, getHeaders(host)))
    const more = frame(FRAME.continuation, 0, 1, Buffer.from([0, 1, 0x78, 1, 0x79]))
    return { socket, trickle: () => void socket.write(more) }
  },
  async 'h2 closed window'({ port, ca, host, localAddress }) {
    const { socket } = await connectRawH2({ port, ca, servername: host, localAddress })
    // INITIAL_WINDOW_SIZE 0: the answer may begin and never go on.
    socket.write(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])))
    socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, getHeaders(host, '/large.bin')))
    return { socket }
  },
  async 'h2 unread answers'({ port, ca, host, localAddress }) {
    const { socket } = await connectRawH2({ port, ca, servername: host, localAddress })
    socket.pause()
    // As much as there is may come at once, and no one fetches it.
    socket.write(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])))
    socket.write(frame(FRAME.windowUpdate, 0, 0, uint32(2 ** 31 - 1 - 65_535)))
    for (const [index, file] of UNREAD_FILES.entries())
      socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 1, getHeaders(host, file)))
    // Who reads nothing hears of the end only when they say something.
    return { socket, takesNothing: true, trickle: () => void socket.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))) }
  },
}

async function dawdle(options: SlowOptions): Promise<void> {
  const dawdlers: Dawdler[] = []
  let failed = 0
  let mostOpen = 0
  let isOpening = true
  const start = KINDS[options.kind]

  async function open(index: number): Promise<void> {
    try {
      const { socket, ...rest } = await start({ ...options, localAddress: addressOf(index) })
      const dawdler: Dawdler = { socket, startedAt: performance.now(), ...rest }
      socket.on('error', () => {})
      socket.once('close', () => (dawdler.endedAt = performance.now()))
      if (!rest.takesNothing) socket.resume()
      dawdlers.push(dawdler)
    } catch {
      failed += 1
    }
  }

  const progress = (): SlowProgress => {
    const now = performance.now()
    const open = dawdlers.filter(({ endedAt }) => endedAt === undefined).length
    mostOpen = Math.max(mostOpen, open)
    const longestMs = dawdlers.reduce((most, { startedAt, endedAt }) => Math.max(most, (endedAt ?? now) - startedAt), 0)
    return { opened: dawdlers.length, failed, open, mostOpen, longestMs, isOpening }
  }

  /** Spread over the second, as they would come from many machines. */
  async function keepTrickling(): Promise<void> {
    for (let turn = 0; ; turn = (turn + 1) % 20) {
      for (let index = turn; index < dawdlers.length; index += 20)
        if (dawdlers[index]!.endedAt === undefined) dawdlers[index]!.trickle?.()
      await sleep(TRICKLE_MS / 20)
    }
  }

  async function openAll(): Promise<void> {
    const startedAt = performance.now()
    const opening: Promise<void>[] = []
    while (opening.length < options.count) {
      const due = Math.min(options.count, ((performance.now() - startedAt) / 1000) * options.perSecond)
      // From many machines they would not come in bursts, however late this one is.
      const next = Math.min(due, opening.length + OPENED_PER_TURN)
      while (opening.length < next) opening.push(open(opening.length))
      await sleep(10)
    }
    await Promise.all(opening)
    isOpening = false
  }

  void keepTrickling()
  void openAll()
  const end = performance.now() + GIVE_UP_MS
  let last = progress()
  while (performance.now() < end && (last.isOpening || last.open > 0)) {
    await sleep(TELL_MS)
    last = progress()
    process.send!(last)
  }
}

if (process.argv[1] === import.meta.filename) {
  // These are other people's machines: they must not take the processor from the server or the measuring.
  os.setPriority(5)
  process.once('disconnect', () => process.exit())
  await dawdle(JSON.parse(process.argv[2]!) as SlowOptions)
  process.exit()
}
