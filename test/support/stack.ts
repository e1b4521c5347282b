/**
 * A whole real Dropway: the supervisor as a child process, on free ports, with a DATA_DIR of its own.
 * `sharedStack()` is one for the whole run: use it with your own accounts and slugs, and don't disturb it.
 * `startStack()` is yours alone: kill what you like in it, and stop it.
 */
import { execFile, spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chown, cp, mkdtemp, rm } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { askBroker, type SharedThing } from './broker.ts'
import { request, type Answer, type RequestOptions } from './client.ts'
import { GIVEN } from './given.ts'
import { unwatchEventLoops, watchEventLoops } from './event-loops.ts'
import { askOperator, startOperator, type CommandResult } from './operator.ts'
import { createTestDatabase } from './postgres.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where the logs of the last run's shared stack are. */
const LOGS = path.join(ROOT, 'test/output/logs')
/**
 * Ten times what a start takes on a calm machine, and less than hooks have, so that what it wrote is told. Counted in ticks:
 * while this process is stopped, the stack may be too.
 */
const START_TICKS = 200

export type PlanName = 'free' | 'plus' | 'business' | 'starter' | 'pro'
export type ProcessName = 'supervisor' | 'postgres' | 'redis' | 'control' | 'edge'
export type FetchOptions = Omit<RequestOptions, 'url' | 'ca'> & {
  /** API token, sent as a bearer. */
  readonly token?: string
  /** The address that the visitor comes from; the stack trusts its test client as a proxy. */
  readonly from?: string
}

export interface Account {
  readonly email: string
  readonly user_id: string
  readonly org_id: string
  readonly plan: PlanName
  readonly token: string
}

export interface AccountOptions {
  readonly email?: string
  readonly password?: string
  /** May see the pages of the service's staff. */
  readonly staff?: boolean
}

export interface Published {
  readonly id: string
  readonly slug: string
  readonly url: string
}

export interface Stack {
  readonly baseUrl: string
  readonly sitesDomain: string
  readonly httpsPort: number
  readonly httpPort: number
  readonly controlPort: number
  readonly dataDir: string
  /** The environment of the stack, for processes started beside it. */
  readonly env: Readonly<Record<string, string>>
  /** PEM of the local CA. */
  readonly ca: string
  /** A path of the service (`/api/v1/…`), or a whole URL. */
  fetch(pathOrUrl: string, options?: FetchOptions): Promise<Answer>
  /** A path of a drop, over h2 unless told otherwise. */
  visit(slug: string, path?: string, options?: FetchOptions): Promise<Answer>
  /** `npm run admin -- …`. */
  admin(...args: string[]): Promise<CommandResult>
  /** The same, with something to read on stdin. */
  adminReading(input: string, ...args: string[]): Promise<CommandResult>
  /** What `admin` does, by an operator who stays where the stack has one: for tests that are not about the program. */
  operate(...args: string[]): Promise<CommandResult>
  /** A verified account with an API token. */
  createAccount(plan?: PlanName, options?: AccountOptions): Promise<Account>
  /** Publishes files (or one page) as a new site, or as the next version of `site`. */
  publish(
    account: Pick<Account, 'token'>,
    content: string | Readonly<Record<string, string | Uint8Array>>,
    site?: Published,
  ): Promise<Published>
  /** Pids of the processes that run now. */
  pids(): Readonly<Record<string, number>>
}

export interface OwnStack extends Stack {
  /** Every line that the supervisor has written so far. */
  readonly output: readonly string[]
  kill(name: ProcessName, signal?: NodeJS.Signals): void
  /** Stops with SIGTERM and starts again on the same data. */
  restart(): Promise<void>
  /** SIGTERM, then waits for the end; removes the data. Resolves the exit code. */
  stop(): Promise<number>
}

export interface StackOptions {
  /** An empty value leaves a setting out. */
  readonly env?: Readonly<Record<string, string>>
  /** Edge workers; 1 unless told otherwise. */
  readonly workers?: number
  /** Start it as people do, with `npm start`; signals then go to npm. */
  readonly npm?: boolean
  /** Run it as this system user; only root can. */
  readonly user?: SystemUser
  /** A database on the run's Postgres instead of a Postgres of its own: for tests that leave Postgres alone. */
  readonly database?: 'shared'
  /** Have an operator who stays, which many accounts and commands are worth. For stacks whose services are left alone. */
  readonly operator?: boolean
}

