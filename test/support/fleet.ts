/**
 * Several edges and controls on one machine, as several machines would be: one Postgres, one Redis, one blob store,
 * each edge with a replica of its own, and a balancer in front. Kill, freeze and restart what you like.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPostgres, type Postgres } from '../../control/operations/supervisor/postgres/postgres.ts'
import { startRedis, type Redis } from '../../control/operations/supervisor/redis/redis.ts'
import { allocatorSettings } from '../../shared/running/memory.ts'
import { noteLocalServices } from '../../shared/settings/local-services.ts'
import { startBalancer, type Balancer } from './balancer.ts'
import { GIVEN } from './given.ts'
import { unwatchEventLoops, watchEventLoops } from './event-loops.ts'
import { attach, freePorts, type Stack } from './stack.ts'

const START_TIMEOUT_MS = 90_000

export interface FleetProcess {
  readonly name: string
  readonly pid: number
  /** Port where it answers: TLS of an edge, HTTP of a control. */
  readonly port: number
  /** Port of its metrics, which a control answers where it answers everything. */
  readonly metricsPort: number | undefined
  readonly output: () => string
  kill(signal: NodeJS.Signals): void
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  readonly exited: Promise<number | null>
}

export interface Fleet extends Stack {
  readonly edges: FleetProcess[]
  readonly controls: FleetProcess[]
  postgres: Postgres
  redis: Redis
  readonly balancer: Balancer
  /** Started, level and behind the balancer when it resolves. */
  addEdge(env?: Readonly<Record<string, string>>): Promise<FleetProcess>
  /** Out of the balancer, SIGTERM, gone. */
  removeEdge(edge: FleetProcess): Promise<void>
  /** Stops (or kills) a control and starts it again on the same port. */
  restartControl(index: number, signal?: NodeJS.Signals): Promise<void>
  startControl(index: number): Promise<void>
  /** Starts them again where they were. */
  startPostgresAgain(): Promise<void>
  startRedisAgain(): Promise<void>
  stop(): Promise<void>
}

export interface FleetOptions {
  readonly edges?: number
  readonly controls?: number
  readonly env?: Readonly<Record<string, string>>
  /** What one control has for itself; asked once Postgres runs. */
  readonly controlEnv?: (index: number, postgres: Postgres) => Promise<Readonly<Record<string, string>>>
  /** Where the sources of one process are (`control 0`, `edge 1`): another release than this one. */
  readonly rootOf?: (name: string) => string | undefined
  /** A directory instead of a new one: kept when the fleet stops. */
  readonly dataDir?: string
}

