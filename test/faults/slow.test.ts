/**
 * Thousands of visitors who dawdle over TLS: good ones notice nothing, slow ones are let go. The slow ones are other
 * processes; this one does nothing but visit and measure. Those who read nothing are 300 on an ordinary loopback, and
 * as many as the others where it has packets as small as a real network's:
 *
 *   unshare -n sh -c 'ip link set lo mtu 1500 up && FAULT_CONNECTIONS=5000 npm run test:faults -- slow.test'
 */
import { execFile, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { processTree, residentMb } from '../support/processes.ts'
import { startEdgeFixture, type EdgeFixture } from '../support/edge-fixture.ts'
import { figures } from '../support/faults.ts'
import { describeCircumstances, watchMachine, type Circumstances } from '../support/machine.ts'
import type { SlowKind, SlowOptions, SlowProgress } from '../support/slow-clients.ts'
import { startTraffic, type Traffic, type TrafficReport } from '../support/traffic.ts'

const CONNECTIONS = Number(process.env['FAULT_CONNECTIONS'] ?? 1000)
/** Ethernet's packets are small, those of loopback 64 kB: there the kernel itself queues more for each who reads nothing. */
const UNREAD_CONNECTIONS = loopbackMtu() <= 1500 ? CONNECTIONS : Math.min(CONNECTIONS, 300)
const PER_SECOND = 500
const GOOD_PER_SECOND = 200
const HOST = 'slow.localhost'
const CLOSED_WITHIN_MS = 20_000
const MAX_MEMORY_MB = 1000
/** Where others use the machine too, everything takes longer. */
const MAX_P99_MS = 50 * Number(process.env['FAULT_SLACK'] ?? 1)

function startGoodVisitors(fixture: EdgeFixture): Traffic {
  return startTraffic({
    port: fixture.edge.httpsPort,
    ca: fixture.ca(),
    sitesDomain: 'localhost',
    targets: [{ slug: 'slow', expect: ({ status, body }) => status === 200 && body.startsWith('<p>ok') }],
    perSecond: GOOD_PER_SECOND,
  })
}

const memoryOf = (fixture: EdgeFixture): number =>
  processTree(fixture.edge.pid).reduce((sum, pid) => sum + residentMb(pid), 0)

interface Observed {
  readonly calm: TrafficReport
  readonly during: TrafficReport
  readonly mostMemoryMb: number
  readonly circumstances: Circumstances
}

/** What good visitors and the edge's memory are like while `attack` lasts. */
async function observe(fixture: EdgeFixture, traffic: Traffic, attack: () => Promise<unknown>): Promise<Observed> {
  traffic.take()
  await sleep(2000)
  const calm = traffic.take()
  const circumstances = watchMachine()
  let mostMemoryMb = 0
  const watching = setInterval(() => (mostMemoryMb = Math.max(mostMemoryMb, memoryOf(fixture))), 500)
  try {
    await attack()
  } finally {
    clearInterval(watching)
  }
  return { calm, during: traffic.take(), mostMemoryMb, circumstances: await circumstances() }
}

function judge(name: string, { calm, during, mostMemoryMb, circumstances }: Observed): void {
  const before = `${describeCircumstances(circumstances)}; before: p99 ${calm.p99Ms.toFixed(1)} ms`
  figures(`${name}; memory ${Math.round(mostMemoryMb)} MB; ${before}; during`, during)
  expect(during.failures.slice(0, 5)).toEqual([])
  expect(during.requests).toBeGreaterThan(GOOD_PER_SECOND)
  expect(mostMemoryMb).toBeLessThan(MAX_MEMORY_MB)
  expect(during.p99Ms).toBeLessThan(MAX_P99_MS)
}

describe('from many addresses', () => {
  let fixture: EdgeFixture
  let traffic: Traffic

  // An edge of its own for each: what the allocator keeps of one attack must not count as memory of the next.
  beforeEach(async () => {
    fixture = await startEdgeFixture()
    await fixture.publish(HOST, {
      'index.html': '<p>ok</p>',
      'middle.bin': 'z'.repeat(900_000),
      'large.bin': 'y'.repeat(8_000_000),
    })
    traffic = startGoodVisitors(fixture)
    await sleep(2000)
  })

  afterEach(async () => {
    await traffic?.stop()
    await fixture?.stop()
  })

  async function dawdle(kind: SlowKind, count: number): Promise<SlowProgress> {
    const options: SlowOptions = {
      kind,
      count,
      perSecond: PER_SECOND,
      port: fixture.edge.httpsPort,
      host: HOST,
      ca: fixture.ca(),
    }
    const program = path.join(import.meta.dirname, '../support/slow-clients.ts')
    const child = fork(program, [JSON.stringify(options)], { execArgv: [] })
    let last: SlowProgress | undefined
    child.on('message', (progress: SlowProgress) => (last = progress))
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).toBe(0)
    return last!
  }

  const kinds: readonly (readonly [SlowKind, number])[] = [
    ['no handshake', CONNECTIONS],
    ['h1 headers', CONNECTIONS],
    ['h2 without a request', CONNECTIONS],
    ['h2 headers', CONNECTIONS],
    ['h2 closed window', CONNECTIONS],
  ]

  test.each(kinds)('%s, %i times', async (kind, count) => {
    let slow!: SlowProgress
    const observed = await observe(fixture, traffic, async () => (slow = await dawdle(kind, count)))
    const { opened, mostOpen, open, failed, longestMs } = slow
    const lasted = `the longest lasted ${(longestMs / 1000).toFixed(1)} s`
    judge(`${opened} × ${kind}: ${mostOpen} at once, ${open} left, ${lasted}`, observed)
    expect(failed).toBe(0)
    // Not one after the other.
    expect(mostOpen).toBeGreaterThan(count / 2)
    expect(open).toBe(0)
    expect(longestMs).toBeLessThan(CLOSED_WITHIN_MS)
  })

  // When they are let go depends on the kernels between: whenever one finds room, such a reader has taken something.
  // Each of them costs a quarter of a megabyte.
  const unread = Math.min(UNREAD_CONNECTIONS, 1000)
  test(`h2 unread answers, ${unread} times`, async () => {
    let slow!: SlowProgress
    const observed = await observe(fixture, traffic, async () => {
      slow = await dawdle('h2 unread answers', unread)
    })
    const { opened, mostOpen, open, failed } = slow
    judge(`${opened} × h2 unread answers: ${mostOpen} at once, ${open} left after a minute`, observed)
    expect(failed).toBe(0)
    expect(mostOpen).toBeGreaterThan(unread / 2)
    expect(open).toBeLessThan(unread / 10)
  })
})

