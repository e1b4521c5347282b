/** Visitors who take nothing of one answer of an HTTP/2 session, while control works for them on another. */
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import tls, { type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openLocalCa } from '../../../certs/local/local-ca.ts'
import { Connection } from '../../../edge/accept/connection.ts'
import { createHttp2Side } from '../../../edge/accept/http2/http2.ts'
import { lossOf, type Loss, type StalledSession } from '../../../edge/accept/http2/stalled-session.ts'
import { createOutgoing } from '../../../edge/accept/outgoing/outgoing.ts'
import { stopReading } from '../../../edge/accept/raw-socket.ts'
import { createNetworkLimits } from '../../../edge/accept/visitors/limits.ts'
import type { Exchange } from '../../../edge/context.ts'
import { systemClock } from '../../../shared/running/clock.ts'

/** A reader who reads nothing is given up after 24 of them. */
const CHECK_MS = 4
/** More than a session that is given up has between the word and the end. */
const BEYOND_GRACE_MS = 1500
/** More than the kernels of both sides hold of a connection. */
const BODY = Buffer.alloc(32_000_000, 'video')
const LARGEST_WINDOW = 2 ** 31 - 1
const limits = createNetworkLimits({ connections: 1e9, handshakesPerSecond: 1e9, requestsPerSecond: 1e9 })

let folder: string
let server: net.Server
let port: number
/** The connection that was made last, as the edge has it. */
let atEdge: net.Socket
/** What control was asked last, and has not answered. */
let publishing: Exchange | undefined

function answer(exchange: Exchange): void {
  const { full } = exchange
  if (exchange.target === '/video') return exchange.send(200, [], BODY)
  full?.forControl()
  if (exchange.target === '/publish') publishing = exchange
  else full?.relay(200, [], Readable.from([BODY.subarray(0, 200_000)]))
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dropway-stalled-'))
  const certificate = openLocalCa(folder, systemClock).serviceCertificate(['localhost'])
  const side = createHttp2Side({ onExchange: answer, onAnswer() {} })
  const context = {
    visitorIps: { isTrusted: () => false, visitorOf: (peer: string) => peer },
    limits,
    certificates: { coversHost: () => true },
    outgoing: createOutgoing({ checkMs: CHECK_MS }),
  }
  const secure = tls.createServer({ ...certificate, ALPNProtocols: ['h2'] })
  secure.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => socket.destroy())
    side.take(socket, new Connection(socket, '127.0.0.1', limits.of('127.0.0.1'), context))
  })
  server = net.createServer((socket) => {
    atEdge = socket
    socket.on('error', () => socket.destroy())
    secure.emit('connection', socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ;({ port } = server.address() as AddressInfo)
})
afterAll(() => {
  limits.stop()
  server.close()
  rmSync(folder, { recursive: true })
})

async function visit(windowBytes: number): Promise<{ session: http2.ClientHttp2Session; socket: TLSSocket }> {
  const raw = net.connect(port, '127.0.0.1')
  const socket = tls.connect({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const settings = { initialWindowSize: windowBytes }
  const session = http2.connect('https://localhost', { createConnection: () => socket, settings })
  session.on('error', () => {})
  await once(session, 'connect')
  session.setLocalWindowSize(LARGEST_WINDOW)
  return { session, socket }
}

/** Asks, and reads nothing of the answer. */
function ask(session: http2.ClientHttp2Session, target: string, method = 'GET'): http2.ClientHttp2Stream {
  const stream = session.request({ ':path': target, ':method': method }, { endStream: method === 'GET' })
  stream.on('error', () => {})
  stream.pause()
  return stream
}

test.each(['/video', '/list'])(
  '%s, of which nothing is taken, ends alone: a publish beside it goes on',
  async (path) => {
    const { session } = await visit(65_535)
    const publish = ask(session, '/publish', 'POST')
    publish.write('the first half')
    const unread = ask(session, path)
    await new Promise((resolve) => unread.once('close', resolve))
    expect([unread.rstCode === http2.constants.NGHTTP2_NO_ERROR, session.destroyed]).toEqual([false, false])
    await sleep(BEYOND_GRACE_MS)
    publish.end('the second half')
    publishing?.full?.relay(200, [], Readable.from([Buffer.from('published')]))
    expect(await text(publish)).toBe('published')
    await once(session, 'close')
  },
)

test('a session that control does not work for ends with the answer of which nothing is taken', async () => {
  const { session } = await visit(65_535)
  ask(session, '/video')
  await once(session, 'close')
})

test.each<[string, (video: http2.ClientHttp2Stream, session: http2.ClientHttp2Session) => void]>([
  ['waits for control', (_, session) => void ask(session, '/publish', 'POST')],
  ['cancels what was asked for', (video) => video.close(http2.constants.NGHTTP2_CANCEL)],
])('a visitor who reads nothing at all, and %s, loses the connection', async (_, goOn) => {
  const { session, socket } = await visit(LARGEST_WINDOW)
  const video = ask(session, '/video')
  await once(video, 'response')
  stopReading(socket)
  await vi.waitUntil(() => waitingBytes() > 0, { interval: 1, timeout: 120_000 })
  goOn(video, session)
  await vi.waitUntil(async () => (await connections()) === 0, { timeout: 120_000 })
  session.destroy()
})

/** What the kernel does not take of what the edge has written. */
function waitingBytes(): number {
  return (atEdge as unknown as { _handle: { writeQueueSize: number } })._handle.writeQueueSize
}

function connections(): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))
}