export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

interface Description {
  readonly dataDir: string
  readonly env: Readonly<Record<string, string>>
  /** Where its operator listens. */
  readonly operator?: string | undefined
}

export async function startStack(options: StackOptions = {}): Promise<OwnStack> {
  return (await startDescribed(options)).stack
}

async function startDescribed({
  env = {},
  workers = 1,
  npm = false,
  user,
  database: whose,
  operator: hasOperator = false,
}: StackOptions): Promise<{ stack: OwnStack; description: Description }> {
  const dataDir = env['DATA_DIR'] ?? (await mkdtemp(path.join(os.tmpdir(), 'dropway-test-stack-')))
  if (user) await chown(dataDir, user.uid, user.gid)
  const database = whose === 'shared' ? await createTestDatabase() : undefined
  const where = database === undefined ? env : { ...env, DATABASE_URL: database.url }
  const settings: Description = { dataDir, env: await stackEnvironment(dataDir, workers, where) }
  const output: string[] = []
  let supervisor = await startSupervisor(settings, output, { npm, user })
  const operator = hasOperator ? await startOperator(dataDir, settings.env) : undefined
  const description: Description = { ...settings, operator: operator?.address }
  const { CONTROL_PORT: controlPort, METRICS_PORT: metricsPort } = description.env
  const watch = async (): Promise<void> => {
    await watchEventLoops('control', Number(controlPort))
    await watchEventLoops('edge', Number(metricsPort))
  }
  const unwatch = async (): Promise<void> => {
    for (const port of [controlPort, metricsPort]) await unwatchEventLoops(Number(port))
  }
  await watch()

  async function end(): Promise<number> {
    if (supervisor.exitCode === null && supervisor.signalCode === null) {
      supervisor.kill('SIGTERM')
      await once(supervisor, 'exit')
    }
    return supervisor.exitCode ?? 1
  }

  const stack: OwnStack = {
    ...attach(description),
    output,
    kill(name, signal = 'SIGKILL') {
      process.kill(readProcesses(dataDir)[name]!, signal)
    },
    async restart() {
      await unwatch()
      await end()
      supervisor = await startSupervisor(description, output, { npm, user })
      await watch()
    },
    async stop() {
      await unwatch()
      await operator?.stop()
      const code = await end()
      await database?.close()
      await rm(dataDir, { recursive: true, force: true })
      return code
    },
  }
  return { stack, description }
}

/** The stack that all test files of this run share. */
export async function sharedStack(): Promise<Stack> {
  return attach(await askBroker<Description>(inject('broker'), 'stack'))
}

export async function startSharedStack(): Promise<SharedThing<Description>> {
  const { stack, description } = await startDescribed({ workers: 2, operator: true })
  return {
    description,
    async stop() {
      // What it wrote, for those who look into a failure of the run.
      await cp(path.join(stack.dataDir, 'logs'), LOGS, { recursive: true, force: true })
      await stack.stop()
    },
  }
}

async function stackEnvironment(dataDir: string, workers: number, extra: Readonly<Record<string, string>>) {
  const [httpsPort, httpPort, controlPort, metricsPort] = await freePorts(4)
  const settings = {
    PATH: process.env['PATH'] ?? '',
    HOME: os.homedir(),
    ...GIVEN,
    DATA_DIR: dataDir,
    EDGE_HTTPS_PORT: String(httpsPort),
    EDGE_HTTP_PORT: String(httpPort),
    CONTROL_PORT: String(controlPort),
    METRICS_PORT: String(metricsPort),
    EDGE_WORKERS: String(workers),
    // A test file is many visitors, whom the edge takes for one network.
    EDGE_REQUESTS_PER_IP: '1000000',
    EDGE_HANDSHAKES_PER_IP: '100000',
    EDGE_CONNECTIONS_PER_IP: '100000',
    // Tests act as many visitors from one machine.
    TRUSTED_PROXIES: '127.0.0.1,::1',
    ANONYMOUS_PER_HOUR: '10000',
    UPLOADS_PER_HOUR: '1000000',
    JOB_INTERVAL: '1s',
    EDGE_DRAIN: '2s',
    DRAIN_NOTICE: '0s',
    ...extra,
  }
  return Object.fromEntries(Object.entries<string>(settings).filter(([, value]) => value !== ''))
}

