/**
 * Redis: `redis-server` or `valkey-server` from PATH, on a unix socket, with its append-only file in DATA_DIR;
 * else the stand-in written in JavaScript, in a process of its own. The stand-in forgets everything when it stops:
 * control republishes what the edges need.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { heapFlags } from '../../../../shared/running/memory.ts'
import { StartRefused } from '../preflight.ts'
import { endWithUs } from '../processes/guard.ts'
import {
  endProcess,
  isAlive,
  pidOf,
  unlessCancelled,
  workingDirectoryOf,
  type PipedChild,
  type StopStep,
} from '../processes/processes.ts'
import type { StopPace } from '../processes/unit.ts'
import { releaseSocketFolder, socketFolder } from '../sockets.ts'

export interface RedisOptions {
  /** Holds the append-only file (`redis/`) and, where the path is short enough, the socket (`redis.sock`). */
  readonly dataDir: string
  /** Directories to look for a server in, as in $PATH. Empty: the stand-in. */
  readonly searchPath: string
  /** Off only where the data may be lost, as in tests. */
  readonly durable?: boolean
  /** Port of the stand-in, to get back at the same address after a crash. Unset: any free one. */
  readonly standInPort?: number | undefined
  readonly onLog?: (line: string) => void
  /** Aborted: it is not started after all. */
  readonly cancel?: AbortSignal
}

export interface Redis {
  /** Path of the unix socket, or a redis:// URL of the stand-in. */
  readonly url: string
  readonly pid: number
  /** `redis-server`, `valkey-server`, or `stand-in`. */
  readonly engine: string
  readonly exited: Promise<void>
  stop(pace?: StopPace): Promise<void>
}

const ENGINES = ['redis-server', 'valkey-server']
const SOCKET_NAME = 'redis.sock'
const START_TIMEOUT_MS = 30_000
const STOP_STEPS: readonly StopStep[] = [
  { signal: 'SIGTERM', graceMs: 5000 },
  { signal: 'SIGKILL', graceMs: 2000 },
]
const HURRIED_STEPS: readonly StopStep[] = [
  { signal: 'SIGTERM', graceMs: 700 },
  { signal: 'SIGKILL', graceMs: 300 },
]
const stepsOf = (pace: StopPace = 'orderly'): readonly StopStep[] => (pace === 'hurried' ? HURRIED_STEPS : STOP_STEPS)

export async function startRedis(options: RedisOptions): Promise<Redis> {
  mkdirSync(options.dataDir, { recursive: true })
  const program = findProgram(ENGINES, options.searchPath)
  return program === undefined ? await startStandIn(options) : await startServer(program, options)
}

/** The first of the names that is an executable on the search path. */
function findProgram(names: readonly string[], searchPath: string): string | undefined {
  const folders = searchPath.split(path.delimiter).filter((folder) => folder !== '')
  return names.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function startServer(
  program: string,
  { dataDir, durable = true, onLog = () => {}, cancel }: RedisOptions,
): Promise<Redis> {
  const home = realpathSync(dataDir)
  const directory = path.join(home, 'redis')
  mkdirSync(directory, { recursive: true })
  const pidFile = path.join(directory, 'redis.pid')
  await unlessCancelled(cancel, endLeftOver(pidFile, directory))

  const folder = socketFolder(home, SOCKET_NAME)
  const socket = path.join(folder, SOCKET_NAME)
  rmSync(socket, { force: true })
  const settings = {
    port: '0',
    unixsocket: socket,
    unixsocketperm: '700',
    dir: directory,
    pidfile: pidFile,
    save: '',
    appendonly: durable ? 'yes' : 'no',
    // What is published can be republished from Postgres, so a second of it may be lost with the power.
    appendfsync: 'everysec',
    // Routes, views and limits all matter: refuse a write rather than forget something.
    'maxmemory-policy': 'noeviction',
  }
  const server = spawn(
    program,
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group of its own: Ctrl-C in a terminal must not stop it before the planes.
      detached: true,
    },
  )
  const pid = pidOf(server)
  endWithUs(server, { dataDir: home, name: 'redis', signal: 'SIGTERM' })
  const said = followLog(server, onLog)
  try {
    await unlessCancelled(cancel, waitUntilReady(server, socket, said))
  } catch (error) {
    await endProcess(pid, HURRIED_STEPS)
    throw error
  }
  return {
    url: socket,
    pid,
    engine: path.basename(program),
    exited: exitOf(server),
    async stop(pace) {
      await endProcess(pid, stepsOf(pace))
      releaseSocketFolder(folder, home)
    },
  }
}

/** Ends a server of this directory whose supervisor was killed. */
async function endLeftOver(pidFile: string, directory: string): Promise<void> {
  if (!existsSync(pidFile)) return
  const pid = Number(readFileSync(pidFile, 'utf8'))
  if (isAlive(pid) && workingDirectoryOf(pid) === directory) await endProcess(pid, STOP_STEPS)
  rmSync(pidFile, { force: true })
}

async function waitUntilReady(server: ChildProcess, socket: string, said: readonly string[]): Promise<void> {
  let exited = false
  void exitOf(server).finally(() => (exited = true))
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await answersPing(socket))) {
    if (exited || Date.now() > deadline) {
      server.kill('SIGKILL')
      throw new StartRefused(`Redis did not start: ${reasonOf(said)} Its log is DATA_DIR/logs/redis.log.`)
    }
    await sleep(20)
  }
}

/** How Redis marks a line of its log that is more than news. */
const SERIOUS = ' # '

/** What Redis said last of what it holds to be serious, as a sentence. */
function reasonOf(said: readonly string[]): string {
  const reason = said.findLast((line) => line.includes(SERIOUS))?.split(SERIOUS, 2)[1]
  const text = reason ?? said.at(-1) ?? 'it ended without a word'
  return /[.!]$/.test(text) ? text : `${text}.`
}

/** While it loads its file the server answers -LOADING instead of +PONG. */
function answersPing(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(socket)
    const settle = (answer: boolean) => {
      connection.destroy()
      resolve(answer)
    }
    connection.setTimeout(1000, () => settle(false))
    connection.on('error', () => settle(false))
    connection.on('data', (data) => settle(data.toString().startsWith('+PONG')))
    connection.write('PING\r\n')
  })
}

function followLog(server: PipedChild, onLog: (line: string) => void): readonly string[] {
  const said: string[] = []
  for (const input of [server.stdout, server.stderr]) {
    createInterface({ input }).on('line', (line) => {
      said.push(line)
      if (said.length > 50) said.shift()
      onLog(line)
    })
  }
  return said
}

async function startStandIn({ dataDir, standInPort = 0, cancel }: RedisOptions): Promise<Redis> {
  const server = fork(new URL('./stand-in.ts', import.meta.url), [String(standInPort)], {
    detached: true,
    execArgv: [...heapFlags()],
  })
  const pid = pidOf(server)
  endWithUs(server, { dataDir, name: 'redis', signal: 'SIGTERM' })
  const listening = new Promise<number>((resolve, reject) => {
    server.once('message', (message: { port: number }) => resolve(message.port))
    server.once('error', reject)
    server.once('exit', () =>
      reject(new StartRefused('The Redis stand-in did not start. Install redis-server, or set REDIS_URL.')),
    )
  })
  const port = await unlessCancelled(cancel, listening).catch(async (error: unknown) => {
    await endProcess(pid, HURRIED_STEPS)
    throw error
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    pid,
    engine: 'stand-in',
    exited: exitOf(server),
    stop: (pace) => endProcess(pid, stepsOf(pace)),
  }
}

async function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  await new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
}
