/**
 * The edge with every rule on, beside nginx and Caddy (where they are installed) on the same bytes: CPU microseconds
 * per request, from the servers' own CPU time, and requests per second. Each server is pinned to one core, the load
 * generator to another. CPU time stays stable on a noisy machine; requests per second do not.
 *
 *   npm run bench:edge [-- --seconds 5] [--only edge,nginx] [--cases "h2 4 kB"]
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEdgeFixture } from '../test/support/edge-fixture.ts'
import { cpuMs, isInstalled, pinToCore } from './processes.ts'

const SERVER_CORE = 0
const LOAD_CORE = Math.min(1, os.availableParallelism() - 1)
const HOST = 'bench.localhost'
const HANDSHAKE_CLIENTS = 4

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '5' }, only: { type: 'string' }, cases: { type: 'string' } },
})
const seconds = Number(values.seconds)

interface Server {
  readonly name: string
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

interface Case {
  readonly name: string
  /** Runs load for some seconds; resolves with the number of requests answered well. */
  run(port: number, forSeconds: number): Promise<number>
}

interface Measurement {
  readonly microseconds: number
  readonly perSecond: number
}

const sizes = { '4 kB': 4_000, '32 kB': 32_000, '200 kB': 200_000 } as const

const cases: Case[] = [
  { name: 'h1 4 kB', run: (port, time) => wrk(port, '/4.html', time) },
  { name: 'h2 4 kB', run: (port, time) => h2load(port, '/4.html', time) },
  { name: 'h2 32 kB', run: (port, time) => h2load(port, '/32.html', time) },
  { name: 'h2 200 kB', run: (port, time) => h2load(port, '/200.html', time) },
  { name: 'handshake', run: handshakes },
]

const workDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-bench-edge-'))
// nginx drops root and must still be able to read.
chmodSync(workDir, 0o755)
const results: Record<string, Record<string, Measurement>> = {}
try {
  const servers = await startServers()
  try {
    for (const one of cases.filter(({ name }) => (values.cases ?? name).includes(name))) {
      for (const server of servers) {
        results[one.name] ??= {}
        results[one.name]![server.name] = await measure(server, one)
      }
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
  report()
} finally {
  rmSync(workDir, { recursive: true, force: true })
}

async function measure(server: Server, { run }: Case): Promise<Measurement> {
  await run(server.port, Math.max(1, seconds / 3))
  const before = cpuMs(server.pid)
  const startedAt = performance.now()
  const requests = await run(server.port, seconds)
  const elapsed = (performance.now() - startedAt) / 1000
  const spent = cpuMs(server.pid) - before
  return { microseconds: (spent * 1000) / requests, perSecond: requests / elapsed }
}

async function startServers(): Promise<Server[]> {
  const wanted = (values.only ?? 'edge,nginx,caddy').split(',')
  const servers: Server[] = []
  const edge = await startEdge()
  if (wanted.includes('edge')) servers.push(edge)
  if (wanted.includes('nginx') && isInstalled('nginx')) servers.push(await startNginx())
  if (wanted.includes('caddy') && isInstalled('caddy')) servers.push(await startCaddy())
  return servers
}

/** A free drop: its pages carry the badge, so that the hot path includes what injection costs. */
async function startEdge(): Promise<Server> {
  const fixture = await startEdgeFixture({
    env: {
      EDGE_WORKERS: '1',
      EDGE_REQUESTS_PER_IP: '10000000',
      EDGE_HANDSHAKES_PER_IP: '1000000',
      EDGE_CONNECTIONS_PER_IP: '100000',
    },
  })
  const files = Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [`${Number.parseInt(name, 10)}.html`, page(size)]),
  )
  await fixture.publish(HOST, files, { badge: true })
  mkdirSync(path.join(workDir, 'www'))
  // The others serve the very bytes that the edge sends, badge included.
  for (const name of Object.keys(files)) {
    writeFileSync(path.join(workDir, 'www', name), (await fixture.h1(HOST, `/${name}`)).body)
  }
  const pem = readFileSync(path.join(fixture.dataDir, 'ca', 'service.pem'), 'utf8')
  writeFileSync(
    path.join(workDir, 'cert.pem'),
    pem.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----\n/)![0],
  )
  writeFileSync(
    path.join(workDir, 'key.pem'),
    pem.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?PRIVATE KEY-----\n/)![0],
  )
  pinToCore(fixture.edge.pid, SERVER_CORE)
  return { name: 'edge', port: fixture.edge.httpsPort, pid: fixture.edge.pid, stop: () => fixture.stop() }
}

function page(bytes: number): string {
  const head = '<!doctype html><html><head><title>bench</title></head><body>'
  return `${head}${'lorem ipsum dolor '.repeat(bytes / 18).slice(0, bytes - head.length - 14)}</body></html>`
}