export async function startFleet({
  edges = 2,
  controls = 2,
  env = {},
  controlEnv = async () => ({}),
  rootOf = () => undefined,
  dataDir,
}: FleetOptions = {}): Promise<Fleet> {
  const home = dataDir ?? (await mkdtemp(path.join(os.tmpdir(), 'dropway-fleet-')))
  await mkdir(home, { recursive: true })
  const searchPath = process.env['PATH'] ?? ''
  const beginPostgres = () => startPostgres({ dataDir: home, durable: false })
  const beginRedis = () => startRedis({ dataDir: home, durable: false, searchPath })
  const [postgres, redis, balancer, controlPorts] = await Promise.all([
    beginPostgres(),
    beginRedis(),
    startBalancer(),
    freePorts(controls),
  ])
  noteLocalServices(home, { databaseUrl: postgres.url, redisUrl: redis.url, processes: {} })
  const common: Record<string, string> = {
    PATH: searchPath,
    HOME: os.homedir(),
    ...GIVEN,
    DATA_DIR: home,
    SECRET_KEY: randomBytes(32).toString('hex'),
    BASE_URL: `https://localhost:${balancer.port}`,
    CONTROL_URLS: controlPorts.map((port) => `http://127.0.0.1:${port}`).join(','),
    EDGE_WORKERS: '1',
    EDGE_DRAIN: '5s',
    DRAIN_NOTICE: '0s',
    EDGE_REQUESTS_PER_IP: '1000000',
    EDGE_HANDSHAKES_PER_IP: '100000',
    EDGE_CONNECTIONS_PER_IP: '100000',
    ANONYMOUS_PER_HOUR: '100000',
    UPLOADS_PER_HOUR: '1000000',
    JOB_INTERVAL: '1s',
    LOG_LEVEL: 'warn',
    ...env,
  }
  const running: FleetProcess[] = []
  const controlProcesses: FleetProcess[] = []
  const edgeProcesses: FleetProcess[] = []
  let edgeNumber = 0

  async function launch(name: string, main: string, own: Readonly<Record<string, string>>): Promise<FleetProcess> {
    const started = await startProcess(name, main, { ...common, ...own }, rootOf(name))
    running.push(started)
    return started
  }

  const startControl = async (index: number): Promise<void> => {
    controlProcesses[index] = await launch(`control ${index}`, 'control/main.ts', {
      // As a supervisor and the image tell it.
      ...allocatorSettings('control'),
      CONTROL_PORT: String(controlPorts[index]),
      ...(await controlEnv(index, postgres)),
    })
  }

  const balance = () => balancer.setTargets(edgeProcesses.map(({ port }) => port))

  async function addEdge(own: Readonly<Record<string, string>> = {}): Promise<FleetProcess> {
    const name = `edge ${edgeNumber++}`
    const edge = await launch(name, 'edge/main.ts', {
      EDGE_HTTPS_PORT: '0',
      EDGE_HTTP_PORT: '0',
      METRICS_PORT: '0',
      REPLICA_DIR: path.join(home, name.replace(' ', '-')),
      ...own,
    })
    edgeProcesses.push(edge)
    balance()
    return edge
  }

  let stack: Stack
  try {
    await startControl(0)
    await Promise.all(Array.from({ length: controls - 1 }, (_, index) => startControl(index + 1)))
    for (let count = 0; count < edges; count++) await addEdge()
    stack = attach({ dataDir: home, env: { ...common, EDGE_HTTPS_PORT: String(balancer.port), EDGE_HTTP_PORT: '0' } })
  } catch (error) {
    await Promise.all([...running.map((each) => each.stop()), postgres.stop(), redis.stop(), balancer.stop()])
    throw error
  }

  const fleet: Fleet = {
    ...stack,
    edges: edgeProcesses,
    controls: controlProcesses,
    postgres,
    redis,
    balancer,
    addEdge,
    async removeEdge(edge) {
      edgeProcesses.splice(edgeProcesses.indexOf(edge), 1)
      balance()
      await edge.stop()
    },
    startControl,
    async restartControl(index, signal = 'SIGTERM') {
      const control = controlProcesses[index]!
      await unwatchEventLoops(control.metricsPort)
      control.kill(signal)
      await control.exited
      await startControl(index)
    },
    async startPostgresAgain() {
      fleet.postgres = await beginPostgres()
    },
    async startRedisAgain() {
      fleet.redis = await beginRedis()
    },
    async stop() {
      await Promise.all(running.map((each) => each.stop()))
      await Promise.all([fleet.postgres.stop(), fleet.redis.stop(), balancer.stop()])
      if (dataDir === undefined) await rm(home, { recursive: true, force: true })
    },
  }
  return fleet
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Starts one plane and waits until it says that it listens. */
export async function startProcess(
  name: string,
  main: string,
  env: Readonly<Record<string, string>>,
  root = ROOT,
): Promise<FleetProcess> {
  const child = fork(path.join(root, main), { env, execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (output += String(chunk)))
  const exited = exitOf(child)
  const { port, metricsPort } = await Promise.race([
    portsOf(child),
    exited.then((code) => Promise.reject(new Error(`${name} ended with ${code}: ${output}`))),
    late(START_TIMEOUT_MS, () => `${name} did not get ready: ${output}`),
  ])
  await watchEventLoops(name, metricsPort)
  void exited.then(() => unwatchEventLoops(metricsPort))
  return {
    name,
    pid: child.pid!,
    port,
    metricsPort,
    exited,
    output: () => output,
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGCONT')
      await unwatchEventLoops(metricsPort)
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
      const code = await exited
      clearTimeout(timer)
      return code
    },
  }
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

function portsOf(child: ChildProcess): Promise<Pick<FleetProcess, 'port' | 'metricsPort'>> {
  return new Promise((resolve) => {
    child.on('message', (message: { ready?: boolean; port?: number; httpsPort?: number; metricsPort?: number }) => {
      if (!message.ready) return
      const { httpsPort, port = httpsPort, metricsPort } = message
      resolve({ port: httpsPort ?? port!, metricsPort: httpsPort === undefined ? port : metricsPort })
    })
  })
}

function late(ms: number, message: () => string): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(message())), ms).unref())
}