test.each<[Loss, string, StalledSession]>([
  ['connection', 'closed windows, nothing of control', { controlAnswers: 0, isBlocked: false, arrivedBytes: 0 }],
  ['connection', 'a body that no one waits for', { controlAnswers: 0, isBlocked: true, arrivedBytes: 1e6 }],
  ['answers', 'closed windows, control works', { controlAnswers: 1, isBlocked: false, arrivedBytes: 0 }],
  ['answers', 'closed windows, an upload', { controlAnswers: 1, isBlocked: false, arrivedBytes: 1e6 }],
  ['answers', 'nothing is read, an upload', { controlAnswers: 1, isBlocked: true, arrivedBytes: 4096 }],
  ['connection', 'nothing is read, hardly anything comes', { controlAnswers: 1, isBlocked: true, arrivedBytes: 4095 }],
  ['connection', 'nothing is read, nothing comes', { controlAnswers: 9, isBlocked: true, arrivedBytes: 0 }],
])('who takes nothing loses the %s: %s', (loss, _, session) => {
  expect(lossOf(session)).toBe(loss)
})

test('of the answers of a connection, those that stand still are reset, once they were seen to', async () => {
  const raw = Object.assign(new EventEmitter(), { _handle: null })
  const lane = createOutgoing().lane({ _parent: raw } as unknown as TLSSocket)
  const [still, ends, moves, later] = [reader(), reader(), reader(), reader()]
  lane.pump(Readable.from([BODY.subarray(0, 9)]), still.to, 18)
  lane.end(ends.to, BODY.subarray(0, 9))
  lane.end(moves.to, BODY.subarray(0, 1_000_000))
  await turn()
  lane.resetStanding()
  moves.take()
  lane.end(later.to, BODY.subarray(0, 9))
  lane.resetStanding()
  expect([still, ends, moves, later].map(({ to }) => to.destroyed)).toEqual([true, true, false, false])
  lane.resetStanding()
  expect([moves, later].map(({ to }) => to.destroyed)).toEqual([true, true])
})

/** A visitor who takes a piece when `take` is called. */
function reader(): { to: Writable; take(): void } {
  let take = (): void => {}
  const to = new Writable({ write: (_chunk, _encoding, done) => void (take = done) })
  to.on('error', () => {})
  return { to, take: () => take() }
}
