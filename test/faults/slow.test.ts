/** Thousands of visitors who dawdle over TLS: good ones notice nothing, slow ones are let go. */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { processTree, residentMb } from '../../bench/processes.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'
import { figures } from '../support/faults.ts'
import { connectRawH2, FRAME, frame, getHeaders } from '../support/h2-frames.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const CONNECTIONS = Number(process.env['FAULT_CONNECTIONS'] ?? 1000)
const HOST = 'slow.localhost'
const CLOSED_WITHIN_MS = 20_000
/** Connections per loopback address; the edge allows an address 512 at once and 200 handshakes per second. */
const PER_ADDRESS = 100
let fixture: EdgeFixture
let traffic: Traffic

beforeAll(async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  await fixture.publish(HOST, { 'index.html': '<p>ok</p>', 'large.bin': 'y'.repeat(8_000_000) })
  traffic = startTraffic({
    port: fixture.edge.httpsPort,
    ca: fixture.ca(),
    sitesDomain: 'localhost',
    targets: [{ slug: 'slow', expect: ({ status, body }) => status === 200 && body.startsWith('<p>ok') }],
    perSecond: 50,
  })
})

afterAll(async () => {
  await traffic.stop()
  await fixture.stop()
})

const memory = (): number => processTree(fixture.edge.pid).reduce((sum, pid) => sum + residentMb(pid), 0)
const addressOf = (index: number): string =>
  `127.0.${1 + (Math.floor(index / PER_ADDRESS) >> 8)}.${1 + (Math.floor(index / PER_ADDRESS) & 255)}`

interface Dawdler {
  readonly socket: net.Socket
  /** Says a little more. */
  trickle?(): void
}

const kinds: readonly { name: string; start(localAddress: string): Promise<Dawdler> }[] = [
  {
    name: 'no handshake',
    async start(localAddress) {
      const socket = net.connect({ port: fixture.edge.httpsPort, host: '127.0.0.1', localAddress })
      await once(socket, 'connect')
      return { socket }
    },
  },
  {
    name: 'HTTP/1.1 headers, a line at a time',
    async start(localAddress) {
      const socket = await connectTls(localAddress)
      socket.write(`GET / HTTP/1.1\r\nhost: ${HOST}\r\n`)
      return { socket, trickle: () => void socket.write(`x-${Math.random().toString(36).slice(2)}: y\r\n`) }
    },
  },
  {
    name: 'HTTP/2 without a request',
    async start(localAddress) {
      const { socket } = await connectRawH2({
        port: fixture.edge.httpsPort,
        ca: fixture.ca(),
        servername: HOST,
        localAddress,
      })
      return { socket, trickle: () => void socket.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))) }
    },
  },
  {
    name: 'HTTP/2 headers that never end',
    async start(localAddress) {
      const { socket } = await connectRawH2({
        port: fixture.edge.httpsPort,
        ca: fixture.ca(),
        servername: HOST,
        localAddress,
      })
      socket.write(frame(FRAME.headers, 0, 1, getHeaders(HOST)))
      return {
        socket,
        trickle: () => void socket.write(frame(FRAME.continuation, 0, 1, Buffer.from([0, 1, 0x78, 1, 0x79]))),
      }
    },
  },
]

async function connectTls(localAddress: string): Promise<tls.TLSSocket> {
  const socket = tls.connect({
    port: fixture.edge.httpsPort,
    host: '127.0.0.1',
    ca: fixture.ca(),
    servername: HOST,
    localAddress,
    ALPNProtocols: ['http/1.1'],
  } as tls.ConnectionOptions)
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

test.each(kinds)(`${CONNECTIONS} times: $name`, { timeout: 180_000 }, async ({ name, start }) => {
  traffic.take()
  await sleep(1000)
  const before = traffic.take()
  const opened: Dawdler[] = []
  for (let index = 0; index < CONNECTIONS; index += 50) {
    const some = Array.from({ length: Math.min(50, CONNECTIONS - index) }, (_, each) => start(addressOf(index + each)))
    opened.push(...(await Promise.all(some)))
  }
  const opening = traffic.take()
  // Those that connected first may have been let go already.
  const countOpen = (): number => opened.filter(({ socket }) => !socket.destroyed).length
  const startedAt = performance.now()
  for (const { socket } of opened) {
    socket.on('error', () => {})
    socket.resume()
  }
  while (countOpen() > 0 && performance.now() - startedAt < CLOSED_WITHIN_MS) {
    // A few at a time, for this process also measures.
    for (const [index, { socket, trickle }] of opened.entries()) {
      if (!socket.destroyed) trickle?.()
      if (index % 50 === 0) await sleep(10)
    }
    await sleep(200)
  }
  const report = traffic.take()
  const open = countOpen()
  figures(
    `${opened.length} × ${name}: ${open} still open after ${Math.round((performance.now() - startedAt) / 1000)} s, memory ${Math.round(memory())} MB (p99 before ${before.p99Ms.toFixed(1)} ms, while they connect ${opening.p99Ms.toFixed(1)} ms)`,
    report,
  )
  for (const { socket } of opened) socket.destroy()
  expect(open).toBe(0)
  expect(memory()).toBeLessThan(1000)
  expect([...opening.failures, ...report.failures].slice(0, 5)).toEqual([])
})
