/**
 * The edge with every rule on, beside nginx and Caddy (where they are installed) on the same bytes, and beside a bare
 * Node server: CPU microseconds per request, from the servers' own CPU time, and requests per second. Each server is
 * pinned to one core, the load generator to another. Servers take turns, several rounds; the median counts.
 *
 *   npm run bench:edge [-- --seconds 4] [--rounds 3] [--only edge,nginx] [--cases "h2 4 kB"]
 *
 * All are warmed up first: V8 goes on compiling for some 60,000 requests, and an edge runs for weeks.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { parseArgs } from 'node:util'
import { HOST, startBare, startCaddy, startEdge, startNginx, type Server } from './edge-servers.ts'
import { canGenerate, loadH1, loadH2, loadHandshakes, type Target } from './generators.ts'
import { isInstalled } from '../test/support/programs.ts'
import { cpuMs } from '../test/support/processes.ts'
import { keepResult } from './report.ts'
import { median } from '../test/support/figures.ts'

const WARM_UP_PER_SECOND = 15_000

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'edge,bare,nginx,caddy' },
    cases: { type: 'string' },
  },
})
const seconds = Number(values.seconds)

interface Case {
  readonly name: string
  readonly protocol: keyof typeof canGenerate
  readonly path: string
  /** Highest share of what the other server spends. */
  readonly bars: Readonly<Record<string, number>>
}

const cases: readonly Case[] = [
  { name: 'h1 4 kB', protocol: 'h1', path: '/4.html', bars: { caddy: 1 } },
  { name: 'h2 4 kB', protocol: 'h2', path: '/4.html', bars: { caddy: 0.45 } },
  { name: 'h2 32 kB', protocol: 'h2', path: '/32.html', bars: { caddy: 0.45 } },
  { name: 'h2 200 kB', protocol: 'h2', path: '/200.html', bars: { caddy: 0.45, nginx: 1 } },
  { name: 'handshake', protocol: 'handshake', path: '/', bars: { caddy: 1.5 } },
]

interface Measurement {
  readonly microseconds: number
  readonly perSecond: number
}

type Row = Readonly<Record<string, Measurement>>

const workDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-edge-'))
// nginx drops root and must still be able to read.
chmodSync(workDir, 0o755)
const servers: Server[] = []
try {
  await startServers()
  const ciphers = new Map<string, string>()
  for (const server of servers) ciphers.set(server.name, await describeTls(server))
  for (const server of servers) await warmUp(server)
  const results: Record<string, Row> = {}
  for (const each of wantedCases()) results[each.name] = await measureAll(each)
  report(results, ciphers)
} finally {
  await Promise.all(servers.map((server) => server.stop()))
  rmSync(workDir, { recursive: true, force: true })
}

async function startServers(): Promise<void> {
  const wanted = new Set(values.only.split(','))
  // Always there: the others serve what it sends.
  servers.push(await startEdge(workDir))
  if (wanted.has('bare')) servers.push(await startBare(workDir))
  if (wanted.has('nginx') && isInstalled('nginx')) servers.push(await startNginx(workDir))
  if (wanted.has('caddy') && isInstalled('caddy')) servers.push(await startCaddy(workDir))
}

function wantedCases(): Case[] {
  return cases.filter(({ name, protocol }) => (values.cases ?? name).includes(name) && canGenerate[protocol])
}

function targetOf({ port }: Server, file: string): Target {
  return { port, host: HOST, path: file }
}

async function warmUp(server: Server): Promise<void> {
  const target = targetOf(server, '/4.html')
  if (canGenerate.h2) await loadH2(target, { requests: seconds * WARM_UP_PER_SECOND })
  await loadH1(target, seconds)
}

async function measureAll(each: Case): Promise<Row> {
  const taken = new Map<string, Measurement[]>(servers.map(({ name }) => [name, []]))
  for (const server of servers) await run(server, each, seconds)
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const server of servers) taken.get(server.name)!.push(await measure(server, each))
  }
  const middle = (name: string, key: keyof Measurement): number => median(taken.get(name)!.map((one) => one[key]))
  return Object.fromEntries(
    servers.map(({ name }) => [
      name,
      { microseconds: middle(name, 'microseconds'), perSecond: middle(name, 'perSecond') },
    ]),
  )
}

async function measure(server: Server, each: Case): Promise<Measurement> {
  const before = cpuMs(server.pid)
  const startedAt = performance.now()
  const requests = await run(server, each, seconds)
  const elapsed = (performance.now() - startedAt) / 1000
  return { microseconds: ((cpuMs(server.pid) - before) * 1000) / requests, perSecond: requests / elapsed }
}

/** Resolves with the number of requests that were answered well. */
function run(server: Server, { protocol, path: file }: Case, forSeconds: number): Promise<number> {
  const target = targetOf(server, file)
  switch (protocol) {
    case 'h1':
      return loadH1(target, forSeconds)
    case 'h2':
      return loadH2(target, { seconds: forSeconds })
    case 'handshake':
      return loadHandshakes(target, forSeconds)
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

function report(results: Readonly<Record<string, Row>>, ciphers: ReadonlyMap<string, string>): void {
  const names = servers.map(({ name }) => name)
  const line = (first: string, cells: readonly string[]): string =>
    `${first.padEnd(12)}${cells.map((cell) => cell.padEnd(20)).join('')}`.trimEnd()
  const lines = [
    ...names.map((name) => `${name.padEnd(12)}${ciphers.get(name)}`),
    '',
    line('CPU', names),
    ...Object.entries(results).map(([name, row]) =>
      line(
        name,
        names.map((server) => cell(row[server]!)),
      ),
    ),
    '',
  ]
  const bars = wantedCases().flatMap((each) => barsOf(each, results[each.name]!))
  for (const { name, against, ratio, bar } of bars)
    lines.push(`${name.padEnd(12)}${ratio.toFixed(2)} × ${against} (bar ${bar})${ratio <= bar ? '' : '  MISSED'}`)
  process.stdout.write(`${lines.join('\n')}\n`)
  keepResult('edge', { seconds, rounds: Number(values.rounds), tls: Object.fromEntries(ciphers), results, bars })
}

function cell({ microseconds, perSecond }: Measurement): string {
  return `${microseconds.toFixed(0)} µs  ${perSecond.toFixed(0)}/s`
}

function barsOf(
  { name, bars }: Case,
  row: Row,
): { readonly name: string; readonly against: string; readonly ratio: number; readonly bar: number }[] {
  return Object.entries(bars).flatMap(([against, bar]) => {
    const other = row[against]
    return other ? [{ name, against, ratio: row['edge']!.microseconds / other.microseconds, bar }] : []
  })
}
