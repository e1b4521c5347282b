/** Certificates on several real edges that share one Redis and one real CA; control is played by the test. */
import http from 'node:http'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEdgeFixture, type EdgeFixture, type EdgeProcess } from '../support/edge-fixture.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'

const DOMAINS = '{dropway}:domains'
const CERTIFICATES = '{dropway}:certificates'

let fixture: EdgeFixture
let pebble: Pebble
let gate: http.Server
/** Where the public port 80 leads, and whether it answers. */
let forwardTo: EdgeProcess
let isHeld = false
let arrivals = 0

beforeAll(async () => {
  gate = http.createServer(async (request, response) => {
    arrivals += 1
    while (isHeld) await sleep(50)
    const answer = await fetch(`http://127.0.0.1:${forwardTo.httpPort}${request.url}`).catch(() => undefined)
    response.writeHead(answer?.status ?? 502).end(await answer?.text())
  })
  gate.listen(0, '127.0.0.1')
  await once(gate, 'listening')
  pebble = await startPebble({ challengePort: (gate.address() as AddressInfo).port, nonceReject: 50 })
  fixture = await startEdgeFixture({
    env: {
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      EDGE_HANDSHAKES_PER_IP: '100000',
      EDGE_WORKERS: '1',
    },
  })
  forwardTo = fixture.edge
})
afterAll(async () => {
  isHeld = false
  gate.closeAllConnections()
  gate.close()
  await Promise.all([fixture.stop(), pebble.stop()])
})

async function want(name: string): Promise<void> {
  const value = JSON.stringify({ wanted: true })
  await pebble.dns.a(name, '127.0.0.1')
  await fixture.redis.hset(DOMAINS, name, value)
  await fixture.log({ kind: 'domain', name, value })
}

/** Names of the certificate that a handshake gets. */
async function namesAt({ httpsPort }: EdgeProcess, servername: string): Promise<string> {
  const socket = tls.connect({ port: httpsPort, host: '127.0.0.1', servername, rejectUnauthorized: false })
  await Promise.race([
    once(socket, 'secureConnect'),
    once(socket, 'close').then(() => Promise.reject(new Error('closed'))),
  ])
  const { subjectaltname } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname ?? ''
}

test('the edge that orders is killed; another one finishes, with at most two orders, and serves it', async () => {
  const orders = await pebble.orders()
  isHeld = true
  await want('killed.test')
  await expect.poll(() => arrivals, { timeout: 10_000 }).toBeGreaterThan(0)
  const heir = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/heir` })
  fixture.edge.process.kill('SIGKILL')
  forwardTo = heir
  fixture.edge = heir
  isHeld = false
  await expect
    .poll(() => fixture.redis.hexists(CERTIFICATES, 'killed.test'), { timeout: 60_000, interval: 200 })
    .toBe(1)
  expect((await pebble.orders()) - orders).toBeLessThanOrEqual(2)
  expect(await pebble.accounts()).toBe(1)
  await expect.poll(() => namesAt(heir, 'killed.test'), { timeout: 5000 }).toContain('killed.test')
}, 90_000)

test('two edges race for a name: one order, both serve it within five seconds', async () => {
  const second = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/second` })
  const orders = await pebble.orders()
  await want('race.test')
  await expect.poll(() => fixture.redis.hexists(CERTIFICATES, 'race.test'), { timeout: 30_000, interval: 50 }).toBe(1)
  for (const edge of [fixture.edge, second]) {
    await expect.poll(() => namesAt(edge, 'race.test'), { timeout: 5000, interval: 50 }).toContain('race.test')
  }
  expect((await pebble.orders()) - orders).toBe(1)
  await second.stop()
}, 60_000)

test('a certificate is swapped under load without one failed handshake', async () => {
  await want('swap.test')
  await expect
    .poll(() => namesAt(fixture.edge, 'swap.test').catch(() => ''), { timeout: 20_000 })
    .toContain('swap.test')
  // The same bundle, sealed for this name, announced again and again: each time the worker builds its context anew.
  const sealed = (await fixture.redis.hget(CERTIFICATES, 'swap.test'))!
  const failures: unknown[] = []
  let handshakes = 0
  let isOver = false
  const visitors = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const names = await namesAt(fixture.edge, 'swap.test').catch((error: unknown) => (failures.push(error), ''))
        if (!names.includes('swap.test')) failures.push(names)
        handshakes += 1
        await sleep(5)
      }
    }),
  )
  for (let swap = 0; swap < 20; swap++) {
    await fixture.reached(await fixture.log({ kind: 'certificate', name: 'swap.test', value: sealed }))
    await sleep(50)
  }
  isOver = true
  await visitors
  expect(failures).toEqual([])
  expect(handshakes).toBeGreaterThan(50)
}, 60_000)

test('handshakes with a thousand unknown names start no order and leave memory flat', async () => {
  const orders = await pebble.orders()
  const burst = async (count: number, label: string): Promise<void> => {
    for (let done = 0; done < count; done += 40) {
      await Promise.all(
        Array.from({ length: 40 }, (_, index) => namesAt(fixture.edge, `${label}-${done + index}.unknown.test`)),
      )
    }
  }
  expect(await namesAt(fixture.edge, 'first.unknown.test')).toContain('localhost')
  await burst(200, 'warm')
  const before = await residentBytes(fixture.edge)
  await burst(800, 'cold')
  expect((await residentBytes(fixture.edge)) - before).toBeLessThan(30_000_000)
  expect(await pebble.orders()).toBe(orders)
}, 90_000)

/** Memory of the edge's workers, as the kernel counts it. */
async function residentBytes({ pid }: EdgeProcess): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
  const sizes = await Promise.all(
    children.map(async (child) =>
      Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${child}/status`, 'utf8'))?.[1]),
    ),
  )
  return sizes.reduce((sum, kilobytes) => sum + kilobytes * 1024, 0)
}