/** A browser loads what a page needs at once, and keeps its connection; what it loaded must not stay behind. */
describe('visitors who stay', () => {
  const VISITORS = 40
  const FILES_AT_ONCE = 20
  const FILE_BYTES = 900_000
  const MAX_MB_EACH = 4
  let fixture: EdgeFixture

  beforeAll(async () => {
    fixture = await startEdgeFixture()
    await fixture.publish(HOST, { 'picture.bin': 'z'.repeat(FILE_BYTES) })
  })
  afterAll(() => fixture?.stop())

  test('hold little of what they have loaded', async () => {
    const sessions: http2.ClientHttp2Session[] = []
    const visit = async (): Promise<void> => {
      const session = await connectWithOpenWindows(fixture)
      sessions.push(session)
      const pictures = Array.from({ length: FILES_AT_ONCE }, () =>
        buffer(session.request({ ':authority': HOST, ':path': '/picture.bin' })),
      )
      for (const picture of await Promise.all(pictures)) expect(picture.length).toBe(FILE_BYTES)
    }
    await visit()
    const beforeMb = memoryOf(fixture)
    for (let visitor = 0; visitor < VISITORS; visitor++) await visit()
    const eachMb = (memoryOf(fixture) - beforeMb) / VISITORS
    console.log(`${VISITORS} who have loaded ${FILES_AT_ONCE} pictures at once and stay: ${eachMb.toFixed(2)} MB each`)
    for (const session of sessions) session.destroy()
    expect(eachMb).toBeLessThan(MAX_MB_EACH)
  })
})

async function connectWithOpenWindows(fixture: EdgeFixture): Promise<http2.ClientHttp2Session> {
  const session = http2.connect(`https://127.0.0.1:${fixture.edge.httpsPort}`, {
    ca: fixture.ca(),
    servername: HOST,
    settings: { initialWindowSize: 2 ** 24 },
  })
  await once(session, 'connect')
  session.setLocalWindowSize(2 ** 26)
  return session
}

/** Slow, but honest: on a thin line the kernel takes nothing for a minute and more, and yet everything arrives. */
describe('a thin line', () => {
  const RATES = ['20k', '50k', '100k', '200k']
  /** Longer than anyone who takes nothing lasts, several times over. */
  const SECONDS = 45
  let fixture: EdgeFixture

  beforeAll(async () => {
    fixture = await startEdgeFixture({ env: { BASE_URL: 'https://dropway.test' } })
    await fixture.publish('localhost', { 'large.bin': 'y'.repeat(60_000_000) })
  })
  afterAll(() => fixture?.stop())

  test.each(['--http1.1', '--http2'])('is served to the end (%s)', async (protocol) => {
    const outcomes = await Promise.all(
      RATES.map(async (rate) => {
        const how = ['-sko', '/dev/null', protocol, '--limit-rate', rate, '--max-time', String(SECONDS)]
        const url = `https://localhost:${fixture.edge.httpsPort}/large.bin`
        const { code } = await promisify(execFile)('curl', [...how, url]).then(
          () => ({ code: 0 }),
          (error: { code: number }) => error,
        )
        return [rate, code]
      }),
    )
    // curl's own word for "the time is over": no one ended it before.
    expect(outcomes).toEqual(RATES.map((rate) => [rate, 28]))
  })
})

