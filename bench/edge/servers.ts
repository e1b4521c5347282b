/** What the edge bench compares: the edge, a bare Node server, nginx and Caddy, each pinned to one core, on the same bytes. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { brotliCompressSync } from 'node:zlib'
import { HOST, LOCKED_HOST, MANY_FILES, SNIPPETS_HOST, type ServerName } from './rows.ts'
import { LOAD_CORE } from './generators.ts'
import { startEdgeFixture, type EdgeFixture } from '../../test/support/edge-fixture.ts'
import { pinToCore } from '../../test/support/processes.ts'
import { findPeer, type Peer } from '../peers.ts'

const SERVER_CORE = 0
const PAGE_KB = [4, 32, 200] as const
const PASSWORD = 'correct horse'

export interface Server {
  readonly name: ServerName
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

export interface Bench {
  readonly edge: Server
  /** What a visitor of the locked drop carries. */
  readonly cookie: string
  /** What another edge, which has ended since, gave a visitor to come back with; in base64. */
  foreignTicket(): Promise<string>
}

/** No limits per network: all load comes from one address. */
export async function startEdge(
  workDir: string,
  upstream: number,
  { workers = 1, isPinned = true } = {},
): Promise<Bench> {
  const fixture = await startEdgeFixture({
    env: {
      EDGE_WORKERS: String(workers),
      EDGE_REQUESTS_PER_IP: '10000000',
      EDGE_HANDSHAKES_PER_IP: '1000000',
      EDGE_CONNECTIONS_PER_IP: '100000',
      CONTROL_PORT: String(upstream),
    },
  })
  const pages = Object.fromEntries(PAGE_KB.map((size) => [`${size}.html`, page(size * 1000)]))
  const words = wordsOf(32_000)
  await fixture.publish(SNIPPETS_HOST, { 'page.html': page(4000) }, SNIPPETS)
  // A page with snippets costs what a plain file of the same bytes costs, or does not.
  const withSnippets = (await fixture.h1(SNIPPETS_HOST, '/page.html', { headers: { 'accept-language': 'de' } })).body
  const many = Object.fromEntries(Array.from({ length: MANY_FILES }, (_, n) => [`many/${n}.txt`, `${n} `.repeat(200)]))
  const content = { ...pages, 'page.html': withSnippets.toString(), '404.html': page(2000) }
  await fixture.publish(
    HOST,
    { ...content, ...many, 'words.html': { body: words, compressed: true } },
    {},
    { redirects: [{ from: '/old', to: '/4.html', status: 301, force: false, line: 1 }] },
  )
  const password = { hash: await fixture.hashPassword(PASSWORD), generation: 1 }
  await fixture.publish(LOCKED_HOST, pages, { password })
  for (const [name, body] of Object.entries({ ...content, ...many, 'locked/4.html': pages['4.html']! }))
    keep(workDir, name, body)
  keep(workDir, 'words.html', words)
  keep(workDir, 'words.html.br', brotliCompressSync(words))
  const pem = readFileSync(path.join(fixture.dataDir, 'ca', 'service.pem'), 'utf8')
  writeFileSync(
    path.join(workDir, 'cert.pem'),
    pem.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----\n/)![0],
  )
  writeFileSync(
    path.join(workDir, 'key.pem'),
    pem.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?PRIVATE KEY-----\n/)![0],
  )
  if (isPinned) pinToCore(fixture.edge.pid, SERVER_CORE)
  const { httpsPort: port, pid } = fixture.edge
  const unlocked = await fixture.h1(LOCKED_HOST, '/.dropway/unlock', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ password: PASSWORD }).toString(),
  })
  const cookie = unlocked.headers['set-cookie']!.split(';')[0]!
  const stop = (): Promise<void> => fixture.stop()
  return { edge: { name: 'edge', port, pid, stop }, cookie, foreignTicket: () => ticketOfAnother(fixture) }
}

async function ticketOfAnother(fixture: EdgeFixture): Promise<string> {
  const another = await fixture.startEdge({ REPLICA_DIR: path.join(fixture.dataDir, 'another') })
  const socket = tls.connect({
    port: another.httpsPort,
    host: '127.0.0.1',
    servername: HOST,
    rejectUnauthorized: false,
    ecdhCurve: 'X25519',
  })
  const [ticket] = (await once(socket, 'session')) as [Buffer]
  socket.destroy()
  await another.stop()
  return ticket.toString('base64')
}

