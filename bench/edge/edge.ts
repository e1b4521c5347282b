/**
 * The edge with every rule on, beside nginx and Caddy (where they are installed) on the same bytes, and beside a bare
 * Node server: CPU microseconds per request, from the servers' own CPU time, and requests per second. Each server is
 * pinned to one core, the load generator to another. Servers take turns, several rounds; the median counts.
 *
 *   npm run bench:edge [-- --seconds 1] [--rounds 3] [--only edge,nginx] [--rows "h2 4 kB,handshake"]
 *
 * All are warmed up first: V8 goes on compiling for some 60,000 requests, and an edge runs for weeks. A row is printed
 * when it is measured; all of them take less than five minutes.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { parseArgs } from 'node:util'
import { HOST, LOCKED_HOST, MANY_FILES, rows, type Row, type ServerName } from './rows.ts'
import { startBare, startCaddy, startEdge, startNginx, startUpstream, type Server } from './servers.ts'
import { canGenerate, loadH1, loadH2, loadHandshakes, loadResumptions, type Target } from './generators.ts'
import { isInstalled } from '../../test/support/programs.ts'
import { cpuMs } from '../../test/support/processes.ts'
import { keepResult } from '../results.ts'
import { median } from '../../test/support/figures.ts'

const WARM_UP_SECONDS = 4
const WARM_UP_REQUESTS = 60_000
const NAME_CHARS = 20
const CELL_CHARS = 22

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'edge,bare,nginx,caddy' },
    rows: { type: 'string' },
  },
})
const seconds = Number(values.seconds)
const rounds = Number(values.rounds)
const loadBefore = Math.round(os.loadavg()[0]! * 10) / 10

interface Measurement {
  readonly microseconds: number
  readonly perSecond: number
}

type Measured = Readonly<Partial<Record<ServerName, Measurement>>>

interface Bar {
  readonly row: string
  readonly against: string
  readonly ratio: number
  readonly bar: number
}

const workDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-edge-'))
// nginx drops root and must still be able to read.
chmodSync(workDir, 0o755)
const stops: (() => Promise<void>)[] = []
const servers: Server[] = []
const startedAt = performance.now()
let cookie = ''
try {
  await startServers()
  for (const server of servers) {
    say(`${server.name.padEnd(NAME_CHARS)}${await describeTls(server)}`)
    await warmUp(server)
  }
  say(
    `\n${line(
      'CPU per request',
      servers.map(({ name }) => name),
    )}`,
  )
  const results: Record<string, Measured> = {}
  const bars: Bar[] = []
  for (const row of wantedRows()) {
    const measured = await measureAll(row)
    results[row.name] = measured
    const judged = barsOf(row, results)
    bars.push(...judged)
    say(line(row.name, [...servers.map(({ name }) => cell(measured[name])), judged.map(verdict).join(', ')]))
  }
  const elapsed = Math.round((performance.now() - startedAt) / 1000)
  say(`\n${bars.filter(isMissed).length} of ${bars.length} bars missed; ${elapsed} s`)
  keepResult('edge', { loadBefore, seconds, rounds, elapsed, results, bars })
} finally {
  await Promise.all(stops.map((stop) => stop()))
  rmSync(workDir, { recursive: true, force: true })
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function startServers(): Promise<void> {
  const wanted = new Set(values.only.split(','))
  const upstream = await startUpstream()
  stops.push(upstream.stop)
  // Always there: the others serve what it sends.
  const bench = await startEdge(workDir, upstream.port)
  cookie = bench.cookie
  add(bench.edge)
  if (wanted.has('bare')) add(await startBare(workDir))
  if (wanted.has('nginx') && isInstalled('nginx')) add(await startNginx(workDir, upstream.port, cookie))
  if (wanted.has('caddy') && isInstalled('caddy')) add(await startCaddy(workDir, upstream.port, cookie))
}

function add(server: Server): void {
  servers.push(server)
  stops.push(server.stop)
}

function wantedRows(): Row[] {
  const names = values.rows?.split(',')
  return rows.filter(({ name, protocol }) => (names?.includes(name) ?? true) && canGenerate[protocol])
}

async function warmUp({ port }: Server): Promise<void> {
  const target = { port, host: HOST, path: '/4.html' }
  if (canGenerate.h2) await loadH2(target, { requests: WARM_UP_REQUESTS })
  await loadH1(target, WARM_UP_SECONDS)
}

async function measureAll(row: Row): Promise<Measured> {
  const taking = servers.filter(({ name }) => name !== 'bare' || row.hasBare)
  const targets = new Map<Server, Target>()
  for (const server of taking) targets.set(server, await targetOf(server, row))
  const taken = new Map<ServerName, Measurement[]>(taking.map(({ name }) => [name, []]))
  // The first round warms this row up.
  for (let round = 0; round <= rounds; round++) {
    for (const [server, target] of targets) {
      const measurement = await measure(server, row, target)
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

async function targetOf({ name, port }: Server, row: Row): Promise<Target> {
  const target = {
    port,
    host: row.host,
    status: row.status,
    path: name === 'edge' ? row.path : (row.pathOfOthers ?? row.path),
  }
  const headers = {
    ...row.headers,
    ...(row.host === LOCKED_HOST ? { cookie } : {}),
    ...(row.isConditional ? { 'if-none-match': await tagOf(target) } : {}),
  }
  return row.isMany ? { ...target, headers, addresses: addressesOf(target) } : { ...target, headers }
}

function addressesOf({ port, host, path: folder }: Target): string {
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

async function measure(server: Server, row: Row, target: Target): Promise<Measurement> {
  const before = cpuMs(server.pid)
  const began = performance.now()
  const requests = await run(row, target)
  const elapsed = (performance.now() - began) / 1000
  return { microseconds: ((cpuMs(server.pid) - before) * 1000) / requests, perSecond: requests / elapsed }
}

/** Resolves with the number of requests that were answered well. */
function run({ protocol }: Row, target: Target): Promise<number> {
  switch (protocol) {
    case 'h1':
      return loadH1(target, seconds)
    case 'h2':
      return loadH2(target, { seconds })
    case 'handshake':
      return loadHandshakes(target, seconds)
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

function barsOf({ name, bars = {}, ownBar }: Row, results: Readonly<Record<string, Measured>>): Bar[] {
  const own = results[name]?.edge
  const others = Object.entries(bars).map(([against, bar]) => ({
    against,
    bar,
    other: results[name]?.[against as ServerName],
  }))
  if (ownBar) others.push({ against: ownBar.row, bar: ownBar.share, other: results[ownBar.row]?.edge })
  return others.flatMap(({ against, bar, other }) =>
    own && other
      ? [{ row: name, against, ratio: Math.round((100 * own.microseconds) / other.microseconds) / 100, bar }]
      : [],
  )
}

function isMissed({ ratio, bar }: Bar): boolean {
  return ratio > bar
}

function verdict(judged: Bar): string {
  return `${judged.ratio.toFixed(2)} × ${judged.against} (bar ${judged.bar})${isMissed(judged) ? ' MISSED' : ''}`
}
