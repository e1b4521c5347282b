/**
 * The edge with every rule on, beside nginx and Caddy (where they are installed) on the same bytes, and beside a bare
 * Node server: CPU microseconds per request, from the servers' own CPU time, and requests per second. Each server is
 * pinned to one core, the load generator to another. Servers take turns, several rounds; the median counts.
 *
 * All are warmed up first: V8 goes on compiling for some 60,000 requests and some 5,000 connections, and an edge runs for
 * weeks. What a server spends while nobody asks is measured, said, and taken off: it is no cost of a request, and beside
 * a generator that makes a hundred connections a second it would weigh ten times what it weighs beside a fast one. A row is
 * printed when it is measured; all of them take some six minutes.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { HOST, isConnecting, LOCKED_HOST, MANY_FILES, rows, type Row, type ServerName } from './rows.ts'
import { startBare, startCaddy, startEdge, startNginx, startUpstream, type Server } from './servers.ts'
import { canGenerate, loadH1, loadH2, loadHandshakes, loadHybrid, loadResumptions, type Target } from './generators.ts'
import { findPeer, versionOf } from '../peers.ts'
import { cpuMs } from '../../test/support/processes.ts'
import { median } from '../../test/support/figures.ts'
import type { BenchValues } from '../benches.ts'
import { isMet, type Judged } from '../judged.ts'
import { createProgress, type Progress } from '../progress.ts'
import type { Results } from '../results.ts'

const WARM_UP_SECONDS = 4
const WARM_UP_REQUESTS = 60_000
/** A second has a few hundred: for the first thousands a Node server pays for code that V8 has not compiled yet. */
const WARM_UP_CONNECTIONS = 5000
const COMPILING: ReadonlySet<ServerName> = new Set(['edge', 'bare'])
const IDLE_WINDOWS = 5
const IDLE_WINDOW_MS = 2000
const NAME_CHARS = 20
const CELL_CHARS = 22

interface Measurement {
  readonly microseconds: number
  readonly perSecond: number
}

type Measured = Readonly<Partial<Record<ServerName, Measurement>>>

/** One run: what it was told, and the servers that it measures. */
interface Course {
  readonly values: BenchValues<'edge'>
  readonly workDir: string
  readonly servers: Server[]
  readonly stops: (() => Promise<void>)[]
  readonly progress: Progress
  /** What a visitor of the locked drop carries. */
  cookie: string
  foreignTicket: () => Promise<string>
  /** Milliseconds of CPU that each server spends in a second while nobody asks. */
  readonly idle: Map<ServerName, number>
  /** Connections that each server has had. */
  readonly connected: Map<ServerName, number>
}

export async function run(values: BenchValues<'edge'>, results: Results): Promise<void> {
  const workDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-edge-'))
  // nginx drops root and must still be able to read.
  chmodSync(workDir, 0o755)
  const course: Course = {
    ...{ values, workDir, servers: [], stops: [], progress: createProgress() },
    ...{ cookie: '', foreignTicket: () => Promise.resolve(''), connected: new Map(), idle: new Map() },
  }
  try {
    await startServers(course)
    await measureRows(course, results)
  } finally {
    await Promise.all(course.stops.map((stop) => stop()))
    rmSync(workDir, { recursive: true, force: true })
  }
}

async function measureRows(course: Course, results: Results): Promise<void> {
  const { values, servers, progress } = course
  const { seconds, rounds } = values
  const loadBefore = Math.round((os.loadavg()[0] ?? 0) * 10) / 10
  const startedAt = performance.now()
  const say = (text: string): void => {
    progress.clear()
    process.stdout.write(`${text}\n`)
  }
  for (const server of servers) {
    say(`${server.name.padEnd(NAME_CHARS)}${await describeTls(server)}`)
    progress.show(`warming up ${server.name}`)
    await warmUp(server)
  }
  progress.show('looking at what the servers do while nobody asks')
  await measureIdle(course)
  const names = servers.map(({ name }) => name)
  say(`\n${line('CPU per request', names)}`)
  say(
    line(
      'idle, ms a second',
      names.map((name) => `${course.idle.get(name)}`),
    ),
  )
  const measuredRows: Record<string, Measured> = {}
  const bars: Judged[] = []
  const wanted = rows.filter(({ name, protocol }) => values.rows.includes(name) && canGenerate[protocol])
  for (const [index, row] of wanted.entries()) {
    const measured = await measureAll(course, row, `row ${index + 1} of ${wanted.length}, ${row.name}`)
    measuredRows[row.name] = measured
    const judged = barsOf(row, measuredRows)
    bars.push(...judged)
    say(
      line(
        row.name,
        servers.map(({ name }) => cell(measured[name])),
      ),
    )
    judged.forEach((each) => results.judge(each))
  }
  const elapsed = Math.round((performance.now() - startedAt) / 1000)
  say(`\n${bars.filter((each) => !isMet(each)).length} of ${bars.length} bars missed; ${elapsed} s`)
  const idle = Object.fromEntries(course.idle)
  const peers = { nginx: versionOf('nginx'), caddy: versionOf('caddy') }
  results.keep({ peers, loadBefore, seconds, rounds, elapsed, idle, results: measuredRows, bars })
}

