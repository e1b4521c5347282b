/** Floods that are legal frame by frame: each ends the attacker's connection, costs no memory, and others notice nothing. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { processTree, residentMb } from '../support/processes.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'
import { figures } from '../support/faults.ts'
import { connectRawH2, FLAG, FRAME, frame, getHeaders, uint32, type RawH2 } from '../support/h2-frames.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const HOST = 'flooded.localhost'
/** Counted from the moment when a flood has exceeded what is allowed; the machine may be busy. */
const CLOSED_WITHIN_MS = 1000 * Number(process.env['FAULT_SLACK'] ?? 3)
const FLOOD_MS = 5000
const MEMORY_GROWTH_MB = 60
let fixture: EdgeFixture
let traffic: Traffic

beforeAll(async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1', EDGE_REQUESTS_PER_IP: '1000000' } })
  await fixture.publish(HOST, { 'index.html': `<p>ok</p>${'x'.repeat(50_000)}`, 'large.bin': 'y'.repeat(4_000_000) })
  traffic = startTraffic({
    port: fixture.edge.httpsPort,
    ca: fixture.ca(),
    sitesDomain: 'localhost',
    targets: [{ slug: 'flooded', expect: ({ status, body }) => status === 200 && body.startsWith('<p>ok') }],
    perSecond: 50,
  })
})

afterAll(async () => {
  await traffic.stop()
  await fixture.stop()
})

const worker = (): number => processTree(fixture.edge.pid).at(-1)!
const headers = (stream: number): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, getHeaders(HOST))

/** Each makes the next bytes of its flood; `allowed` says how many of them a polite client could send. */
const floods: readonly { name: string; next(round: number): Buffer }[] = [
  {
    name: 'rapid reset',
    next: (round) => Buffer.concat([headers(round * 2 + 1), frame(FRAME.resetStream, 0, round * 2 + 1, uint32(8))]),
  },
  {
    name: 'CONTINUATION without end',
    next: (round) =>
      round === 0
        ? frame(FRAME.headers, 0, 1, getHeaders(HOST))
        : frame(FRAME.continuation, 0, 1, Buffer.concat([Buffer.from([0x00, 1, 0x78, 100]), Buffer.alloc(100, 0x61)])),
  },
  {
    name: 'empty CONTINUATION frames',
    next: (round) => (round === 0 ? frame(FRAME.headers, 0, 1, getHeaders(HOST)) : frame(FRAME.continuation, 0, 1)),
  },
  { name: 'PING', next: () => frame(FRAME.ping, 0, 0, Buffer.alloc(8)) },
  { name: 'SETTINGS', next: () => frame(FRAME.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 100])) },
  {
    name: 'empty DATA frames',
    next: (round) =>
      round === 0
        ? frame(FRAME.headers, FLAG.endHeaders, 1, Buffer.concat([Buffer.from([0x83]), getHeaders(HOST).subarray(1)]))
        : frame(FRAME.data, 0, 1),
  },
  { name: 'PRIORITY', next: (round) => frame(FRAME.priority, 0, (round % 1000) * 2 + 1, Buffer.alloc(5)) },
  { name: 'WINDOW_UPDATE', next: () => frame(FRAME.windowUpdate, 0, 0, uint32(1)) },
]

test.each(floods)('$name', async ({ name, next }) => {
  traffic.take()
  await sleep(1000)
  const before = traffic.take()
  const memoryBefore = residentMb(worker())
  const pid = worker()
  const attacker = await connectRawH2({ port: fixture.edge.httpsPort, ca: fixture.ca(), servername: HOST })
  const { sent, ms } = await flood(attacker, next)
  const isClosed = attacker.isClosed()
  attacker.socket.destroy()
  const growth = residentMb(worker()) - memoryBefore
  await sleep(500)
  const during = traffic.take()
  figures(
    `${name}: ${sent} frames in ${Math.round(ms)} ms, ${isClosed ? 'closed' : 'not closed'}, memory ${growth.toFixed(0)} MB (before: p99 ${before.p99Ms.toFixed(1)} ms)`,
    during,
  )
  expect(isClosed).toBe(true)
  expect(ms).toBeLessThan(CLOSED_WITHIN_MS)
  expect(growth).toBeLessThan(MEMORY_GROWTH_MB)
  expect(during.failures.slice(0, 5)).toEqual([])
  expect(worker()).toBe(pid)
})

/** As fast as it goes, in batches, until the server ends it or the time is up. */
async function flood(attacker: RawH2, next: (round: number) => Buffer): Promise<{ sent: number; ms: number }> {
  const startedAt = performance.now()
  let sent = 0
  while (performance.now() - startedAt < FLOOD_MS) {
    const batch = Buffer.concat(Array.from({ length: 200 }, () => next(sent++)))
    if (!(await attacker.write(batch))) break
    await sleep(0)
  }
  return { sent, ms: performance.now() - startedAt }
}

test('a window that never opens holds no more than a session may, and is let go', { timeout: 120_000 }, async () => {
  const memoryBefore = residentMb(worker())
  const attacker = await connectRawH2({ port: fixture.edge.httpsPort, ca: fixture.ca(), servername: HOST })
  // INITIAL_WINDOW_SIZE 0: every answer waits for ever.
  await attacker.write(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])))
  for (let stream = 1; stream < 200; stream += 2)
    await attacker.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, getHeaders(HOST, '/large.bin')))
  await sleep(2000)
  const growth = residentMb(worker()) - memoryBefore
  process.stdout.write(`closed window: memory ${growth.toFixed(0)} MB\n`)
  expect(growth).toBeLessThan(250)
  expect(traffic.take().failures.slice(0, 5)).toEqual([])
  attacker.socket.destroy()
})
