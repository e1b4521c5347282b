/**
 * A routing table of a million hosts: how long it takes to load, what it takes on disk and in memory, how fast a host
 * is found, and how soon a publish is visible on two edges.
 */
import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openReplica } from '../../edge/store/replica/replica.ts'
import { createRoutes } from '../../edge/store/routes.ts'
import { keys } from '../../shared/redis/keys.ts'
import { everyEdgeReached } from '../../shared/contracts/live-edges.ts'
import { encodeRouteRecord } from '../../shared/contracts/route-record.ts'
import { encodeStreamMessage } from '../../shared/redis/stream.ts'
import { startEdgeFixture, type EdgeFixture, type EdgeProcess } from '../../test/support/edge-fixture.ts'
import { processTree, residentMb } from '../../test/support/processes.ts'
import { median } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'

const PAGE = 5000
const LOOKUPS = 50_000
const LOOKUP_ROUNDS = 5
const HOT_HOSTS = 1000

/** What must hold with a million hosts. */
const BARS = [
  { of: 'workerMbOverEmpty', row: 'a worker over one without routes', unit: 'MB', bar: 150 },
  { of: 'coldMicroseconds', row: 'a look-up of a host that was not asked for', unit: 'µs', bar: 10 },
  { of: 'warmMicroseconds', row: 'a look-up of a host again', unit: 'µs', bar: 0.5 },
  { of: 'publishP99Ms', row: 'p99 until two edges have acknowledged', unit: 'ms', bar: 100 },
] as const

const manifest = 'ab'.repeat(32)
const hostOf = (index: number): string => `drop-${index.toString(36)}.localhost`

interface Course {
  readonly fixture: EdgeFixture
  /** How many hosts there are. */
  readonly count: number
  readonly progress: Progress
}

export async function run({ routes, publishes }: BenchValues<'routes'>, results: Results): Promise<void> {
  const progress = createProgress()
  progress.show('starting an edge')
  const fixture = await startEdgeFixture({
    startEdge: false,
    epoch: false,
    env: { EDGE_WORKERS: '1', EDGE_REQUESTS_PER_IP: '10000000' },
  })
  try {
    const figures = await measure({ fixture, count: routes, progress }, publishes)
    progress.clear()
    const lines = Object.entries(figures).map(([name, value]) => `${name.padEnd(20)}${Math.round(value * 1000) / 1000}`)
    process.stdout.write(`${lines.join('\n')}\n`)
    for (const { of, ...bar } of BARS) results.judge({ ...bar, figure: figures[of]! })
    results.keep(figures)
  } finally {
    await fixture.stop()
  }
}

