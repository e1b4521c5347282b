/**
 * What visitors notice while Redis is away: an edge under a steady load, calm, then with Redis killed, calm again, then
 * with Redis frozen. Failures, and p99 beside that of the calm before.
 *
 *   node bench/edge-outage.ts [--seconds 30] [--rate 400]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startEdgeFixture } from '../test/support/edge-fixture.ts'
import { startTraffic, type Traffic } from '../test/support/traffic.ts'
import { keepResult } from './report.ts'

const SLUGS = ['one', 'two', 'three', 'four']
const WARM_UP_MS = 5000
/** The highest p99, as a share of the p99 before. */
const BAR = 1.5

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '30' }, rate: { type: 'string', default: '400' } },
})
const seconds = Number(values.seconds)

interface Outage {
  readonly name: string
  readonly failures: number
  readonly requests: number
  readonly calmP99Ms: number
  readonly p99Ms: number
}

// Frozen first: whoever is killed stays away.
const outages = [
  ['frozen', 'SIGSTOP'],
  ['killed', 'SIGKILL'],
] as const

const fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
try {
  for (const slug of SLUGS) await fixture.publish(`${slug}.localhost`, { 'index.html': `<p>${slug}</p>` })
  const traffic = startTraffic({
    port: fixture.edge.httpsPort,
    ca: fixture.ca(),
    sitesDomain: 'localhost',
    targets: SLUGS.map((slug) => ({ slug, expect: ({ status }: { status: number }) => status === 200 })),
    perSecond: Number(values.rate),
    requestsPerConnection: 1000,
  })
  await sleep(WARM_UP_MS)
  const results: Outage[] = []
  for (const [name, signal] of outages) results.push(await measure(traffic, name, signal))
  await traffic.stop()
  report(results)
} finally {
  await fixture.stop()
}

async function measure(traffic: Traffic, name: string, signal: 'SIGSTOP' | 'SIGKILL'): Promise<Outage> {
  traffic.take()
  await sleep(seconds * 1000)
  const calm = traffic.take()
  process.kill(fixture.redisServer.pid, signal)
  await sleep(seconds * 1000)
  const { requests, failures, p99Ms } = traffic.take()
  if (signal === 'SIGSTOP') process.kill(fixture.redisServer.pid, 'SIGCONT')
  return { name, requests, failures: failures.length + calm.failures.length, calmP99Ms: calm.p99Ms, p99Ms }
}

function report(results: readonly Outage[]): void {
  for (const { name, requests, failures, calmP99Ms, p99Ms } of results) {
    const ratio = p99Ms / calmP99Ms
    const verdict = failures === 0 && ratio <= BAR ? '' : '  MISSED'
    process.stdout.write(
      `Redis ${name} for ${seconds} s: ${requests} requests, ${failures} failed, p99 ${p99Ms.toFixed(1)} ms, ` +
        `${ratio.toFixed(2)} × ${calmP99Ms.toFixed(1)} ms before (bar ${BAR})${verdict}\n`,
    )
  }
  keepResult('edge-outage', { seconds, rate: Number(values.rate), results })
}
