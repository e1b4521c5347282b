/**
 * What visitors notice while Redis is away: an edge under a steady load, calm, then with Redis frozen, calm again, then
 * with Redis killed. Failures, and p99 beside that of the calm before; the median of several rounds, because a busy host
 * changes both by itself.
 *
 *   node bench/edge/outage.ts [--seconds 30] [--rate 400] [--rounds 3]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startEdgeFixture, type EdgeFixture } from '../../test/support/edge-fixture.ts'
import { startTraffic, type Traffic } from '../../test/support/traffic.ts'
import { keepResult } from '../results.ts'
import { median } from '../../test/support/figures.ts'

const SLUGS = ['one', 'two', 'three', 'four']
const WARM_UP_MS = 5000
/** The highest p99, as a share of the p99 before. */
const BAR = 1.5

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    rate: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '3' },
  },
})
const seconds = Number(values.seconds)
const rounds = Number(values.rounds)

interface Outage {
  readonly name: (typeof outages)[number][0]
  readonly failures: number
  readonly requests: number
  readonly calmP99Ms: number
  readonly p99Ms: number
}

// Frozen first: a killed one stays away.
const outages = [
  ['frozen', 'SIGSTOP'],
  ['killed', 'SIGKILL'],
] as const

const results: Outage[] = []
for (let round = 0; round < rounds; round++) results.push(...(await runRound()))
report()

async function runRound(): Promise<Outage[]> {
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
    const measured: Outage[] = []
    for (const [name, signal] of outages) measured.push(await measure(fixture, traffic, name, signal))
    await traffic.stop()
    return measured
  } finally {
    await fixture.stop()
  }
}

async function measure(
  fixture: EdgeFixture,
  traffic: Traffic,
  name: Outage['name'],
  signal: 'SIGSTOP' | 'SIGKILL',
): Promise<Outage> {
  traffic.take()
  await sleep(seconds * 1000)
  const calm = traffic.take()
  process.kill(fixture.redisServer.pid, signal)
  await sleep(seconds * 1000)
  const { requests, failures, p99Ms } = traffic.take()
  if (signal === 'SIGSTOP') process.kill(fixture.redisServer.pid, 'SIGCONT')
  return { name, requests, failures: failures.length + calm.failures.length, calmP99Ms: calm.p99Ms, p99Ms }
}

function report(): void {
  for (const { name, requests, failures, calmP99Ms, p99Ms } of results)
    process.stdout.write(
      `Redis ${name} for ${seconds} s: ${requests} requests, ${failures} failed, p99 ${p99Ms.toFixed(1)} ms, ` +
        `${(p99Ms / calmP99Ms).toFixed(2)} × ${calmP99Ms.toFixed(1)} ms before\n`,
    )
  const ratios = outages.map(([name]) => {
    const ofName = results.filter((result) => result.name === name)
    const ratio = median(ofName.map(({ p99Ms, calmP99Ms }) => p99Ms / calmP99Ms))
    const isMet = ratio <= BAR && ofName.every(({ failures }) => failures === 0)
    process.stdout.write(`${name}: p99 ${ratio.toFixed(2)} × before (bar ${BAR})${isMet ? '' : '  MISSED'}\n`)
    return [name, ratio] as const
  })
  keepResult('edge-outage', { seconds, rate: Number(values.rate), ratios: Object.fromEntries(ratios), results })
}
