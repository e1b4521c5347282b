/**
 * Many connections and many cores: what a connection costs that waits (memory of the server per connection), what a
 * request costs while 10,000 others wait and one in a hundred asks, and what the edge does with a second worker.
 * nginx and Caddy beside it where they are installed; each server is pinned to one core, the visitors to another.
 * Says at the end whether an idle connection to the edge holds its bar, and that none was lost.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPeer } from '../peers.ts'
import { cpuMs, pinToCore, processTree, residentMb } from '../../test/support/processes.ts'
import type { AskCommand, HolderOptions, HolderReport } from './connection-holder.ts'
import { HOST } from './rows.ts'
import { startCaddy, startEdge, startNginx, startUpstream, type Server } from './servers.ts'
import { loadH1, LOAD_CORE } from './generators.ts'
import type { BenchValues } from '../benches.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'

const HOLDER = path.join(import.meta.dirname, 'connection-holder.ts')
const PAGE = '/4.html'
const ACTIVE_SHARE = 0.01
/** Until garbage of the handshakes is collected and buffers are given back. */
const SETTLE_MS = 3000
const WARM_UP_SECONDS = 4
/** What an idle connection takes of the edge: the larger of x64 (47.1, 33.1) and arm64 (50.3, 41.1), and a tenth more. */
const MAX_KB_PER_IDLE = { h1: 56, h2: 46 } as const

type Figures = Record<string, Record<string, number>>

interface Course extends BenchValues<'connections'> {
  readonly workDir: string
  readonly progress: Progress
}

export async function run(values: BenchValues<'connections'>, results: Results): Promise<void> {
  const workDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-connections-'))
  chmodSync(workDir, 0o755)
  const course: Course = { ...values, workDir, progress: createProgress() }
  const stops: (() => Promise<void>)[] = []
  try {
    const figures = await measureServers(course, stops)
    const { idle, kept, seconds } = values
    results.keep({ idle, kept, seconds, figures })
    judge(figures['edge'] ?? {}, results)
  } finally {
    await Promise.all(stops.map((stop) => stop()))
    rmSync(workDir, { recursive: true, force: true })
  }
}

async function measureServers(course: Course, stops: (() => Promise<void>)[]): Promise<Figures> {
  const { workDir, progress } = course
  const figures: Figures = {}
  const note = (name: string, found: Record<string, number>): void => {
    figures[name] = found
    progress.clear()
    say(name, found)
  }
  progress.show('starting the servers')
  const upstream = await startUpstream()
  stops.push(upstream.stop)
  const { edge, cookie } = await startEdge(workDir, upstream.port)
  const servers: Server[] = [edge]
  stops.push(edge.stop)
  if (findPeer('nginx') !== undefined) servers.push(await startNginx(workDir, upstream.port, cookie))
  if (findPeer('caddy') !== undefined) servers.push(await startCaddy(workDir, upstream.port, cookie))
  stops.push(...servers.slice(1).map(({ stop }) => stop))
  for (const server of servers) {
    progress.show(`warming up ${server.name}`)
    await loadH1({ port: server.port, host: HOST, path: PAGE }, WARM_UP_SECONDS)
    note(server.name, {
      ...(await measureIdle(course, server, 'h1')),
      ...(await measureIdle(course, server, 'h2')),
      ...(await measureKept(course, server)),
    })
  }
  note('1 worker', await measureWorkers(course, 1, upstream.port))
  note('2 workers', await measureWorkers(course, 2, upstream.port))
  return figures
}

function say(name: string, found: Readonly<Record<string, number>>): void {
  const cells = Object.entries(found).map(([what, figure]) => `${what} ${figure}`)
  process.stdout.write(`${name.padEnd(12)}${cells.join('; ')}\n`)
}

function judge(edge: Readonly<Record<string, number>>, results: Results): void {
  for (const protocol of ['h1', 'h2'] as const) {
    const figure = edge[idleFigure(protocol)]!
    results.judge({ row: `an idle connection of ${protocol}`, figure, unit: 'kB', bar: MAX_KB_PER_IDLE[protocol] })
  }
  results.judge({ row: LOST, figure: edge[LOST]!, unit: '', bar: 0 })
}