/**
 * The tool that everyone uses. It connects from one address only, so the limits per address are lifted, and one after
 * the other, so two run at once. Whether a connection is over is what the kernel says on the edge's side: the tool
 * still reads, byte by byte, what arrived before a reset.
 */
describe('slowhttptest', () => {
  const PROCESSES = 2
  /** Enough to open all, and for the last of them to be let go. */
  const LENGTH_S = 20 + Math.ceil(CONNECTIONS / 100)
  /** Those of good visitors, and of the tool's own probes. */
  const OTHERS = 50
  let fixture: EdgeFixture
  let traffic: Traffic

  beforeAll(async () => {
    const lifted = { EDGE_CONNECTIONS_PER_IP: '100000', EDGE_HANDSHAKES_PER_IP: '100000' }
    // It resolves names as the machine does: the drop is at the one name that every machine knows.
    fixture = await startEdgeFixture({ env: { ...lifted, BASE_URL: 'https://dropway.test' } })
    await fixture.publish(HOST, { 'index.html': '<p>ok</p>' })
    await fixture.publish('localhost', { 'index.html': '<p>ok</p>', 'large.bin': 'y'.repeat(8_000_000) })
    traffic = startGoodVisitors(fixture)
    await sleep(2000)
  })

  afterAll(async () => {
    await traffic?.stop()
    await fixture?.stop()
  })

  async function attack(mode: readonly string[], connections: number, target: string): Promise<void> {
    const share = String(Math.ceil(connections / PROCESSES))
    const how = ['-c', share, '-r', String(PER_SECOND), '-l', String(LENGTH_S), '-v', '0']
    const url = `https://localhost:${fixture.edge.httpsPort}${target}`
    // It spins; other people's machines would not take the edge's processor.
    const start = () => promisify(execFile)('nice', ['-n', '19', 'slowhttptest', ...mode, ...how, '-u', url])
    await Promise.allSettled(Array.from({ length: PROCESSES }, start))
  }

  /** How many there were at once, how long the longest lasted, and how many are left. */
  async function watchConnections(until: Promise<unknown>): Promise<{ most: number; longestMs: number; left: number }> {
    const firstSeen = new Map<string, number>()
    let most = 0
    let longestMs = 0
    const look = (): number => {
      const now = performance.now()
      const open = new Set(establishedAt(fixture.edge.httpsPort))
      for (const peer of firstSeen.keys()) if (!open.has(peer)) firstSeen.delete(peer)
      for (const peer of open) {
        if (!firstSeen.has(peer)) firstSeen.set(peer, now)
        longestMs = Math.max(longestMs, now - firstSeen.get(peer)!)
      }
      most = Math.max(most, open.size)
      return open.size
    }
    const watching = setInterval(look, 500)
    await until
    clearInterval(watching)
    return { left: look(), most, longestMs }
  }

  const modes: readonly { name: string; mode: string[]; target: string; connections: number; most: number }[] = [
    { name: 'slow headers', mode: ['-H', '-i', '3'], target: '/', connections: CONNECTIONS, most: CONNECTIONS / 4 },
    // A drop takes no body: refused before there are many.
    { name: 'slow body', mode: ['-B', '-i', '3'], target: '/', connections: CONNECTIONS, most: 0 },
    {
      name: 'slow read',
      mode: ['-X', '-n', '1', '-z', '32'],
      target: '/large.bin',
      connections: UNREAD_CONNECTIONS,
      most: UNREAD_CONNECTIONS / 2,
    },
  ]

  test.each(modes)('$name', async ({ name, mode, target, connections, most }) => {
    let seen!: Awaited<ReturnType<typeof watchConnections>>
    const observed = await observe(fixture, traffic, async () => {
      seen = await watchConnections(attack(mode, connections, target))
    })
    const lasted = `the longest lasted ${(seen.longestMs / 1000).toFixed(1)} s`
    judge(`slowhttptest, ${connections} × ${name}: ${seen.most} at once, ${seen.left} left, ${lasted}`, observed)
    expect(seen.most).toBeGreaterThanOrEqual(most)
    expect(seen.left).toBeLessThan(OTHERS)
    expect(seen.longestMs).toBeLessThan(CLOSED_WITHIN_MS)
  })
})

function loopbackMtu(): number {
  try {
    return Number(/ mtu (\d+) /.exec(execFileSync('ip', ['-o', 'link', 'show', 'lo'], { encoding: 'utf8' }))?.[1])
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Names of the established connections whose local end is this port. */
function establishedAt(port: number): string[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n'))
  return lines.flatMap((line) => {
    const [, from, to, state, , , , , , inode] = line.trim().split(/\s+/)
    // A port is soon used again, an inode is not.
    return from?.endsWith(local) && state === '01' ? [`${to} ${inode}`] : []
  })
}
