/**
 * A real edge as a process of its own, with a real Redis and blobs in a temporary directory. Control is played by
 * this file: it publishes routes exactly as the contracts say and waits for the acknowledgement.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http2 from 'node:http2'
import os from 'node:os'
import path from 'node:path'
import tls from 'node:tls'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { createDirectoryBlobStore } from '../../shared/blobs/directory-store.ts'
import { keys } from '../../shared/redis/keys.ts'
import { lifeOf } from '../../shared/redis/life.ts'
import { encodeEpoch, revisionFloor } from '../../shared/contracts/history.ts'
import { everyEdgeReached, liveEdges } from '../../shared/contracts/live-edges.ts'
import { encodeManifest, type Manifest, type ManifestFile } from '../../shared/contracts/manifest.ts'
import { hashPassword } from '../../shared/secrets/password.ts'
import { encodeRouteRecord, type RouteRecord, type SiteRoute } from '../../shared/contracts/route-record.ts'
import { encodeStreamMessage, type StreamMessage } from '../../shared/redis/stream.ts'
import { GIVEN } from './given.ts'
import { unwatchEventLoops, watchEventLoops } from './event-loops.ts'
import { startTestRedis, type TestRedis } from './redis.ts'

const EDGE = path.resolve(import.meta.dirname, '../../edge/main.ts')
const NODE = path.resolve(import.meta.dirname, '../../node_modules/.bin/node')
/** On a busy machine; an edge that works acknowledges within milliseconds. */
const PATIENCE_MS = 60_000

export interface FixtureFile {
  readonly body: string | Buffer
  readonly type?: string
  readonly immutable?: boolean
  /** Stores br and gzip variants too. */
  readonly compressed?: boolean
  readonly injection?: ManifestFile['injection']
}

export type SiteSettings = Partial<Omit<SiteRoute, 'v' | 'kind' | 'host' | 'revision'>>

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly text: string
}

export interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Name in the handshake; the host by default. */
  readonly servername?: string
}

export interface EdgeProcess {
  readonly pid: number
  readonly httpsPort: number
  readonly httpPort: number
  readonly metricsPort: number | undefined
  readonly process: ChildProcess
  readonly output: () => string
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
}

/** Content of a drop as a manifest in the blob store. */
export type Content = Readonly<Record<string, FixtureFile | string>>

export interface EdgeFixture {
  readonly dataDir: string
  readonly redis: Redis
  readonly redisServer: TestRedis
  readonly ca: () => string
  edge: EdgeProcess
  /** Puts files and their manifest into the blob store; returns the manifest's hash. */
  store(content: Content, rules?: Partial<Pick<Manifest, 'redirects' | 'headers'>>): Promise<string>
  putBlob(bytes: Uint8Array): Promise<string>
  /** Publishes a live site at `host` and waits until the edge serves it. */
  publish(
    host: string,
    content: Content,
    settings?: SiteSettings,
    rules?: Partial<Pick<Manifest, 'redirects' | 'headers'>>,
  ): Promise<SiteRoute>
  setRoute(record: DistributiveOmit<RouteRecord, 'v' | 'revision'>, revision?: number): Promise<void>
  /** Writes one message to the change log without waiting; returns its position. */
  log(message: Omit<StreamMessage, 'v'>): Promise<string>
  reached(position: string): Promise<boolean>
  /** What control does last when everything is published. */
  setEpoch(epoch: string): Promise<void>
  /** The next routes are written as changes of this history of the routing table. */
  writeHistory(ordinal: number): void
  /** As `setEpoch`, of a snapshot of that history. */
  setHistory(ordinal: number): Promise<void>
  /** A record in the snapshot, without a word in the change log. */
  putRoute(record: DistributiveOmit<RouteRecord, 'v' | 'revision'>): Promise<void>
  /** The same, as it stands. */
  putRecord(host: string, text: string): Promise<void>
  /** Hosts that edges told to serve beyond the snapshot. */
  unknownHosts(): Promise<string[]>
  /** What each live edge says beside its position. */
  edgeStates(): Promise<{ history: number | undefined; refused: string[] }[]>
  trimLog(entries: number): Promise<void>
  /** Anything at all in the change log. */
  addEntry(...fields: string[]): Promise<void>
  edgeIds(): Promise<string[]>
  /** Views of a site that have arrived in Redis, of all days, so that a test may run over midnight. */
  views(siteId: string): Promise<number>
  hashPassword(password: string): Promise<string>
  h1(host: string, target: string, options?: RequestOptions): Promise<Answer>
  h2(host: string, target: string, options?: RequestOptions): Promise<Answer>
  startEdge(env?: Record<string, string>, onForked?: (child: ChildProcess) => void): Promise<EdgeProcess>
  stop(): Promise<void>
}