async function measure(course: Course, publishes: number): Promise<Record<string, number>> {
  const { fixture, count, progress } = course
  await fixture.redis.set(keys.epoch, 'empty')
  const empty = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/empty` })
  const emptyMb = workerMb(empty)
  await empty.stop()

  await fillRedis(course)
  const startedAt = performance.now()
  const edge = await fixture.startEdge({ LOG_LEVEL: 'info' })
  fixture.edge = edge
  await untilSnapshot(edge, progress)
  const loadSeconds = (performance.now() - startedAt) / 1000
  await visitMany(course)
  const loadedMb = workerMb(edge)
  const second = await fixture.startEdge({ REPLICA_DIR: `${fixture.dataDir}/second`, LOG_LEVEL: 'info' })
  await untilSnapshot(second, progress)
  // Two files of a million routes are still on their way to the disk; look-ups and publishes are not to share it.
  execFileSync('sync')

  return {
    routes: count,
    loadSeconds,
    fileMb: statSync(path.join(fixture.dataDir, 'edge', 'replica', 'data.mdb')).size / 1e6,
    workerMbEmpty: emptyMb,
    workerMbOverEmpty: loadedMb - emptyMb,
    ...(await lookUps(course)),
    ...(await publishLatency(course, publishes)),
  }
}

function record(index: number, revision: number): string {
  return encodeRouteRecord({
    v: 1,
    kind: 'site',
    host: hostOf(index),
    revision,
    site_id: `st_${index}`,
    state: 'live',
    manifest,
    version_number: 3,
    versions: [
      [3, manifest],
      [2, manifest],
      [1, manifest],
    ],
    expires_at: null,
    password: null,
    spa_fallback: false,
    badge: true,
    analytics: null,
  })
}

async function fillRedis({ fixture, count, progress }: Course): Promise<void> {
  for (let start = 0; start < count; start += PAGE) {
    const fields = Array.from({ length: Math.min(PAGE, count - start) }, (_, offset) => [
      hostOf(start + offset),
      record(start + offset, start + offset + 1),
    ])
    await fixture.redis.hset(keys.routes, ...fields.flat())
    progress.show(`routes in Redis: ${Math.min(start + PAGE, count)}`)
  }
  await fixture.redis.set(keys.epoch, 'full')
}

async function untilSnapshot(edge: EdgeProcess, progress: Progress): Promise<void> {
  while (!edge.output().includes('snapshot applied')) {
    await sleep(20)
    if (edge.process.exitCode !== null) throw new Error(edge.output())
    const read = [...edge.output().matchAll(/"hosts":(\d+)/g)].at(-1)?.[1]
    if (read !== undefined) progress.show(`routes at the edge: ${read}`)
  }
}

/** Requests to many hosts, so that the worker has touched the file and filled its cache. */
async function visitMany({ fixture, count }: Course): Promise<void> {
  for (let index = 0; index < 200; index++) await fixture.h2(hostOf(Math.floor((index / 200) * count)), '/')
}

function workerMb(edge: EdgeProcess): number {
  return residentMb(processTree(edge.pid)[1]!)
}

/** The median of several rounds, each with a mapping of its own and hosts that it has not seen. */
async function lookUps(course: Course): Promise<{ coldMicroseconds: number; warmMicroseconds: number }> {
  const rounds: Awaited<ReturnType<typeof lookUpRound>>[] = []
  for (let round = 0; round < LOOKUP_ROUNDS; round++) rounds.push(await lookUpRound(course))
  return {
    coldMicroseconds: median(rounds.map(({ cold }) => cold)),
    warmMicroseconds: median(rounds.map(({ warm }) => warm)),
  }
}

async function lookUpRound({ fixture, count }: Course): Promise<{ cold: number; warm: number }> {
  const replica = openReplica(path.join(fixture.dataDir, 'edge', 'replica'), { readOnly: true })
  const routes = createRoutes(replica)
  const random = (): string => hostOf(Math.floor(Math.random() * count))
  const hosts = Array.from({ length: LOOKUPS }, random)
  const cold = timed(hosts.length, () => hosts.forEach((host) => void routes.get(host)))
  const hot = hosts.slice(-HOT_HOSTS)
  const warm = timed(hot.length * 100, () => {
    for (let round = 0; round < 100; round++) hot.forEach((host) => void routes.get(host))
  })
  await replica.close()
  return { cold, warm }
}

/** CPU time, so that a busy machine does not count. */
function timed(times: number, work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / times
}

/** From the write of the record until both edges have acknowledged it. */
async function publishLatency(
  { fixture, count, progress }: Course,
  publishes: number,
): Promise<{ publishP50Ms: number; publishP99Ms: number }> {
  const samples: number[] = []
  for (let round = 0; round < publishes; round++) {
    progress.show(`publish ${round + 1} of ${publishes}`)
    const value = record(round, count + round + 10)
    const startedAt = performance.now()
    const [, [, position]] = (await fixture.redis
      .multi()
      .hset(keys.routes, hostOf(round), value)
      .xadd(keys.log, '*', ...encodeStreamMessage({ kind: 'route', name: hostOf(round), value }))
      .exec()) as [unknown, [unknown, string]]
    if (!(await everyEdgeReached(fixture.redis, position, 5000))) throw new Error('not acknowledged')
    samples.push(performance.now() - startedAt)
  }
  samples.sort((a, b) => a - b)
  return {
    publishP50Ms: samples[Math.floor(samples.length / 2)]!,
    publishP99Ms: samples[Math.floor(samples.length * 0.99)]!,
  }
}
