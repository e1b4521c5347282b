/** What the edge bench compares: the edge, a bare Node server, nginx and Caddy, each pinned to one core, on the same bytes. */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEdgeFixture } from '../test/support/edge-fixture.ts'
import { pinToCore } from '../test/support/processes.ts'

const SERVER_CORE = 0
export const HOST = 'bench.localhost'
export const PAGE_KB = [4, 32, 200] as const

export interface Server {
  readonly name: string
  readonly port: number
  readonly pid: number
  stop(): Promise<void>
}

/** A free drop: its pages carry the badge, so that the hot path includes what injection costs. */
export async function startEdge(workDir: string): Promise<Server> {
  const fixture = await startEdgeFixture({
    env: {
      EDGE_WORKERS: '1',
      EDGE_REQUESTS_PER_IP: '10000000',
      EDGE_HANDSHAKES_PER_IP: '1000000',
      EDGE_CONNECTIONS_PER_IP: '100000',
    },
  })
  const files = Object.fromEntries(PAGE_KB.map((size) => [`${size}.html`, page(size * 1000)]))
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

export async function startBare(workDir: string): Promise<Server> {
  const child = fork(path.join(import.meta.dirname, 'edge-bare.ts'), [workDir])
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  pinToCore(child.pid!, SERVER_CORE)
  return { name: 'bare Node', port, pid: child.pid!, stop: () => stopped(child) }
}

export async function startNginx(workDir: string): Promise<Server> {
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
  return startPinned(workDir, 'nginx', ['-p', workDir, '-c', file], port)
}

export async function startCaddy(workDir: string): Promise<Server> {
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
  return startPinned(workDir, 'caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port)
}

async function startPinned(workDir: string, program: string, args: string[], port: number): Promise<Server> {
  const env = { ...process.env, GOMAXPROCS: '1', XDG_DATA_HOME: workDir, XDG_CONFIG_HOME: workDir }
  const child = spawn('taskset', ['-c', String(SERVER_CORE), program, ...args], {
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