/**
 * Below the range from which the system gives ports to outgoing connections, which would take them in between, and above the
 * last port that browsers refuse to open.
 */
const PORT_RANGE = { first: 11_000, count: 21_000 }
/** More than there are test processes on a machine, those of other runs too: one must not take what another has just found free. */
const PORT_SHARES = 64
const SHARE = Math.floor(PORT_RANGE.count / PORT_SHARES)
/** The process outlives the module, which each test file may load anew. */
const held = globalThis as { dropwayPortShare?: Promise<number> }

/** To those who asked before: they may not have begun to listen. */
const givenPorts = new Set<number>()

/** Held all at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const guardPort = await (held.dropwayPortShare ??= takeShare())
  const servers: net.Server[] = []
  while (servers.length < count) {
    const port = guardPort + randomInt(1, SHARE)
    const server = givenPorts.has(port) ? undefined : await holdPort(port)
    if (server) servers.push(server)
  }
  const ports = servers.map((server) => (server.address() as net.AddressInfo).port)
  for (const port of ports) givenPorts.add(port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** Holds a share of the ports as long as this process lives, by listening at its first one, which is returned. */
async function takeShare(): Promise<number> {
  for (let share = 0; share < PORT_SHARES; share++) {
    const guard = await holdPort(PORT_RANGE.first + share * SHARE)
    if (guard === undefined) continue
    guard.unref()
    return PORT_RANGE.first + share * SHARE
  }
  throw new Error(`${PORT_SHARES} test processes hold all ports from ${PORT_RANGE.first} on`)
}

async function holdPort(port: number): Promise<net.Server | undefined> {
  const server = net.createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

async function startSupervisor(
  { env }: Description,
  output: string[],
  { npm, user }: Pick<StackOptions, 'npm' | 'user'>,
): Promise<ChildProcess> {
  const [program, args] = npm ? ['npm', ['start']] : [process.execPath, ['control/operations/supervisor/main.ts']]
  const isKeptOut = user !== undefined && !mayReadSources(user)
  const options: SpawnOptions = { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] }
  const child = isKeptOut
    ? spawn('unshare', [...lettingIn(user), inOpenPlace(program), ...args], options)
    : spawn(program, args, { ...options, ...user })
  let waiting: NodeJS.Timeout | undefined
  const ready = new Promise<void>((resolve, reject) => {
    const follow = (line: string) => {
      output.push(line)
      if (line.startsWith('ready ')) resolve()
    }
    createInterface({ input: child.stdout! }).on('line', follow)
    createInterface({ input: child.stderr! }).on('line', follow)
    child.once('close', (code) => reject(new Error(`the stack ended with ${code}:\n${output.join('\n')}`)))
    let ticks = 0
    waiting = setInterval(() => {
      if (++ticks > START_TICKS) reject(new Error(`the stack did not get ready:\n${output.join('\n')}`))
    }, 1000)
  })
  try {
    await ready
  } catch (error) {
    child.kill('SIGTERM')
    throw error
  } finally {
    clearInterval(waiting)
  }
  return child
}

function mayReadSources(user: SystemUser): boolean {
  return spawnSync('test', ['-r', path.join(ROOT, 'package.json')], user).status === 0
}

/** Every system has it, and everyone may go there. */
const OPEN_PLACE = '/mnt'

/**
 * The checkout may lie in a home that is closed to others. Then the process sees it at an open place, and no other process
 * does: the mount ends with the process.
 */
