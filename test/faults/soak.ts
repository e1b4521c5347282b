/**
 * Half an hour of steady load on the whole stack; memory must not climb and files must not pile up. Run by hand:
 *
 *   node test/faults/soak.ts [--minutes 30] [--busy 0.6] [--rate 400]
 *
 * The rate is steered so that the machine is about 60 % busy, during the warm-up only, or fixed with --rate. Each
 * process is judged for itself, from what it holds after the warm-up; ends with 1 when a bar is missed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import os from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { processTree, residentMb } from '../support/processes.ts'
import { median } from '../support/figures.ts'
import { publishUntil, seedDrops, watchDrops } from '../support/faults.ts'
import { startStack } from '../support/stack.ts'
import { startTraffic, type Traffic } from '../support/traffic.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    busy: { type: 'string', default: '0.6' },
    rate: { type: 'string' },
  },
})
const minutes = Number(values.minutes)
const wantedBusy = Number(values.busy)
const SAMPLE_MS = 5000
const TELL_EVERY_MINUTES = 1
/** Caches fill by design, and the garbage collector finds its level: ten minutes of thirty. */
const WARM_UP_SHARE = 1 / 3
/** The level of a process between two collections is the lowest it was at, so a window needs a few of them. */
const WINDOWS = 10
const FIRST_RATE = 200
/** As fast as they can, publishers alone would take more of the machine than is wanted. */
const PUBLISH_PAUSE_MS = 500
const RATES = { lowest: 20, highest: 3000 }
const MAX_MB_PER_MINUTE = 1
const MAX_NEW_FILES = 50

interface ProcessSample {
  readonly name: string
  readonly megabytes: number
  readonly files: number
}

interface Sample {
  readonly minute: number
  readonly busy: number
  /** By process id: a worker that was replaced is another process. */
  readonly processes: ReadonlyMap<number, ProcessSample>
}

const stack = await startStack({
  workers: 2,
  env: { EDGE_REQUESTS_PER_IP: '1000000', EDGE_HANDSHAKES_PER_IP: '100000', EDGE_CONNECTIONS_PER_IP: '100000' },
})
// An early end must not leave the stack behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.stop().finally(() => process.exit(1)))
try {
  const account = await stack.createAccount('business')
  const drops = await seedDrops(stack, account, 20)
  const visitors = createVisitors((perSecond) => startTraffic({ ...watchDrops(stack, drops), perSecond }))
  const publishing = publishUntil(stack, account, { pauseMs: PUBLISH_PAUSE_MS })
  const samples = await collect(minutes, visitors)
  const published = await publishing.stop()
  await visitors.stop()
  const { failures, lost, stale } = published
  const wrong = [...visitors.failures, ...failures, ...lost]
  if (stale > 0) wrong.push(`${stale} visits right after a 201 showed an older page`)
  say(`${visitors.count()} visits, ${published.count} publishes`)
  judge(samples, wrong)
} finally {
  await stack.stop()
}
process.exit()

interface Visitors {
  readonly failures: readonly string[]
  readonly count: () => number
  readonly rate: () => number
  setRate(perSecond: number): Promise<void>
  stop(): Promise<void>
}

/** Visitors whose rate can be changed: others take over from those that were there. */
function createVisitors(start: (perSecond: number) => Traffic): Visitors {
  let rate = Number(values.rate ?? FIRST_RATE)
  let traffic = start(rate)
  let count = 0
  const failures: string[] = []
  const stop = async (): Promise<void> => {
    const report = await traffic.stop()
    count += report.requests
    failures.push(...report.failures)
  }
  return {
    failures,
    count: () => count,
    rate: () => rate,
    async setRate(perSecond) {
      await stop()
      rate = perSecond
      traffic = start(rate)
    },
    stop,
  }
}