async function startServers(course: Course): Promise<void> {
  const { values, workDir, servers, stops, progress } = course
  const add = (server: Server): void => {
    servers.push(server)
    stops.push(server.stop)
  }
  progress.show('starting the servers')
  const upstream = await startUpstream()
  stops.push(upstream.stop)
  // Always there: the others serve what it sends.
  const { edge, cookie, foreignTicket } = await startEdge(workDir, upstream.port)
  course.cookie = cookie
  course.foreignTicket = foreignTicket
  add(edge)
  if (values.only.includes('bare')) add(await startBare(workDir))
  for (const [name, start] of [
    ['nginx', startNginx],
    ['caddy', startCaddy],
  ] as const)
    if (values.only.includes(name) && findPeer(name) !== undefined) add(await start(workDir, upstream.port, cookie))
}

async function warmUp({ port }: Server): Promise<void> {
  const target = { port, host: HOST, path: '/4.html' }
  if (canGenerate.h2) await loadH2(target, { requests: WARM_UP_REQUESTS })
  await loadH1(target, WARM_UP_SECONDS)
}

async function measureAll(course: Course, row: Row, place: string): Promise<Measured> {
  const { servers, progress } = course
  const { rounds } = course.values
  const taking = servers.filter(({ name }) => (name !== 'bare' || row.hasBare) && (row.servers?.includes(name) ?? true))
  const targets = new Map<Server, Target>()
  for (const server of taking) targets.set(server, await targetOf(course, server, row))
  const taken = new Map<ServerName, Measurement[]>(taking.map(({ name }) => [name, []]))
  for (const [server, target] of targets) await warmUpConnections(course, server, row, target, place)
  // The first round warms this row up.
  for (let round = 0; round <= rounds; round++) {
    for (const [server, target] of targets) {
      progress.show(`${place}: ${server.name}, round ${round} of ${rounds}`)
      const measurement = await measure(course, server, row, target)
      if (round > 0) taken.get(server.name)!.push(measurement)
    }
  }
  const middle = (name: ServerName, key: keyof Measurement): number =>
    Math.round(median(taken.get(name)!.map((one) => one[key])) * 10) / 10
  return Object.fromEntries(
    taking.map(({ name }) => [
      name,
      { microseconds: middle(name, 'microseconds'), perSecond: middle(name, 'perSecond') },
    ]),
  )
}

async function warmUpConnections(
  { connected, progress }: Course,
  { name }: Server,
  row: Row,
  target: Target,
  place: string,
): Promise<void> {
  if (!isConnecting(row) || !COMPILING.has(name)) return
  let count = connected.get(name) ?? 0
  while (count < WARM_UP_CONNECTIONS) {
    progress.show(`${place}: ${name}, connection ${count} of ${WARM_UP_CONNECTIONS} to warm up`)
    count += await load(row, target, WARM_UP_SECONDS)
  }
  connected.set(name, count)
}

async function targetOf({ workDir, cookie, foreignTicket }: Course, { name, port }: Server, row: Row): Promise<Target> {
  const target = {
    port,
    host: row.host,
    status: row.status,
    path: name === 'edge' ? row.path : (row.pathOfOthers ?? row.path),
    ...(row.hasForeignTicket ? { ticket: await foreignTicket() } : {}),
  }
  const headers = {
    ...row.headers,
    ...(row.host === LOCKED_HOST ? { cookie } : {}),
    ...(row.isConditional ? { 'if-none-match': await tagOf(target) } : {}),
  }
  return row.isMany ? { ...target, headers, addresses: addressesOf(workDir, target) } : { ...target, headers }
}

