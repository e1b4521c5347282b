/**
 * The embedded Postgres: a real server from npm's binaries, on a unix socket only.
 *
 * Start: find who runs it and where the binaries are → end a server that a killed supervisor left behind →
 * create the cluster on the first start → say who may connect → start → wait for "ready" → create the database.
 */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { findPostgresBinaries } from './binaries.ts'
import { StartRefused } from '../preflight.ts'
import { endWithUs } from '../processes/guard.ts'
import {
  endFamily,
  endProcess,
  isAlive,
  pidOf,
  unlessCancelled,
  workingDirectoryOf,
  type PipedChild,
  type StopStep,
} from '../processes/processes.ts'
import { createStartClock } from '../processes/start-clock.ts'
import type { StopPace } from '../processes/unit.ts'
import { reasonOf } from './reason.ts'
import { canReach, serviceUser, type ServiceUser } from './service-user.ts'
import { releaseSocketFolder, socketFolder } from '../sockets.ts'

export interface PostgresOptions {
  /** Holds the cluster (`postgres/`) and, where the path is short enough, the socket (`postgres-socket/`). */
  readonly dataDir: string
  /** Off only where the data may be lost, as in tests: nothing is forced to disk. */
  readonly durable?: boolean
  /** Each line that the server logs. */
  readonly onLog?: (line: string) => void
  /** Aborted: it is not started after all. */
  readonly cancel?: AbortSignal | undefined
}

export interface Postgres {
  /** For openDatabase(): the directory of the unix socket. */
  readonly url: string
  readonly pid: number
  /** Settles when the server process has gone, for whatever reason. */
  readonly exited: Promise<void>
  stop(pace?: StopPace): Promise<void>
}

const SOCKET_NAME = '.s.PGSQL.5432'
const MAX_CONNECTIONS = 100
/** Recovery after a crash takes as long as it needs, and says every ten seconds how far it is (log_startup_progress_interval). */
const SILENCE_TIMEOUT_MS = 60_000
/** Backends of a killed server notice its death within moments; until then a new one cannot have their shared memory. */
const START_ATTEMPTS = 10
const RETRY_DELAY_MS = 300

/** Fast shutdown, immediate shutdown (recovers at the next start), and the end. */
const STOP_STEPS: readonly StopStep[] = [
  { signal: 'SIGINT', graceMs: 8000 },
  { signal: 'SIGQUIT', graceMs: 2000 },
  { signal: 'SIGKILL', graceMs: 2000 },
]
/** The same for a server that no plane has used yet. */
const HURRIED_STEPS: readonly StopStep[] = [
  { signal: 'SIGINT', graceMs: 1500 },
  { signal: 'SIGQUIT', graceMs: 500 },
  { signal: 'SIGKILL', graceMs: 300 },
]

/** Everything that running one of the binaries needs to know. */
interface Cluster {
  readonly dataDir: string
  readonly cancel: AbortSignal | undefined
  readonly binaries: string
  readonly user: ServiceUser | undefined
  /** The cluster's directory. */
  readonly directory: string
}

export async function startPostgres({
  dataDir,
  durable = true,
  onLog = () => {},
  cancel,
}: PostgresOptions): Promise<Postgres> {
  mkdirSync(dataDir, { recursive: true })
  const user = serviceUser()
  const home = realpathSync(dataDir)
  const cluster: Cluster = {
    dataDir: home,
    cancel,
    user,
    binaries: findPostgresBinaries(user, home),
    directory: path.join(home, 'postgres'),
  }

  await unlessCancelled(cancel, endLeftOver(cluster.directory))
  if (!existsSync(cluster.directory)) await createCluster(cluster, durable)
  admitOnlyOurselves(cluster)
  const usualPlace = path.join(home, 'postgres-socket')
  const socketDirectory = socketFolder(usualPlace, SOCKET_NAME, user)
  removeStaleSocket(socketDirectory)
  const server = await startServer(cluster, socketDirectory, durable, onLog)
  const pid = pidOf(server)
  try {
    await unlessCancelled(cancel, createDatabase(socketDirectory, home))
  } catch (error) {
    await endProcess(pid, HURRIED_STEPS)
    throw error
  }

  return {
    url: socketDirectory,
    pid,
    exited: exitOf(server),
    async stop(pace) {
      await endProcess(pid, pace === 'hurried' ? HURRIED_STEPS : STOP_STEPS)
      releaseSocketFolder(socketDirectory, usualPlace)
    },
  }
}

/** Ends a server of this cluster whose supervisor was killed, and forgets a pid that now names another process. */
async function endLeftOver(directory: string): Promise<void> {
  const pidFile = path.join(directory, 'postmaster.pid')
  if (!existsSync(pidFile)) return
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0])
  if (isAlive(pid) && workingDirectoryOf(pid) === directory) await endProcess(pid, STOP_STEPS)
  rmSync(pidFile, { force: true })
}

/** Only called when no server of this cluster runs: what lies there is a dead server's. */
function removeStaleSocket(folder: string): void {
  rmSync(path.join(folder, SOCKET_NAME), { force: true })
  rmSync(path.join(folder, `${SOCKET_NAME}.lock`), { force: true })
}

