/** The primary's view of its workers: starts them, replaces those that die, tells them what changed. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../shared/log.ts'
import type { EdgeConfig } from './config.ts'
import type { Counters, ToPrimary, ToWorker } from './messages.ts'
import type { Change } from './store/replica.ts'

/** A worker that dies at once must not be started in a tight loop. */
const RESPAWN_MS = [0, 100, 500, 2000] as const
const STABLE_AFTER_MS = 10_000
/** A worker that hangs would hold up every publish: it is replaced. */
const CONFIRM_MS = 10_000
const REPORT_MS = 2000
const NODE_OPTIONS = [
  // http-proxy uses util._extend; nobody who runs an edge can do anything about that.
  '--disable-warning=DEP0060',
]

export interface Ports {
  readonly httpsPort: number
  readonly httpPort: number
}

export interface Workers {
  /** Resolves when all of them listen. */
  listen(): Promise<Ports>
  /** Resolves when no worker remembers the old values any more. */
  announce(changes: readonly Change[] | undefined): Promise<void>
  report(): Promise<Counters[]>
  restarts(): number
  /** Lets requests in flight end, for so long. */
  drain(maxMs: number): Promise<void>
}

export interface WorkersOptions {
  readonly config: Pick<EdgeConfig, 'workers' | 'httpsPort' | 'httpPort'>
  readonly address: string
  readonly workerFile: string
  readonly log: Log
  onViews(counts: readonly (readonly [string, number])[]): void
}

interface Worker {
  readonly process: ChildProcess
  readonly startedAt: number
  /** Rejects when the worker ends or cannot listen. */
  readonly listening: PromiseWithResolvers<Ports>
  readonly awaited: Map<number, (message: ToPrimary | undefined) => void>
}

/** They begin to load at once, and listen when they are told to. */
export function startWorkers({ config, address, workerFile, log, onViews }: WorkersOptions): Workers {
  const workers = new Set<Worker>()
  let ports: Ports = { httpsPort: config.httpsPort, httpPort: config.httpPort }
  let nextId = 0
  let restarts = 0
  let quickDeaths = 0
  let draining = false

  function spawn(): Worker {
    const child = fork(workerFile, ['worker'], {
      execArgv: NODE_OPTIONS,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    const listening = Promise.withResolvers<Ports>()
    listening.promise.catch(() => {})
    const worker: Worker = { process: child, startedAt: performance.now(), listening, awaited: new Map() }
    workers.add(worker)
    child.on('message', (message: ToPrimary) => hear(worker, message))
    child.once('exit', (code, signal) => onExit(worker, signal ?? code))
    return worker
  }

  function hear(worker: Worker, message: ToPrimary): void {
    switch (message.type) {
      case 'listening':
        return worker.listening.resolve({ httpsPort: message.httpsPort, httpPort: message.httpPort })
      case 'failed':
        return worker.listening.reject(new Error(message.message))
      case 'views':
        return onViews(message.counts)
      case 'attempt':
        for (const other of workers) if (other !== worker) tell(other, message)
        return undefined
      case 'confirmed':
      case 'report':
        worker.awaited.get(message.id)?.(message)
        return void worker.awaited.delete(message.id)
      default:
        return message satisfies never
    }
  }

  function onExit(worker: Worker, why: unknown): void {
    workers.delete(worker)
    for (const settle of worker.awaited.values()) settle(undefined)
    worker.listening.reject(new Error(`a worker ended while it started (${String(why)})`))
    if (!draining) void replace(worker, why)
  }

  async function replace(worker: Worker, why: unknown): Promise<void> {
    quickDeaths = performance.now() - worker.startedAt > STABLE_AFTER_MS ? 0 : quickDeaths + 1
    restarts += 1
    log.error({ pid: worker.process.pid, why }, 'a worker died and is replaced')
    await sleep(RESPAWN_MS[Math.min(quickDeaths, RESPAWN_MS.length - 1)]!)
    if (draining) return
    await listenOn(spawn()).catch((error: unknown) => log.error({ err: error }, 'a worker could not be started'))
  }

  function listenOn(worker: Worker): Promise<Ports> {
    tell(worker, { type: 'listen', address, ...ports })
    return worker.listening.promise
  }

  function tell(worker: Worker, message: ToWorker): void {
    if (worker.process.connected) worker.process.send(message, () => {})
  }

  /** Asks every worker; one that dies meanwhile counts as undefined: it starts again with nothing remembered. */
  function ask(make: (id: number) => ToWorker): Promise<(ToPrimary | undefined)[]> {
    return Promise.all(
      [...workers].map((worker) => {
        const id = nextId++
        const { promise, resolve } = Promise.withResolvers<ToPrimary | undefined>()
        worker.awaited.set(id, resolve)
        tell(worker, make(id))
        return promise
      }),
    )
  }

  function replaceSilent(): void {
    for (const worker of workers) {
      if (worker.awaited.size === 0) continue
      log.error({ pid: worker.process.pid }, 'a worker does not answer')
      worker.process.kill('SIGKILL')
    }
  }

  const initial = Array.from({ length: config.workers }, spawn)
  return {
    async listen() {
      // The first one may let the system choose ports; the others take the same.
      const [first, ...others] = initial
      ports = await listenOn(first!)
      await Promise.all(others.map(listenOn))
      return ports
    },
    async announce(changes) {
      const watchdog = setTimeout(replaceSilent, CONFIRM_MS)
      await ask((id) => ({ type: 'changed', id, changes }))
      clearTimeout(watchdog)
    },
    async report() {
      const answers = await Promise.race([ask((id) => ({ type: 'report', id })), sleep(REPORT_MS, [], { ref: false })])
      return answers.flatMap((answer) => (answer?.type === 'report' ? [answer.counters] : []))
    },
    restarts: () => restarts,
    async drain(maxMs) {
      draining = true
      const ends = [...workers].map(({ process: child }) =>
        Promise.all([once(child, 'exit'), once(child, 'disconnect')]),
      )
      for (const worker of workers) tell(worker, { type: 'drain' })
      await Promise.race([Promise.all(ends), sleep(maxMs, undefined, { ref: false })])
      for (const worker of workers) worker.process.kill('SIGKILL')
    },
  }
}
