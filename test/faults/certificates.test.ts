/** Certificates under strain: handshakes with names that no one knows, and five real edges that want the same one. */
import { randomBytes, randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { processTree } from '../support/processes.ts'
import {
  certificateAt,
  isIssued,
  startChallengeGate,
  wantDomain,
  type ChallengeGate,
} from '../support/custom-domains.ts'
import { startEdgeFixture, type EdgeFixture, type EdgeProcess } from '../support/edge-fixture.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'

const HANDSHAKES = 10_000
/** Until the heaps have their size. */
const WARM_UP = 3000
/** As many visitors as the limits of an edge need to let all of them in. */
const VISITORS = 250
const AT_ONCE = 40
/** Per handshake, once garbage is collected: less than the shortest name takes to be remembered. */
const MAX_HELD_BYTES_EACH = 100
/** Native memory shows in the resident size only, beside V8's idle pages. A context for each name would be 400 MB. */
const MAX_RESIDENT_GROWTH_BYTES = 220_000_000
const EDGES = 5

let gate: ChallengeGate
let pebble: Pebble
let fixture: EdgeFixture

/** Edges share Redis, the key and the CA, and nothing else. */
async function startCa(env: Record<string, string> = {}): Promise<void> {
  gate = await startChallengeGate()
  pebble = await startPebble({ challengePort: gate.port, nonceReject: 50 })
  fixture = await startEdgeFixture({
    startEdge: false,
    env: {
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      EDGE_WORKERS: '1',
      SECRET_KEY: randomBytes(32).toString('hex'),
      ...env,
    },
  })
}

afterEach(async () => {
  gate.stop()
  await Promise.all([fixture.stop(), pebble.stop()])
})

test('ten thousand handshakes with unknown names: no order, no look-up of a name, flat memory', async () => {
  await startCa({ SITES_DOMAIN: 'drops.test' })
  const traces = path.join(fixture.dataDir, 'traces')
  const probe = path.join(fixture.dataDir, 'memory')
  const edge = await fixture.startEdge({
    // Node writes down every look-up that it makes.
    NODE_OPTIONS: [
      '--trace-event-categories=node.dns.native',
      `--trace-event-file-pattern=${traces}-\${pid}.json`,
      `--import=${new URL('../support/memory-probe.ts', import.meta.url)}`,
    ].join(' '),
    MEMORY_PROBE: probe,
    // Names that the primary and the worker must look up: they show that it is written down.
    ACME_DIRECTORY_URL: pebble.directoryUrl.replace('127.0.0.1', 'localhost'),
    CONTROL_URLS: 'http://localhost:9',
  })
  gate.forwardTo = edge
  fixture.edge = edge
  expect((await fixture.h1('localhost', '/')).status).toBeGreaterThanOrEqual(500)
  await wantDomain(fixture, pebble, 'known.test')
  await expect.poll(() => isIssued(fixture, 'known.test'), { timeout: 30_000 }).toBe(true)
  await expect.poll(async () => (await certificateAt(edge.httpsPort, 'known.test')).names).toContain('known.test')
  const { serial } = await certificateAt(edge.httpsPort, 'first.unknown.test')

  await meetStrangers(edge, WARM_UP, serial)
  const before = await memoryOf(edge, probe)
  await meetStrangers(edge, HANDSHAKES, serial)
  const after = await memoryOf(edge, probe)
  process.stdout.write(`primary and worker before: ${JSON.stringify(before)}, after: ${JSON.stringify(after)}\n`)
  for (const [index, { heldBytes, residentBytes }] of after.entries()) {
    expect((heldBytes - before[index]!.heldBytes) / HANDSHAKES).toBeLessThan(MAX_HELD_BYTES_EACH)
    expect(residentBytes - before[index]!.residentBytes).toBeLessThan(MAX_RESIDENT_GROWTH_BYTES)
  }

  expect((await certificateAt(edge.httpsPort, 'known.test')).names).toContain('known.test')
  expect(await pebble.orders()).toBe(1)
  expect(await fixture.redis.hlen('{dropway}:domains')).toBe(1)
  expect(await edge.stop()).toBe(0)
  expect(namesLookedUp(traces)).toEqual([['localhost'], ['localhost']])
})

test('five edges that race make one account and one order per name, and all serve it within five seconds', async () => {
  await startCa()
  // One name is wanted before anyone is there: they race as they start, for the account as well.
  await wantDomain(fixture, pebble, 'early.test')
  const edges = await Promise.all(
    Array.from({ length: EDGES }, (_, index) =>
      fixture.startEdge({
        DATA_DIR: path.join(fixture.dataDir, `edge-${index}`),
        BLOB_STORE: `file:${path.join(fixture.dataDir, 'blobs')}`,
      }),
    ),
  )
  gate.forwardTo = edges[0]
  for (const name of ['early.test', 'later.test']) {
    if (name === 'later.test') await wantDomain(fixture, pebble, name)
    await expect.poll(() => isIssued(fixture, name), { timeout: 90_000, interval: 20 }).toBe(true)
    const issuedMs = performance.now()
    const serials = await Promise.all(edges.map((edge) => serialOnceServed(edge, name)))
    process.stdout.write(`${name}: on all ${EDGES} edges after ${Math.round(performance.now() - issuedMs)} ms\n`)
    expect(new Set(serials).size).toBe(1)
  }
  expect((await fixture.edgeIds()).length).toBe(EDGES)
  expect(await pebble.accounts()).toBe(1)
  expect(await pebble.orders()).toBe(2)
})

async function serialOnceServed(edge: EdgeProcess, name: string): Promise<string> {
  await expect
    .poll(async () => (await certificateAt(edge.httpsPort, name)).names, { timeout: 5000, interval: 20 })
    .toContain(name)
  return (await certificateAt(edge.httpsPort, name)).serial
}

/** Each must end with the default certificate: one that is refused would prove nothing. */
async function meetStrangers(edge: EdgeProcess, count: number, serial: string): Promise<void> {
  let next = 0
  const loop = async (): Promise<void> => {
    while (next < count) {
      const turn = next++
      const met = await certificateAt(edge.httpsPort, strangeName(turn), `127.0.1.${1 + (turn % VISITORS)}`)
      expect(met.serial).toBe(serial)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, loop))
}

/** Names as scanners send them: any domain, too deep below ours, without a dot, as long as may be, in capitals. */
function strangeName(turn: number): string {
  const label = randomBytes(1 + randomInt(20)).toString('hex')
  const shapes = [
    `${label}.example.test`,
    `${label}.deeper.drops.test`,
    label,
    `${`${label}.`.repeat(20).slice(0, 240)}x.test`,
    `WWW.${label.toUpperCase()}.COM`,
  ]
  return shapes[turn % shapes.length]!
}

interface Memory {
  readonly heldBytes: number
  readonly residentBytes: number
}

/** Of the primary and its worker, after a garbage collection. */
function memoryOf(edge: EdgeProcess, probe: string): Promise<Memory[]> {
  return Promise.all(
    processTree(edge.pid).map(async (pid) => {
      const file = `${probe}-${pid}.json`
      rmSync(file, { force: true })
      process.kill(pid, 'SIGUSR2')
      await expect.poll(() => existsSync(file)).toBe(true)
      return JSON.parse(readFileSync(file, 'utf8')) as Memory
    }),
  )
}

/** Each process's, without repetitions. */
function namesLookedUp(prefix: string): string[][] {
  const folder = path.dirname(prefix)
  const files = readdirSync(folder).filter((file) => file.startsWith(path.basename(prefix)))
  return files.map((file) => {
    const { traceEvents } = JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as { traceEvents: TraceEvent[] }
    const begun = traceEvents.filter(({ cat, ph }) => cat.includes('node.dns') && ph === 'b')
    return [...new Set(begun.map(({ args }) => args.hostname ?? args.name ?? ''))]
  })
}

interface TraceEvent {
  readonly cat: string
  readonly ph: string
  /** `lookup` says hostname, `resolve4` and its like say name. */
  readonly args: { readonly hostname?: string; readonly name?: string }
}