const LOST = 'connections lost'

const idleFigure = (protocol: HolderOptions['protocol']): string => `${protocol} kB per idle connection`

/** The server's memory before and after, by connection. */
async function measureIdle(
  { idle, progress }: Course,
  server: Server,
  protocol: HolderOptions['protocol'],
): Promise<Record<string, number>> {
  progress.show(`${server.name}: ${idle} idle connections of ${protocol}`)
  const before = memoryKb(server.pid)
  const holder = await hold(server, protocol, idle)
  await sleep(SETTLE_MS)
  const perConnection = (memoryKb(server.pid) - before) / idle
  await holder.end()
  await sleep(SETTLE_MS)
  return { [idleFigure(protocol)]: round(perConnection) }
}

/** One in a hundred asks while the others wait; then as many ask, and no one waits. */
async function measureKept({ kept, seconds, progress }: Course, server: Server): Promise<Record<string, number>> {
  progress.show(`${server.name}: ${kept} connections of which one in a hundred asks`)
  const active = Math.round(kept * ACTIVE_SHARE)
  const crowd = await hold(server, 'h1', kept)
  const among = await measureAsking(server, crowd, active, seconds)
  await crowd.end()
  await sleep(SETTLE_MS)
  const few = await hold(server, 'h1', active)
  const alone = await measureAsking(server, few, active, seconds)
  await few.end()
  return {
    'µs per request among all': round(among.microseconds),
    'µs per request alone': round(alone.microseconds),
    'p99 ms among all': round(among.p99Ms),
    'p99 ms alone': round(alone.p99Ms),
    'connections lost': kept - among.open,
  }
}

async function measureAsking(server: Server, holder: Holder, connections: number, seconds: number) {
  await holder.ask({ connections, seconds: 1 })
  const before = cpuMs(server.pid)
  const { requests, p99Ms, open } = await holder.ask({ connections, seconds })
  return { microseconds: ((cpuMs(server.pid) - before) * 1000) / requests, p99Ms, open }
}

/** Free to use all cores, beside the visitors: CPU time tells whether workers are in each other's way. */
async function measureWorkers(
  { workDir, seconds, progress }: Course,
  workers: number,
  upstream: number,
): Promise<Record<string, number>> {
  progress.show(`an edge of ${workers} workers`)
  const folder = path.join(workDir, String(workers))
  const { edge } = await startEdge(folder, upstream, { workers, isPinned: false })
  try {
    const target = { port: edge.port, host: HOST, path: PAGE }
    await loadH1(target, WARM_UP_SECONDS)
    const before = cpuMs(edge.pid)
    const requests = await loadH1(target, seconds)
    const cpuSeconds = (cpuMs(edge.pid) - before) / 1000
    return {
      'requests per CPU second': Math.round(requests / cpuSeconds),
      'requests per second': Math.round(requests / seconds),
    }
  } finally {
    await edge.stop()
  }
}

interface Holder {
  ask(command: AskCommand): Promise<Extract<HolderReport, { kind: 'asked' }>>
  end(): Promise<void>
}

async function hold({ port }: Server, protocol: HolderOptions['protocol'], count: number): Promise<Holder> {
  const options: HolderOptions = { port, host: HOST, path: PAGE, protocol, count }
  const child = fork(HOLDER, [JSON.stringify(options)], { execArgv: [] })
  pinToCore(child.pid!, LOAD_CORE)
  const report = async (): Promise<HolderReport> => ((await once(child, 'message')) as [HolderReport])[0]
  const { open } = await report()
  if (open < count) throw new Error(`${count - open} of ${count} connections did not stay open`)
  return {
    async ask(command) {
      child.send(command)
      return (await report()) as Extract<HolderReport, { kind: 'asked' }>
    },
    end: () => ended(child),
  }
}

async function ended(child: ChildProcess): Promise<void> {
  child.kill()
  await once(child, 'exit')
}

function memoryKb(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + residentMb(each) * 1000, 0)
}

function round(figure: number): number {
  return Math.round(figure * 10) / 10
}