/** Built under another name and renamed: an interrupted first start leaves nothing that looks like a cluster. */
async function createCluster(cluster: Cluster, durable: boolean): Promise<void> {
  const draft = { ...cluster, directory: `${cluster.directory}.new` }
  rmSync(draft.directory, { recursive: true, force: true })
  mkdirSync(draft.directory, { mode: 0o700 })
  if (cluster.user) chownSync(draft.directory, cluster.user.uid, cluster.user.gid)
  const options = ['-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-instructions']
  const initdb = run(draft, 'initdb', durable ? options : [...options, '--no-sync'])
  const output = collect(initdb)
  try {
    await unlessCancelled(cluster.cancel, exitOf(initdb))
  } catch (error) {
    endFamily(pidOf(initdb))
    throw error
  }
  if (initdb.exitCode !== 0)
    throw new StartRefused(`Postgres could not create its data directory: ${reasonOf(output(), cluster.dataDir)}`)
  renameSync(draft.directory, cluster.directory)
}

/**
 * Connections are for the system user that runs the planes, as the kernel tells (`peer`): on top of a socket in a folder
 * that no other user may enter. A user without a name, as in some containers, cannot be told apart that way.
 */
function admitOnlyOurselves({ directory, user }: Cluster): void {
  const name = ownName()
  const files = {
    'pg_hba.conf': name === undefined ? 'local all all trust\n' : 'local all all peer map=dropway\n',
    'pg_ident.conf': name === undefined ? '' : `dropway "${name}" postgres\n`,
  }
  for (const [file, content] of Object.entries(files)) {
    const target = path.join(directory, file)
    writeFileSync(target, content)
    chmodSync(target, 0o600)
    if (user) chownSync(target, user.uid, user.gid)
  }
}

function ownName(): string | undefined {
  try {
    return os.userInfo().username
  } catch {
    return undefined
  }
}

async function startServer(
  cluster: Cluster,
  socketDirectory: string,
  durable: boolean,
  onLog: (line: string) => void,
): Promise<PipedChild> {
  const settings = { ...baseSettings(socketDirectory), ...(durable ? {} : RISKY_SETTINGS) }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  for (let attempt = 1; ; attempt++) {
    const server = run(cluster, 'postgres', options)
    const failure = await unlessCancelled(cluster.cancel, readyOrFailure(server, onLog)).catch(
      async (error: unknown) => {
        await endProcess(pidOf(server), HURRIED_STEPS)
        throw error
      },
    )
    if (failure === undefined) return server
    if (attempt >= START_ATTEMPTS || !failure.includes('is still in use'))
      throw new StartRefused(
        `Postgres did not start: ${reasonOf(failure, cluster.dataDir)} Its log is DATA_DIR/logs/postgres.log.`,
      )
    await unlessCancelled(cluster.cancel, sleep(RETRY_DELAY_MS))
  }
}

function baseSettings(socketDirectory: string): Record<string, string | number> {
  return {
    unix_socket_directories: socketDirectory,
    unix_socket_permissions: '0700',
    listen_addresses: '',
    port: 5432,
    max_connections: MAX_CONNECTIONS,
    shared_buffers: '32MB',
    // A small machine, short queries: compiling them costs more than it saves.
    jit: 'off',
    log_checkpoints: 'off',
  }
}

const RISKY_SETTINGS = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

/** Resolves undefined once the server accepts connections, or what it said before it gave up or fell silent. */
export async function readyOrFailure(server: PipedChild, onLog: (line: string) => void): Promise<string | undefined> {
  const said: string[] = []
  const clock = createStartClock(SILENCE_TIMEOUT_MS)
  let isStarting = true
  clock.begin()
  const ready = new Promise<undefined>((resolve) => {
    createInterface({ input: server.stderr }).on('line', (line) => {
      said.push(line)
      if (said.length > 50) said.shift()
      if (isStarting) clock.begin()
      if (line.includes('ready to accept connections')) resolve(undefined)
      onLog(line)
    })
  })
  const late = clock.ranOut.then(() => 'It took too long.')
  const outcome = await Promise.race([ready, exitOf(server).then(() => said.join('\n')), late])
  isStarting = false
  clock.stop()
  if (outcome !== undefined) server.kill('SIGKILL')
  return outcome
}

/**
 * Runs one of the binaries on the cluster. In a process group of its own, since Ctrl-C in a terminal goes to a whole group
 * and the services must outlive the planes.
 *
 * Where the service user cannot reach the directory, it is handed over as an open file: /proc/self/fd leads to it
 * without passing the directories above, and every backend inherits it.
 */
function run(
  { dataDir, binaries, user, directory }: Cluster,
  program: 'initdb' | 'postgres',
  options: readonly string[],
): PipedChild {
  const handle = canReach(user, path.dirname(directory)) ? undefined : openSync(directory, 'r')
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', ...(handle === undefined ? [] : [handle])]
  try {
    const child = spawn(
      path.join(binaries, 'bin', program),
      ['-D', handle === undefined ? directory : '/proc/self/fd/3', ...options],
      {
        ...user,
        stdio,
        cwd: '/',
        detached: true,
        env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      },
    ) as PipedChild
    endWithUs(child, { dataDir, name: program, signal: 'SIGINT' })
    return child
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}

function collect(child: PipedChild): () => string {
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString().trim()
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => resolve())
    child.once('error', reject)
  })
}

async function createDatabase(socketDirectory: string, dataDir: string): Promise<void> {
  const sql = postgres({
    path: path.join(socketDirectory, SOCKET_NAME),
    database: 'postgres',
    username: 'postgres',
    max: 1,
    onnotice: () => {},
  })
  try {
    const [existing] = await sql`select 1 from pg_database where datname = 'dropway'`
    if (!existing) await sql`create database dropway`
  } catch (error) {
    throw new StartRefused(`Postgres could not create the database: ${reasonOf((error as Error).message, dataDir)}`)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