const SNIPPETS = {
  badge: true,
  analytics: { google_analytics: { measurement_id: 'G-ABCDEF1234' }, plausible: { domain: 'example.com' } },
} as const

function keep(workDir: string, name: string, body: string | Buffer): void {
  const file = path.join(workDir, 'www', name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, body)
}

function page(bytes: number): string {
  const head = '<!doctype html><html><head><title>bench</title></head><body>'
  return `${head}${'lorem ipsum dolor '.repeat(bytes / 18).slice(0, bytes - head.length - 14)}</body></html>`
}

/** Text that does not compress to nothing. */
function wordsOf(bytes: number): string {
  let state = 1
  const next = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below
  let text = '<!doctype html><title>words</title><p>'
  while (text.length < bytes) text += `${'aeiourstn'.repeat(2).slice(next(9), 9 + next(6))}${next(1000)} `
  return text
}

/** On the generator's core: what it takes is no part of the comparison. */
export async function startUpstream(): Promise<{ port: number; stop(): Promise<void> }> {
  const child = fork(path.join(import.meta.dirname, 'upstream.ts'))
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  pinToCore(child.pid!, LOAD_CORE)
  return { port, stop: () => stopped(child) }
}

export async function startBare(workDir: string): Promise<Server> {
  const child = fork(path.join(import.meta.dirname, 'bare.ts'), [workDir])
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  pinToCore(child.pid!, SERVER_CORE)
  return { name: 'bare', port, pid: child.pid!, stop: () => stopped(child) }
}

export async function startNginx(workDir: string, upstream: number, cookie: string): Promise<Server> {
  const port = await freePort()
  const file = path.join(workDir, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${workDir}/nginx.pid; error_log ${workDir}/nginx.log; worker_rlimit_nofile 65536;
events { worker_connections 16384; }
http {
  access_log off; sendfile on; tcp_nopush on; types { text/html html; text/plain txt; } etag on;
  open_file_cache max=20000; keepalive_requests 100000000; http2_max_requests 100000000;
  client_body_temp_path ${workDir}/t1; proxy_temp_path ${workDir}/t2; fastcgi_temp_path ${workDir}/t3; uwsgi_temp_path ${workDir}/t4; scgi_temp_path ${workDir}/t5;
  upstream control { server 127.0.0.1:${upstream}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${workDir}/cert.pem; ssl_certificate_key ${workDir}/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:P-256; ssl_prefer_server_ciphers on;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384;
    add_header x-content-type-options nosniff; add_header strict-transport-security max-age=31536000;
    root ${workDir}/www;
    error_page 404 /404.html;
    location = /old { return 301 /4.html; }
    location = /words.html { add_header content-encoding br; alias ${workDir}/www/words.html.br; }
    location /locked/ { if ($http_cookie != "${cookie}") { return 401; } }
    location /api/ { proxy_pass http://control; proxy_http_version 1.1; proxy_set_header connection ""; }
  }
}`,
  )
  return startPinned(workDir, 'nginx', ['-p', workDir, '-c', file], port)
}

export async function startCaddy(workDir: string, upstream: number, cookie: string): Promise<Server> {
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
  redir /old /4.html 301
  @locked {
    path /locked/*
    not header cookie "${cookie}"
  }
  respond @locked 401
  reverse_proxy /api/* 127.0.0.1:${upstream}
  file_server {
    precompressed br
  }
  handle_errors {
    rewrite * /404.html
    file_server
  }
}`,
  )
  return startPinned(workDir, 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port)
}

async function startPinned(workDir: string, program: Peer, args: string[], port: number): Promise<Server> {
  const env = { ...process.env, GOMAXPROCS: '1', XDG_DATA_HOME: workDir, XDG_CONFIG_HOME: workDir }
  const child = spawn('taskset', ['-c', String(SERVER_CORE), findPeer(program) ?? program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env,
  })
  let errors = ''
  child.stderr!.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  await listening(port, child, () => errors)
  return {
    name: program,
    port,
    pid: child.pid!,
    stop: () => stopped(child),
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM')
  await once(child, 'exit')
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
