/** A process of the edge that stands still is noticed, says where it hangs, and is replaced; visitors of the others notice nothing. */
import { execFileSync } from 'node:child_process'
import http2 from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEdgeFixture, streamH2, type EdgeFixture } from '../support/edge-fixture.ts'
import { startStack } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const HOST = 'still.localhost'
/** What is promised. */
const REPLACED_WITHIN_MS = 20_000

let fixture: EdgeFixture

beforeAll(async () => {
  fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '3', TEST_HOOKS: 'hang', METRICS_PORT: '0' } })
  await fixture.publish(HOST, { 'index.html': '<p>still here</p>' })
})
afterAll(() => fixture?.stop())

const workers = (): number[] =>
  execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(fixture.edge.pid)], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(' worker'))
    .map((line) => Number.parseInt(line, 10))

function connect(): http2.ClientHttp2Session {
  const { httpsPort: port } = fixture.edge
  const socket = tls.connect({ port, host: '127.0.0.1', ca: fixture.ca(), servername: HOST, ALPNProtocols: ['h2'] })
  const session = http2.connect(`https://${HOST}`, { createConnection: () => socket })
  session.on('error', () => {})
  return session
}

/** Whose connection it is: the kernel spreads them, so it is found out by stopping the worker for a moment. */
async function answersWithin(session: http2.ClientHttp2Session, ms: number): Promise<boolean> {
  const asking = streamH2(session, HOST, '/').then(
    (answer) => answer.text === '<p>still here</p>',
    () => false,
  )
  return Promise.race([asking, sleep(ms, false)])
}

const HANGS = [
  { how: 'an endless loop', signal: 'SIGUSR2', says: /hung for 10 s in hangForEver \(file:.+\.(?:ts|js):\d+:\d+\)/ },
  { how: 'SIGSTOP', signal: 'SIGSTOP', says: /a worker does not answer/ },
] as const

test.each(HANGS)('a worker that stands still ($how) is replaced', { timeout: 90_000 }, async ({ signal, says }) => {
  const before = workers()
  expect(before).toHaveLength(3)
  const [victim] = before
  const sessions = Array.from({ length: 12 }, connect)
  for (const session of sessions) expect(await answersWithin(session, 10_000)).toBe(true)
  process.kill(victim!, signal)
  await sleep(200)
  const isOther = await Promise.all(sessions.map((session) => answersWithin(session, 3000)))
  const others = sessions.filter((_, index) => isOther[index])
  expect(others.length).toBeGreaterThan(0)

  const hungAt = performance.now()
  let visits = 0
  while ((workers().includes(victim!) || workers().length < 3) && performance.now() - hungAt < REPLACED_WITHIN_MS) {
    const served = await Promise.all(others.map((session) => answersWithin(session, 5000)))
    expect(served).not.toContain(false)
    visits += served.length
    await sleep(100)
  }
  expect(workers()).not.toContain(victim)
  expect(workers()).toHaveLength(3)
  expect(visits).toBeGreaterThan(20)
  expect(fixture.edge.output()).toMatch(says)
  await expect.poll(async () => (await fixture.h2(HOST, '/')).status).toBe(200)
  for (const session of sessions) session.destroy()
})

/** Longer than a worker may take to hear of a change, shorter than it may be silent. */
const SLOW_MS = 11_000

test('a worker that is slow is replaced without a cut: its visitors are answered', { timeout: 90_000 }, async () => {
  const [victim] = workers()
  const sessions = Array.from({ length: 12 }, connect)
  for (const session of sessions) expect(await answersWithin(session, 10_000)).toBe(true)
  process.kill(victim!, 'SIGSTOP')
  const asked = sessions.map((session) => answersWithin(session, 60_000))
  // Its workers must hear of it.
  void fixture.publish('news.localhost', { 'index.html': 'news' }).catch(() => {})
  await sleep(SLOW_MS)
  process.kill(victim!, 'SIGCONT')
  expect(await Promise.all(asked)).not.toContain(false)
  await expect.poll(workers, { timeout: 30_000 }).not.toContain(victim)
  await expect.poll(() => workers().length, { timeout: 30_000 }).toBe(3)
  expect(fixture.edge.output()).toContain('a worker is too slow')
  expect((await fixture.h2('news.localhost', '/')).text).toBe('news')
  for (const session of sessions) session.destroy()
})

test('the delay of every process is a figure', async () => {
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${fixture.edge.metricsPort}/metrics`)).text()
  await expect.poll(metrics).toContain('dropway_edge_workers 3')
  const text = await metrics()
  for (const pid of workers())
    expect(text).toMatch(new RegExp(`event_loop_delay_max_ms{process="worker ${pid}"} [\\d.]+`))
  expect(text).toMatch(/event_loop_delay_p999_ms{process="primary"} [\d.]+/)
})

test.each(HANGS)(
  'the primary that stands still ($how) is replaced, and no visitor notices',
  { timeout: 120_000 },
  async (hang) => {
    const stack = await startStack({ env: { TEST_HOOKS: 'hang' } })
    try {
      const site = await stack.publish(await stack.createAccount('plus'), '<h1>Still here</h1>')
      const before = stack.pids()['edge']!
      const visitors = startTraffic({
        port: stack.httpsPort,
        ca: stack.ca,
        sitesDomain: stack.sitesDomain,
        targets: [{ slug: site.slug, expect: ({ status, body }) => status === 200 && body.includes('Still here') }],
        perSecond: 20,
      })
      stack.kill('edge', hang.signal)
      const hungAt = performance.now()
      const isReplaced = (): boolean => ![undefined, before].includes(stack.pids()['edge'])
      while (!isReplaced() && performance.now() - hungAt < REPLACED_WITHIN_MS) await sleep(100)
      expect(isReplaced()).toBe(true)
      // Its workers go on until the others listen.
      await sleep(5000)
      expect((await visitors.stop()).failures).toEqual([])
      expect((await stack.visit(site.slug)).status).toBe(200)
    } finally {
      await stack.stop()
    }
  },
)
