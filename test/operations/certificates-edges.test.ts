/** Certificates on several real edges that share one Redis and one real CA; control is played by the test. */
import { once } from 'node:events'
import http2 from 'node:http2'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  allHeard,
  certificateAt,
  isIssued,
  reissue,
  startChallengeGate,
  wantDomain,
  type ChallengeGate,
} from '../support/custom-domains.ts'
import { startEdgeFixture, streamH2, type EdgeFixture, type EdgeProcess } from '../support/edge-fixture.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'

let fixture: EdgeFixture
let pebble: Pebble
let gate: ChallengeGate

beforeAll(async () => {
  gate = await startChallengeGate()
  pebble = await startPebble({ challengePort: gate.port, nonceReject: 50 })
  fixture = await startEdgeFixture({
    env: {
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      EDGE_HANDSHAKES_PER_IP: '100000',
      EDGE_WORKERS: '1',
    },
  })
  gate.forwardTo = fixture.edge
})
afterAll(async () => {
  gate.stop()
  await Promise.all([fixture.stop(), pebble.stop()])
})

const want = (name: string): Promise<void> => wantDomain(fixture, pebble, name)
const namesAt = async (edge: EdgeProcess, servername: string): Promise<string> =>
  (await certificateAt(edge.httpsPort, servername)).names

test('the edge that orders is killed; another one finishes, with at most two orders, and serves it', async () => {
  const orders = await pebble.orders()
  gate.isHeld = true
  await want('killed.test')
  await expect.poll(gate.arrivals).toBeGreaterThan(0)
  const heir = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/heir` })
  fixture.edge.process.kill('SIGKILL')
  gate.forwardTo = heir
  fixture.edge = heir
  gate.isHeld = false
  await expect.poll(() => isIssued(fixture, 'killed.test'), { interval: 200 }).toBe(true)
  expect((await pebble.orders()) - orders).toBeLessThanOrEqual(2)
  expect(await pebble.accounts()).toBe(1)
  await expect.poll(() => namesAt(heir, 'killed.test')).toContain('killed.test')
})

test('two edges race for a name: one order, and both serve it', async () => {
  const second = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/second` })
  const orders = await pebble.orders()
  await want('race.test')
  await expect.poll(() => isIssued(fixture, 'race.test'), { interval: 50 }).toBe(true)
  for (const edge of [fixture.edge, second]) {
    await expect.poll(() => namesAt(edge, 'race.test'), { interval: 50 }).toContain('race.test')
  }
  expect((await pebble.orders()) - orders).toBe(1)
  await second.stop()
})