type DistributiveOmit<Type, Key extends PropertyKey> = Type extends unknown ? Omit<Type, Key> : never

export interface FixtureOptions {
  readonly env?: Record<string, string>
  /** Set the epoch before the edge starts, as control does after publishing everything. Default true. */
  readonly epoch?: boolean
  readonly startEdge?: boolean
}

export async function startEdgeFixture(options: FixtureOptions = {}): Promise<EdgeFixture> {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'dropway-edge-'))
  const redisServer = await startTestRedis()
  const redis = new Redis(redisServer.url)
  redis.on('error', () => {})
  const blobs = createDirectoryBlobStore(path.join(dataDir, 'blobs'))
  const edges = new Set<EdgeProcess>()
  let revision = 1
  if (options.epoch !== false) await redis.set(keys.epoch, 'first')

  async function startEdge(
    env: Record<string, string> = {},
    onForked?: (child: ChildProcess) => void,
  ): Promise<EdgeProcess> {
    const edge = await spawnEdge(
      {
        DATA_DIR: dataDir,
        REDIS_URL: redisServer.url,
        EDGE_WORKERS: '2',
        ...options.env,
        ...env,
      },
      onForked,
    )
    edges.add(edge)
    edge.process.once('exit', () => edges.delete(edge))
    return edge
  }

  async function store(
    content: Content,
    rules: Partial<Pick<Manifest, 'redirects' | 'headers'>> = {},
  ): Promise<string> {
    const files: [string, ManifestFile][] = []
    for (const [name, entry] of Object.entries(content)) files.push([name, await storeFile(name, entry)])
    const manifest: Manifest = {
      v: 1,
      files,
      redirects: rules.redirects ?? [],
      headers: rules.headers ?? [],
      unserved: [],
    }
    return (await blobs.put(encodeManifest(manifest))).hash
  }

  async function variant(bytes: Buffer): Promise<{ hash: string; size: number }> {
    const { hash, size } = await blobs.put(bytes)
    return { hash, size }
  }

  async function storeFile(name: string, entry: FixtureFile | string): Promise<ManifestFile> {
    const file: FixtureFile = typeof entry === 'string' ? { body: entry } : entry
    const bytes = Buffer.from(file.body)
    const stored = await blobs.put(bytes)
    const result: ManifestFile = { hash: stored.hash, size: stored.size, type: file.type ?? typeOf(name) }
    if (file.immutable) result.immutable = true
    if (file.compressed)
      result.encodings = { br: await variant(brotliCompressSync(bytes)), gzip: await variant(gzipSync(bytes)) }
    if (file.injection) result.injection = file.injection
    else if (result.type.startsWith('text/html')) result.injection = injectionOf(bytes)
    return result
  }

  const log = async (message: Omit<StreamMessage, 'v'>): Promise<string> =>
    (await redis.xadd(keys.log, '*', ...encodeStreamMessage(message)))!
  const reached = (position: string): Promise<boolean> => everyEdgeReached(redis, position, PATIENCE_MS)

  const putRoute = async (route: DistributiveOmit<RouteRecord, 'v' | 'revision'>, given?: number): Promise<string> => {
    const value = encodeRouteRecord({ ...route, v: 1, revision: given ?? ++revision } as RouteRecord)
    await redis.hset(keys.routes, route.host, value)
    return value
  }

  const setRoute: EdgeFixture['setRoute'] = async (record, given) => {
    const value = await putRoute(record, given)
    const position = await log({ kind: 'route', name: record.host, value })
    if (edges.size > 0 && !(await reached(position))) throw new Error(`the edge did not acknowledge ${record.host}`)
  }

  const fixture: EdgeFixture = {
    dataDir,
    redis,
    redisServer,
    ca: () => readFileSync(path.join(dataDir, 'ca', 'ca.pem'), 'utf8'),
    edge: undefined as unknown as EdgeProcess,
    store,
    putBlob: async (bytes) => (await blobs.put(bytes)).hash,
    async publish(host, content, settings = {}, rules = {}) {
      const manifest = await store(content, rules)
      const route: SiteRoute = {
        v: 1,
        kind: 'site',
        host,
        revision: ++revision,
        site_id: `st_${host}`,
        state: 'live',
        manifest,
        version_number: 1,
        versions: [[1, manifest]],
        expires_at: null,
        password: null,
        spa_fallback: false,
        badge: false,
        analytics: null,
        ...settings,
      }
      await setRoute(route, route.revision)
      return route
    },
    setRoute,
    log,
    reached,
    setEpoch: async (epoch) => void (await redis.set(keys.epoch, epoch)),
    writeHistory: (ordinal) => void (revision = revisionFloor(ordinal) + 1),
    async setHistory(ordinal) {
      await redis.set(keys.epoch, encodeEpoch({ ordinal, id: `h${ordinal}` }, 'x'))
      await redis.set(keys.redisLife, await lifeOf(redis))
    },
    putRoute: async (route) => void (await putRoute(route)),
    putRecord: async (host, text) => void (await redis.hset(keys.routes, host, text)),
    unknownHosts: () => redis.smembers(keys.unknown),
    edgeStates: async () =>
      (await liveEdges(redis)).map(({ state }) => ({
        history: state?.history?.ordinal,
        refused: [...(state?.refused.keys() ?? [])],
      })),
    trimLog: async (entries) => void (await redis.xtrim(keys.log, 'MAXLEN', entries)),
    addEntry: async (...fields) => void (await redis.xadd(keys.log, '*', ...fields)),
    edgeIds: () => redis.smembers(keys.edges),
    views: async (siteId) => {
      const days = Object.entries(await redis.hgetall(keys.views))
      return days.reduce((sum, [day, views]) => (day.startsWith(`${siteId}|`) ? sum + Number(views) : sum), 0)
    },
    hashPassword,
    h1: (host, target, request = {}) => requestH1(fixture.edge.httpsPort, fixture.ca(), host, target, request),
    h2: (host, target, request = {}) => requestH2(fixture.edge.httpsPort, fixture.ca(), host, target, request),
    startEdge,
    async stop() {
      await Promise.all([...edges].map((edge) => edge.stop()))
      redis.disconnect()
      await redisServer.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  if (options.startEdge === false) return fixture
  try {
    fixture.edge = await startEdge()
    return fixture
  } catch (error) {
    // No one gets a fixture that they could stop.
    await fixture.stop()
    throw error
  }
}

async function spawnEdge(
  env: Record<string, string>,
  onForked: (child: ChildProcess) => void = () => {},
): Promise<EdgeProcess> {
  const child = fork(EDGE, [], {
    execPath: NODE,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      PATH: process.env['PATH'],
      ...GIVEN,
      EDGE_HTTPS_PORT: '0',
      EDGE_HTTP_PORT: '0',
      BASE_URL: 'https://localhost',
      EDGE_DRAIN: '5s',
      // A test file is many visitors, whom the edge takes for one network.
      EDGE_REQUESTS_PER_IP: '1000000',
      EDGE_HANDSHAKES_PER_IP: '100000',
      EDGE_CONNECTIONS_PER_IP: '100000',
      DRAIN_NOTICE: '0s',
      CONTROL_PORT: '9',
      METRICS_PORT: '0',
      LOG_LEVEL: 'warn',
      ...env,
    },
  })
  onForked(child)
  let output = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = once(child, 'exit') as Promise<[number | null]>
  const ready = new Promise<{ httpsPort: number; httpPort: number; metricsPort?: number }>((resolve, reject) => {
    child.on(
      'message',
      (message: { ready?: true; httpsPort: number; httpPort: number }) => message.ready && resolve(message),
    )
    void exited.then(([code]) => reject(new Error(`the edge ended with ${code}: ${output}`)))
  })
  const ports = await ready
  await watchEventLoops(`edge ${child.pid}`, ports.metricsPort)
  void exited.then(() => unwatchEventLoops(ports.metricsPort))
  return {
    pid: child.pid!,
    httpsPort: ports.httpsPort,
    httpPort: ports.httpPort,
    metricsPort: ports.metricsPort,
    process: child,
    output: () => output,
    async stop() {
      await unwatchEventLoops(ports.metricsPort)
      child.kill('SIGTERM')
      return (await exited)[0]
    },
  }
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['html', 'text/html; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['js', 'text/javascript; charset=utf-8'],
  ['txt', 'text/plain; charset=utf-8'],
  ['png', 'image/png'],
])