function lettingIn({ uid, gid }: SystemUser): string[] {
  const become = `setpriv --reuid=${uid} --regid=${gid} --clear-groups`
  const script = `mount --bind "$0" ${OPEN_PLACE} && cd ${OPEN_PLACE} && exec ${become} "$@"`
  return ['--mount', '--propagation=private', 'sh', '-c', script, ROOT]
}

function inOpenPlace(file: string): string {
  return path.join(OPEN_PLACE, path.relative(ROOT, file))
}

function readProcesses(dataDir: string): Record<string, number> {
  return JSON.parse(readFileSync(path.join(dataDir, 'services.json'), 'utf8')).processes
}

/** What one can do with a stack that runs with this environment. */
export function attach({ dataDir, env, operator }: Description): Stack {
  const httpsPort = Number(env['EDGE_HTTPS_PORT'])
  const baseUrl = env['BASE_URL'] ?? `https://localhost:${httpsPort}`
  const sitesDomain = env['SITES_DOMAIN'] ?? 'localhost'
  const ca = readFileSync(path.join(dataDir, 'ca', 'ca.pem'), 'utf8')

  const fetch: Stack['fetch'] = (pathOrUrl, { token, from, headers, ...options } = {}) =>
    request({
      ...options,
      ca,
      url: pathOrUrl.startsWith('/') ? baseUrl + pathOrUrl : pathOrUrl,
      // The service's own host, where nobody ends it; visits of drops come from strangers, each with a new connection.
      keepAlive: operator !== undefined && pathOrUrl.startsWith('/'),
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(from === undefined ? {} : { 'x-forwarded-for': from }),
        ...headers,
      },
    })

  const adminReading: Stack['adminReading'] = (input, ...args) =>
    run(['control/operations/admin/main.ts', ...args], env, input)
  const admin: Stack['admin'] = (...args) => adminReading('', ...args)
  const operateReading: Stack['adminReading'] = (input, ...args) =>
    operator === undefined ? adminReading(input, ...args) : askOperator(operator, { args, input })

  return {
    baseUrl,
    sitesDomain,
    httpsPort,
    httpPort: Number(env['EDGE_HTTP_PORT']),
    controlPort: Number(env['CONTROL_PORT']),
    dataDir,
    env,
    ca,
    fetch,
    admin,
    adminReading,
    operate: (...args) => operateReading('', ...args),
    visit: (slug, target = '/', options = {}) =>
      fetch(`https://${slug}.${sitesDomain}:${httpsPort}${target}`, { h2: true, ...options }),
    async createAccount(
      plan = 'free',
      { email = `user-${randomBytes(5).toString('hex')}@example.test`, password, staff = false } = {},
    ) {
      const flags = [
        '--verified',
        '--token',
        ...(staff ? ['--staff'] : []),
        ...(password === undefined ? [] : ['--password-stdin']),
      ]
      const result = await operateReading(password ?? '', 'create-account', '--email', email, '--plan', plan, ...flags)
      if (result.code !== 0) throw new Error(`create-account failed: ${result.stderr}`)
      return JSON.parse(result.stdout) as Account
    },
    async publish({ token }, content, existing) {
      const site = existing ?? (await expectStatus(201, fetch('/api/v1/sites', { token, json: {} }))).json<Published>()
      const body = new FormData()
      if (typeof content === 'string') body.append('file', new File([content], 'index.html'))
      else {
        for (const [name, bytes] of Object.entries(content)) {
          body.append('files', new File([new Uint8Array(Buffer.from(bytes))], path.basename(name)))
          body.append('paths', name)
        }
      }
      const kind = typeof content === 'string' ? 'upload' : 'upload-bundle'
      await expectStatus(201, fetch(`/api/v1/sites/${site.id}/${kind}`, { token, body }))
      return site
    },
    pids: () => readProcesses(dataDir),
  }
}

async function expectStatus(status: number, answer: Promise<Answer>): Promise<Answer> {
  const received = await answer
  if (received.status !== status) throw new Error(`expected ${status}, got ${received.status}: ${received.text()}`)
  return received
}

/** Runs one of our programs to its end, with an environment of its own and `input` on stdin. */
export function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      { cwd: ROOT, env, maxBuffer: 64_000_000 },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
      },
    )
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  })
}