function addressesOf(workDir: string, { port, host, path: folder }: Target): string {
  const file = path.join(workDir, `addresses-${port}`)
  const all = Array.from({ length: MANY_FILES }, (_, n) => `https://${host}:${port}${folder}/${n}.txt\n`)
  writeFileSync(file, all.join(''))
  return file
}

async function tagOf({ port, host, path: file }: Target): Promise<string> {
  const socket = tls.connect({ port, servername: host, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
  socket.end(`GET ${file} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
  const [, tag] = /^etag: (.*)\r$/im.exec(String(Buffer.concat(await socket.toArray()))) ?? []
  if (tag === undefined) throw new Error(`no ETag from port ${port}`)
  return tag
}

async function measure({ values, idle }: Course, server: Server, row: Row, target: Target): Promise<Measurement> {
  const before = cpuMs(server.pid)
  const began = performance.now()
  const requests = await load(row, target, values.seconds)
  const elapsed = (performance.now() - began) / 1000
  const spent = cpuMs(server.pid) - before - (idle.get(server.name) ?? 0) * elapsed
  return { microseconds: (spent * 1000) / requests, perSecond: requests / elapsed }
}

/** The median of a few windows: what a server does once, such as giving memory back, is not what it does all the time. */
async function measureIdle({ servers, idle }: Course): Promise<void> {
  const windows = new Map<ServerName, number[]>(servers.map(({ name }) => [name, []]))
  for (let window = 0; window < IDLE_WINDOWS; window++) {
    const before = servers.map(({ pid }) => cpuMs(pid))
    const began = performance.now()
    await sleep(IDLE_WINDOW_MS)
    const seconds = (performance.now() - began) / 1000
    for (const [index, { name, pid }] of servers.entries())
      windows.get(name)!.push((cpuMs(pid) - before[index]!) / seconds)
  }
  for (const [name, all] of windows) idle.set(name, Math.round(median(all)))
}

/** Resolves with the number of requests that were answered well. */
function load({ protocol }: Row, target: Target, seconds: number): Promise<number> {
  switch (protocol) {
    case 'h1':
      return loadH1(target, seconds)
    case 'h2':
      return loadH2(target, { seconds })
    case 'handshake':
      return loadHandshakes(target, seconds)
    case 'hybrid':
      return loadHybrid(target, seconds)
    case 'resumption':
      return loadResumptions(target, seconds)
    default:
      return protocol satisfies never
  }
}

/** Fair only when all of them encrypt alike. */
async function describeTls({ port }: Server): Promise<string> {
  const socket = tls.connect({ port, servername: HOST, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  await once(socket, 'secureConnect')
  const curve = (socket.getPeerCertificate() as { asn1Curve?: string }).asn1Curve
  const text = `${socket.getProtocol()}, ${socket.getCipher().standardName}, ${curve ?? 'no curve'}`
  socket.destroy()
  return text
}

function line(first: string, cells: readonly string[]): string {
  return `${first.padEnd(NAME_CHARS)}${cells.map((text) => text.padEnd(CELL_CHARS)).join('')}`.trimEnd()
}

function cell(measured: Measurement | undefined): string {
  return measured ? `${measured.microseconds.toFixed(1)} µs ${measured.perSecond.toFixed(0)}/s` : '–'
}

function barsOf({ name, bars = {}, ownBar }: Row, results: Readonly<Record<string, Measured>>): Judged[] {
  const own = results[name]?.edge
  const others = Object.entries(bars).map(([against, bar]) => ({
    against,
    bar,
    other: results[name]?.[against as ServerName],
  }))
  if (ownBar) others.push({ against: ownBar.row, bar: ownBar.share, other: results[ownBar.row]?.edge })
  return others.flatMap(({ against, bar, other }) =>
    own && other
      ? [
          {
            row: `${name} beside ${against}`,
            figure: inHundredths(own.microseconds / other.microseconds),
            unit: '×',
            bar,
          },
        ]
      : [],
  )
}

function inHundredths(value: number): number {
  return Math.round(value * 100) / 100
}