async function startNginx(): Promise<Server> {
  const port = await freePort()
  const file = path.join(workDir, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${workDir}/nginx.pid; error_log ${workDir}/nginx.log; worker_rlimit_nofile 65536;
events { worker_connections 16384; }
http {
  access_log off; sendfile on; tcp_nopush on; types { text/html html; } etag on;
  open_file_cache max=1000; keepalive_requests 100000000; http2_max_requests 100000000;
  client_body_temp_path ${workDir}/t1; proxy_temp_path ${workDir}/t2; fastcgi_temp_path ${workDir}/t3; uwsgi_temp_path ${workDir}/t4; scgi_temp_path ${workDir}/t5;
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${workDir}/cert.pem; ssl_certificate_key ${workDir}/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:P-256; ssl_prefer_server_ciphers on;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384;
    add_header x-content-type-options nosniff; add_header strict-transport-security max-age=31536000;
    root ${workDir}/www;
  }
}`,
  )
  return startPinned('nginx', 'nginx', ['-p', workDir, '-c', file], port)
}

async function startCaddy(): Promise<Server> {
  const port = await freePort()
  const file = path.join(workDir, 'Caddyfile')
  writeFileSync(
    file,
    `{
  admin off
  auto_https off
  servers {
    protocols h1 h2
  }
}
https://:${port} {
  bind 127.0.0.1
  tls ${workDir}/cert.pem ${workDir}/key.pem
  root * ${workDir}/www
  header x-content-type-options nosniff
  header strict-transport-security max-age=31536000
  file_server
}`,
  )
  return startPinned('caddy', 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port)
}

async function startPinned(name: string, program: string, args: string[], port: number): Promise<Server> {
  const env = { ...process.env, GOMAXPROCS: '1', XDG_DATA_HOME: workDir, XDG_CONFIG_HOME: workDir }
  const child = spawn('taskset', ['-c', String(SERVER_CORE), program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env,
  })
  let errors = ''
  child.stderr!.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  await listening(port, child, () => errors)
  return {
    name,
    port,
    pid: child.pid!,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

async function listening(port: number, child: ChildProcess, errors: () => string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (child.exitCode !== null) throw new Error(errors())
    const socket = net.connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await sleep(100)
  }
  throw new Error(`nothing listens on ${port}: ${errors()}`)
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  return port
}

/** Runs a load generator on its own core and returns what it printed. */
async function load(program: string, args: string[]): Promise<string> {
  const child = spawn('taskset', ['-c', String(LOAD_CORE), program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return output
}

async function h2load(port: number, target: string, forSeconds: number): Promise<number> {
  const output = await load('h2load', [
    '-D',
    String(Math.ceil(forSeconds)),
    '-c',
    '8',
    '-m',
    '16',
    `--connect-to=127.0.0.1:${port}`,
    `https://${HOST}:${port}${target}`,
  ])
  const match = /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(output)
  if (!match || Number(match[3]) + Number(match[4]) > 0 || Number(match[1]) === 0) throw new Error(`h2load: ${output}`)
  return Number(match[1])
}

async function wrk(port: number, target: string, forSeconds: number): Promise<number> {
  const output = await load('wrk', [
    '-t',
    '1',
    '-c',
    '32',
    '-d',
    `${Math.ceil(forSeconds)}s`,
    '-H',
    `Host: ${HOST}`,
    `https://127.0.0.1:${port}${target}`,
  ])
  const match = /(\d+) requests in/.exec(output)
  if (!match || /Non-2xx/.test(output)) throw new Error(`wrk: ${output}`)
  return Number(match[1])
}

async function handshakes(port: number, forSeconds: number): Promise<number> {
  const args = ['s_time', '-connect', `127.0.0.1:${port}`, '-new', '-time', String(Math.ceil(forSeconds))]
  const outputs = await Promise.all(Array.from({ length: HANDSHAKE_CLIENTS }, () => load('openssl', args)))
  return outputs.reduce((sum, output) => {
    const match = /(\d+) connections in \d+ real seconds/.exec(output)
    if (!match) throw new Error(`openssl s_time: ${output}`)
    return sum + Number(match[1])
  }, 0)
}

function report(): void {
  const names = [...new Set(Object.values(results).flatMap((row) => Object.keys(row)))]
  const cell = ({ microseconds, perSecond }: Measurement): string =>
    `${microseconds.toFixed(0)} µs  ${perSecond.toFixed(0)}/s`
  process.stdout.write(`\n${'CPU per request'.padEnd(16)}${names.map((name) => name.padEnd(20)).join('')}\n`)
  for (const [name, row] of Object.entries(results)) {
    process.stdout.write(
      `${name.padEnd(16)}${names.map((server) => (row[server] ? cell(row[server]) : '–').padEnd(20)).join('')}\n`,
    )
  }
  mkdirSync(path.join(import.meta.dirname, 'results'), { recursive: true })
  const record = {
    measuredAt: new Date().toISOString(),
    node: process.version,
    machine: `${os.arch()}, ${os.availableParallelism()} cores`,
    seconds,
    results,
  }
  writeFileSync(path.join(import.meta.dirname, 'results', 'edge.json'), `${JSON.stringify(record, undefined, 2)}\n`)
}