function typeOf(name: string): string {
  return TYPES.get(name.slice(name.lastIndexOf('.') + 1)) ?? 'application/octet-stream'
}

/** Fixture pages are plain: the first end tags are the real ones. */
function injectionOf(bytes: Buffer): ManifestFile['injection'] {
  const head = bytes.indexOf('</head>')
  const body = bytes.indexOf('</body>')
  return { head: head < 0 ? 0 : head, body: body < 0 ? bytes.length : body }
}

/** Sends raw text over TLS (HTTP/1.1), which must make the server end the connection, and collects everything until it does. */
export async function rawH1(port: number, ca: string, servername: string, text: string | Buffer): Promise<string> {
  const socket = tls.connect({ port, host: '127.0.0.1', ca, servername, ALPNProtocols: ['http/1.1'] })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  socket.write(text)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.once('close', resolve))
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}

export async function requestH1(
  port: number,
  ca: string,
  host: string,
  target: string,
  options: RequestOptions,
): Promise<Answer> {
  const method = options.method ?? 'GET'
  const body = Buffer.from(options.body ?? '')
  const headers = {
    host,
    connection: 'close',
    ...options.headers,
    ...(body.length > 0 ? { 'content-length': String(body.length) } : {}),
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const raw = await rawH1(
    port,
    ca,
    options.servername ?? host,
    Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${head.join('')}\r\n`), body]),
  )
  return parseH1(raw)
}

/** One whole answer, also a chunked one. */
export function parseH1(raw: string): Answer {
  const end = raw.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = raw.slice(0, end).split('\r\n')
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  const rest = raw.slice(end + 4)
  const body = Buffer.from(headers['transfer-encoding'] === 'chunked' ? unchunk(rest) : rest, 'latin1')
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, body, text: body.toString() }
}

function unchunk(text: string): string {
  let rest = text
  let body = ''
  for (;;) {
    const size = Number.parseInt(rest, 16)
    if (!size) return body
    const start = rest.indexOf('\r\n') + 2
    body += rest.slice(start, start + size)
    rest = rest.slice(start + size + 2)
  }
}

export async function requestH2(
  port: number,
  ca: string,
  host: string,
  target: string,
  options: RequestOptions,
): Promise<Answer> {
  const session = http2.connect(`https://${host}`, {
    createConnection: () =>
      tls.connect({ port, host: '127.0.0.1', ca, servername: options.servername ?? host, ALPNProtocols: ['h2'] }),
  })
  session.on('error', () => {})
  try {
    return await streamH2(session, host, target, options)
  } finally {
    session.destroy()
  }
}

export async function streamH2(
  session: http2.ClientHttp2Session,
  host: string,
  target: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const stream = session.request(
    { ':authority': host, ':path': target, ':method': options.method ?? 'GET', ...options.headers },
    { endStream: options.body === undefined },
  )
  if (options.body !== undefined) stream.end(options.body)
  const [received] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  const headers: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(received))
    headers[name] = Array.isArray(value) ? value.join(', ') : String(value)
  const body = Buffer.concat(chunks)
  return { status: Number(received[':status']), headers, body, text: body.toString() }
}