test('an edge that starts while the CA looks answers the challenge too', async () => {
  const orders = await pebble.orders()
  const arrivals = gate.arrivals()
  // More than one page of the log lies before the challenge.
  await Promise.all(
    Array.from({ length: 1500 }, (_, index) => fixture.log({ kind: 'challenge', name: `old-${index}`, value: '' })),
  )
  gate.isHeld = true
  await want('joined.test')
  await expect.poll(gate.arrivals).toBeGreaterThan(arrivals)
  const joined = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/joined` })
  gate.forwardTo = joined
  gate.isHeld = false
  await expect.poll(() => isIssued(fixture, 'joined.test')).toBe(true)
  expect((await pebble.orders()) - orders).toBe(1)
  gate.forwardTo = fixture.edge
  await joined.stop()
})

test('renewed certificates are swapped at 200 requests a second without one failed handshake', async () => {
  await fixture.publish('swap.test', { 'index.html': '<p>served</p>' })
  await want('swap.test')
  await expect.poll(() => namesAt(fixture.edge, 'swap.test')).toContain('swap.test')
  const ca = await pebble.rootPem()
  const original = await certificateAt(fixture.edge.httpsPort, 'swap.test')
  const visitors = startVisitors(fixture.edge.httpsPort, 'swap.test', ca)
  /** From when to when visitors must have seen which certificate. */
  const spans: { serial: string; fromMs: number; toMs: number }[] = []
  for (let swap = 0; swap < 3; swap++) {
    await reissue(fixture, pebble, 'swap.test')
    await expect.poll(() => isIssued(fixture, 'swap.test'), { interval: 20 }).toBe(true)
    expect(await allHeard(fixture)).toBe(true)
    const fromMs = performance.now()
    const { serial } = await certificateAt(fixture.edge.httpsPort, 'swap.test')
    const met = () => visitors.handshakes.filter(({ startedMs }) => startedMs >= fromMs).length
    await expect.poll(met, { interval: 20 }).toBeGreaterThan(80)
    spans.push({ serial, fromMs, toMs: performance.now() })
  }
  // Who was there before the first swap still is.
  const { handshakes, kept } = visitors
  await expect.poll(kept).toBeGreaterThan(20)
  const failures = await visitors.stop()

  expect(failures).toEqual([])
  const serials = new Set([original.serial, ...spans.map(({ serial }) => serial)])
  expect(serials.size).toBe(4)
  for (const { serial, fromMs, toMs } of spans) {
    const seen = handshakes.filter(({ startedMs, endedMs }) => startedMs >= fromMs && endedMs <= toMs)
    expect(seen.length).toBeGreaterThan(80)
    expect(new Set(seen.map((each) => each.serial))).toEqual(new Set([serial]))
  }
  expect(handshakes.filter(({ serial }) => !serials.has(serial))).toEqual([])
})

interface Handshake {
  readonly serial: string
  readonly startedMs: number
  readonly endedMs: number
}

interface Visitors {
  readonly handshakes: readonly Handshake[]
  /** Answers on the connections that stay open all the time. */
  kept(): number
  /** Resolves what went wrong. */
  stop(): Promise<readonly string[]>
}

/** What an edge may still refuse: more connections than it grants one address. On a slow machine visitors wait. */
const MAX_UNDER_WAY = 100

/** 200 requests a second, as far as the machine can: most on a connection of their own, some on one that stays. */
function startVisitors(port: number, host: string, ca: string): Visitors {
  const failures: string[] = []
  const handshakes: Handshake[] = []
  const underWay = new Set<Promise<void>>()
  let turns = 0
  let kept = 0
  const sessions = Array.from({ length: 4 }, () => connectH2(port, host, ca, failures))
  const startedMs = performance.now()
  const visit = async (turn: number): Promise<void> => {
    try {
      if (turn % 10 === 0) {
        const { status, text } = await streamH2(sessions[(turn / 10) % sessions.length]!, host, '/')
        if (status !== 200 || !text.includes('served')) failures.push(`${status} ${text}`)
        kept += 1
      } else handshakes.push(await visitOnce(port, host, ca))
    } catch (error) {
      failures.push(String(error))
    }
  }
  const timer = setInterval(() => {
    const due = (performance.now() - startedMs) / 5
    while (turns < due && underWay.size < MAX_UNDER_WAY) {
      const visiting = visit(turns++).finally(() => underWay.delete(visiting))
      underWay.add(visiting)
    }
  }, 5)
  return {
    handshakes,
    kept: () => kept,
    async stop() {
      clearInterval(timer)
      await Promise.all(underWay)
      for (const session of sessions) session.destroy()
      return failures
    },
  }
}

function connectH2(port: number, host: string, ca: string, failures: string[]): http2.ClientHttp2Session {
  const session = http2.connect(`https://${host}`, {
    createConnection: () => tls.connect({ port, host: '127.0.0.1', ca, servername: host, ALPNProtocols: ['h2'] }),
  })
  session.on('error', (error) => failures.push(String(error)))
  session.on('goaway', () => failures.push('goaway'))
  return session
}

/** A whole visit on a connection of its own, by a client that checks the chain. */
async function visitOnce(port: number, host: string, ca: string): Promise<Handshake> {
  const startedMs = performance.now()
  const socket = tls.connect({ port, host: '127.0.0.1', ca, servername: host, ALPNProtocols: ['http/1.1'] })
  try {
    await once(socket, 'secureConnect')
    const endedMs = performance.now()
    const serial = socket.getPeerCertificate().serialNumber
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    const answer = Buffer.concat(await socket.toArray()).toString()
    if (!/^HTTP\/1.1 200 [^]*served/.test(answer)) throw new Error(answer.slice(0, 200))
    return { serial, startedMs, endedMs }
  } finally {
    socket.destroy()
  }
}

// What they do to memory is shown by faults/certificates, which can tell it from V8's pages for garbage.
test('handshakes with hundreds of unknown names start no order', async () => {
  const orders = await pebble.orders()
  for (let done = 0; done < 400; done += 40) {
    const names = Array.from({ length: 40 }, (_, index) => `name-${done + index}.unknown.test`)
    for (const given of await Promise.all(names.map((name) => namesAt(fixture.edge, name))))
      expect(given).toContain('localhost')
  }
  // An order for one of them would have come before this one.
  await want('known.test')
  await expect.poll(() => isIssued(fixture, 'known.test')).toBe(true)
  expect((await pebble.orders()) - orders).toBe(1)
})
