/**
 * What visitors notice while Redis is away: an edge under a steady load, calm, then with Redis frozen, calm again, then
 * with Redis killed. Failures, and p99 beside that of the calm before; the median of several rounds, because a busy host
 * changes both by itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startEdgeFixture, type EdgeFixture } from '../../test/support/edge-fixture.ts'
import { startTraffic, type Traffic } from '../../test/support/traffic.ts'
import { median } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'

const SLUGS = ['one', 'two', 'three', 'four']
const WARM_UP_MS = 5000
/** The highest p99, as a share of the p99 before. */
const BAR = 1.5

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

type Told = BenchValues<'edge-outage'>

export async function run(told: Told, results: Results): Promise<void> {
  const progress = createProgress()
  const measured: Outage[] = []
  for (let round = 1; round <= told.rounds; round++)
    measured.push(...(await runRound(told, (text) => progress.show(`round ${round} of ${told.rounds}: ${text}`))))
  progress.clear()
  const { seconds, rate } = told
  results.keep({ seconds, rate, ratios: report(measured, seconds, results), results: measured })
}

type Show = Progress['show']

async function runRound({ seconds, rate }: Told, show: Show): Promise<Outage[]> {
  show('starting an edge')
  const fixture = await startEdgeFixture({ env: { EDGE_WORKERS: '1' } })
  try {
    for (const slug of SLUGS) await fixture.publish(`${slug}.localhost`, { 'index.html': `<p>${slug}</p>` })
    const traffic = startTraffic({
      port: fixture.edge.httpsPort,
      ca: fixture.ca(),
      sitesDomain: 'localhost',
      targets: SLUGS.map((slug) => ({ slug, expect: ({ status }: { status: number }) => status === 200 })),
      perSecond: rate,
      requestsPerConnection: 1000,
    })
    await sleep(WARM_UP_MS)
    const measured: Outage[] = []
    for (const [name, signal] of outages) {
      show(`calm, then Redis ${name}, ${seconds} s each`)
      measured.push(await measure(fixture, traffic, name, signal, seconds))
    }
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
  seconds: number,
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

/** Says what was found, and returns the medians by the kind of outage. */
function report(measured: readonly Outage[], seconds: number, results: Results): Record<string, number> {
  for (const { name, requests, failures, calmP99Ms, p99Ms } of measured)
    process.stdout.write(
      `Redis ${name} for ${seconds} s: ${requests} requests, ${failures} failed, p99 ${p99Ms.toFixed(1)} ms, ` +
        `${(p99Ms / calmP99Ms).toFixed(2)} × ${calmP99Ms.toFixed(1)} ms before\n`,
    )
  const ratios = outages.map(([name]) => {
    const ofName = measured.filter((each) => each.name === name)
    const ratio = median(ofName.map(({ p99Ms, calmP99Ms }) => p99Ms / calmP99Ms))
    const failures = ofName.reduce((sum, each) => sum + each.failures, 0)
    results.judge({ row: `Redis ${name}: p99 beside the calm before`, figure: ratio, unit: '×', bar: BAR })
    results.judge({ row: `Redis ${name}: visits that failed`, figure: failures, unit: '', bar: 0 })
    return [name, ratio] as const
  })
  return Object.fromEntries(ratios)
}