async function collect(length: number, visitors: Visitors): Promise<Sample[]> {
  const samples: Sample[] = []
  const startedAt = performance.now()
  let before = cpuTimes()
  let told = 0
  for (;;) {
    await sleep(SAMPLE_MS)
    const now = cpuTimes()
    const minute = (performance.now() - startedAt) / 60_000
    const busy = 1 - (now.idle - before.idle) / (now.total - before.total)
    before = now
    const sample: Sample = { minute, busy, processes: lookAtProcesses() }
    samples.push(sample)
    if (minute >= told + TELL_EVERY_MINUTES || minute >= length) {
      tell(sample, visitors)
      told = Math.floor(minute)
    }
    if (minute >= length) return samples
    // Only while it warms up: a new rate is a new level of memory.
    if (values.rate === undefined && minute < (length * WARM_UP_SHARE) / 2) {
      const rate = steered(visitors.rate(), busy)
      if (rate !== visitors.rate()) await visitors.setRate(rate)
    }
  }
}

/** Half of the way at a time: publishing keeps the machine busy too, whatever the visits do. */
function steered(rate: number, busy: number): number {
  if (Math.abs(busy - wantedBusy) < 0.05) return rate
  const next = rate * (1 + (wantedBusy / busy - 1) / 2)
  return Math.round(Math.min(RATES.highest, Math.max(RATES.lowest, next)))
}

function lookAtProcesses(): Map<number, ProcessSample> {
  const found = new Map<number, ProcessSample>()
  for (const plane of ['edge', 'control'] as const) {
    for (const [index, pid] of processTree(stack.pids()[plane]!).entries()) {
      const name = index === 0 ? plane : `${plane} worker ${index}`
      found.set(pid, { name, megabytes: residentMb(pid), files: readdirSync(`/proc/${pid}/fd`).length })
    }
  }
  return found
}

function tell({ minute, busy, processes }: Sample, visitors: Visitors): void {
  const parts = [...processes.values()].map(
    ({ name, megabytes, files }) => `${name} ${megabytes.toFixed(0)} MB ${files} files`,
  )
  say(`${minute.toFixed(1)} min  ${percent(busy)} busy  ${visitors.rate()}/s  ${parts.join('  ')}`)
}

/** The machine's processors since it was started. */
function cpuTimes(): { idle: number; total: number } {
  const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/)
  // user nice system idle iowait irq softirq steal
  const times = fields.slice(0, 8).map(Number)
  return { idle: times[3]! + times[4]!, total: sum(times) }
}

function judge(samples: readonly Sample[], failures: readonly string[]): void {
  const level = samples.filter(({ minute }) => minute >= minutes * WARM_UP_SHARE)
  const [first, last] = [level[0]!, level.at(-1)!]
  const missed: string[] = []
  if (level.length < WINDOWS) missed.push('too short to tell a slope')
  for (const [pid, { name, files, megabytes }] of last.processes) {
    const start = first.processes.get(pid)
    if (start === undefined) {
      missed.push(`${name} is not the process that it was`)
      continue
    }
    const slope = slopeOf(windows(level.map((each) => [each.minute, each.processes.get(pid)!.megabytes])))
    say(
      `${name}: ${megabytes.toFixed(0)} MB, ${slope.toFixed(2)} MB/min; ${files} files, ${files - start.files} more than after the warm-up`,
    )
    if (slope >= MAX_MB_PER_MINUTE) missed.push(`memory of ${name} climbs by ${slope.toFixed(2)} MB/min`)
    if (files - start.files > MAX_NEW_FILES) missed.push(`${name} has ${files - start.files} more files`)
  }
  const busy = median(level.map((each) => each.busy))
  say(`${percent(busy)} busy, ${os.availableParallelism()} cores; ${failures.length} failures`)
  missed.push(...failures.slice(0, 5))
  for (const each of missed) say(`MISSED: ${each}`)
  if (missed.length > 0) process.exitCode = 1
  else say('every bar is met')
}

type Point = readonly [minute: number, megabytes: number]

/** The lowest of each stretch: what lies above it is garbage that was not collected yet. */
function windows(points: readonly Point[]): Point[] {
  const size = Math.max(1, Math.ceil(points.length / WINDOWS))
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) => {
    const some = points.slice(index * size, (index + 1) * size)
    return [median(some.map(([x]) => x)), Math.min(...some.map(([, y]) => y))]
  })
}

/** Least squares. */
function slopeOf(points: readonly Point[]): number {
  const meanX = sum(points.map(([x]) => x)) / points.length
  const meanY = sum(points.map(([, y]) => y)) / points.length
  return sum(points.map(([x, y]) => (x - meanX) * (y - meanY))) / sum(points.map(([x]) => (x - meanX) ** 2))
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
