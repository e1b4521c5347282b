/**
 * Half an hour of steady load on the whole stack; memory must not climb and files must not pile up. Run by hand:
 *
 *   node test/faults/soak.ts [--minutes 30] [--rate 400]
 *
 * Choose the rate so that the machine is about 60 % busy; the report says how busy it was.
 */
import { readdirSync } from 'node:fs'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { processTree, residentMb } from '../../bench/processes.ts'
import { publishUntil, seedDrops, watchDrops } from '../support/faults.ts'
import { startStack } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, rate: { type: 'string', default: '400' } },
})
const minutes = Number(values.minutes)
const SAMPLE_MS = 10_000
/** Caches and the garbage collector find their level first. */
const WARM_UP_SHARE = 0.2
const MAX_MB_PER_MINUTE = 1
const MAX_NEW_FILES = 50

interface Sample {
  readonly minute: number
  readonly megabytes: number
  readonly files: number
  readonly idle: number
}

const stack = await startStack({
  workers: 2,
  env: { EDGE_REQUESTS_PER_IP: '1000000', EDGE_HANDSHAKES_PER_IP: '100000', EDGE_CONNECTIONS_PER_IP: '100000' },
})
try {
  const account = await stack.createAccount('business')
  const drops = await seedDrops(stack, account, 20)
  const traffic = startTraffic({ ...watchDrops(stack, drops), perSecond: Number(values.rate) })
  const publishing = publishUntil(stack, account)
  const samples = await collect(minutes * 60_000)
  const published = await publishing.stop()
  const report = await traffic.stop()
  judge(samples, [...report.failures, ...published.failures])
} finally {
  await stack.stop()
}

async function collect(forMs: number): Promise<Sample[]> {
  const samples: Sample[] = []
  const startedAt = performance.now()
  let before = idleShare()
  while (performance.now() - startedAt < forMs) {
    await sleep(SAMPLE_MS)
    const now = idleShare()
    const pids = [stack.pids()['edge']!, stack.pids()['control']!].flatMap(processTree)
    const sample = {
      minute: (performance.now() - startedAt) / 60_000,
      megabytes: sum(pids.map(residentMb)),
      files: sum(pids.map((pid) => readdirSync(`/proc/${pid}/fd`).length)),
      idle: (now.idle - before.idle) / (now.total - before.total),
    }
    before = now
    samples.push(sample)
    process.stdout.write(
      `${sample.minute.toFixed(1)} min  ${sample.megabytes.toFixed(0)} MB  ${sample.files} files  ${((1 - sample.idle) * 100).toFixed(0)} % busy\n`,
    )
  }
  return samples
}

function idleShare(): { idle: number; total: number } {
  const times = os.cpus().map((cpu) => cpu.times)
  return { idle: sum(times.map(({ idle }) => idle)), total: sum(times.flatMap((each) => Object.values(each))) }
}

function judge(samples: readonly Sample[], failures: readonly string[]): void {
  const level = samples.slice(Math.floor(samples.length * WARM_UP_SHARE))
  const slope = slopeOf(level.map(({ minute, megabytes }) => [minute, megabytes]))
  const files = level.at(-1)!.files - level[0]!.files
  process.stdout.write(
    `memory ${slope.toFixed(2)} MB/min, ${files} more files, ${failures.length} failures\n${failures.slice(0, 5).join('\n')}\n`,
  )
  if (slope >= MAX_MB_PER_MINUTE || files > MAX_NEW_FILES || failures.length > 0) process.exitCode = 1
}

/** Least squares. */
function slopeOf(points: readonly (readonly [number, number])[]): number {
  const meanX = sum(points.map(([x]) => x)) / points.length
  const meanY = sum(points.map(([, y]) => y)) / points.length
  return sum(points.map(([x, y]) => (x - meanX) * (y - meanY))) / sum(points.map(([x]) => (x - meanX) ** 2))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
