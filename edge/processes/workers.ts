/** The primary's view of its workers: starts them, replaces those that die, tells them what changed. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../shared/running/log.ts'
import { heapFlags } from '../../shared/running/memory.ts'
import { stepAt, type Steps } from '../../shared/running/steps.ts'
import type { SeenPage } from '../context.ts'
import { UNSENT_FLAGS } from '../accept/outgoing/unsent.ts'
import type { EdgeConfig } from '../config.ts'
import { askForPongs } from '../../shared/running/watchdog/heartbeat.ts'
import { isPong, type Counters, type Pong, type ToPrimary, type ToWorker } from './messages.ts'
import { createQuestions, type Questions } from '../store/questions.ts'
import type { Change } from '../store/replica/replica.ts'

/** A worker that dies at once must not be started in a tight loop. */
const RESPAWN_MS: Steps = [0, 100, 500, 2000]
const STABLE_AFTER_MS = 10_000
/** A worker that is too slow to hear what changed holds up every publish: it is replaced. */
const CONFIRM_MS = 10_000
/** What a worker may take beyond the drain time before it is killed. */
export const DRAIN_GRACE_MS = 2000
const REPORT_MS = 2000
const NODE_OPTIONS = [
  // http-proxy uses util._extend, and scripts of pages have their types stripped: operators can do nothing about either.
  '--disable-warning=DEP0060',
  '--disable-warning=ExperimentalWarning',
  ...UNSENT_FLAGS,
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
  report(asked: { isScrape: boolean }): Promise<Counters[]>
  restarts(): number
  /** Lets requests in flight end, for so long, or until `cut` settles. */
  drain(maxMs: number, cut: Promise<unknown>): Promise<void>
}

export interface WorkersOptions {
  readonly config: Pick<EdgeConfig, 'workers' | 'httpsPort' | 'httpPort' | 'drainMs'>
  readonly address: string
  readonly workerFile: string
  readonly log: Log
  onViews(pages: readonly SeenPage[], visits: readonly (readonly [string, number])[]): void
  /** Who there is, after each start and each end. */
  onChange(pids: readonly number[]): void
}

interface Worker {
  readonly process: ChildProcess
  readonly startedAt: number
  /** Rejects when the worker ends or cannot listen. */
  readonly listening: PromiseWithResolvers<Ports>
  readonly questions: Questions<ToPrimary>
  isListening: boolean
  /** It takes no more connections, ends when those it has do, and another worker has its place already. */
  isRetired: boolean
}

/** They begin to load at once, and listen when they are told to. */
export function startWorkers(options: WorkersOptions): Workers {
  return new WorkerPool(options)
}

class WorkerPool implements Workers {
  readonly #options: WorkersOptions
  readonly #log: Log
  readonly #workers = new Set<Worker>()
  readonly #first: Worker
  readonly #others: readonly Worker[]
  #ports: Ports
  #restarts = 0
  #quickDeaths = 0
  #isDraining = false

  constructor(options: WorkersOptions) {
    const { config } = options
    this.#options = options
    this.#log = options.log
    this.#ports = { httpsPort: config.httpsPort, httpPort: config.httpPort }
    this.#first = this.#spawn()
    this.#others = Array.from({ length: config.workers - 1 }, () => this.#spawn())
  }

  async listen(): Promise<Ports> {
    // The first one may let the system choose ports; the others take the same.
    this.#ports = await this.#listenOn(this.#first)
    await Promise.all(this.#others.map((worker) => this.#listenOn(worker)))
    return this.#ports
  }

  async announce(changes: readonly Change[] | undefined): Promise<void> {
    const watchdog = setTimeout(() => this.#retireSlow(), CONFIRM_MS)
    const workers = [...this.#workers]
    await Promise.all(workers.map((worker) => this.#ask(worker, (id) => ({ type: 'changed', id, changes }))))
    clearTimeout(watchdog)
  }

  async report({ isScrape }: { isScrape: boolean }): Promise<Counters[]> {
    return (await Promise.all([...this.#workers].map((worker) => this.#reportOf(worker, isScrape)))).flat()
  }

  restarts(): number {
    return this.#restarts
  }

  async drain(maxMs: number, cut: Promise<unknown>): Promise<void> {
    this.#isDraining = true
    const ends = [...this.#workers].map(({ process: child }) =>
      Promise.all([once(child, 'exit'), once(child, 'disconnect')]),
    )
    for (const worker of this.#workers) this.#tell(worker, { type: 'drain' })
    await Promise.race([Promise.all(ends), sleep(maxMs, undefined, { ref: false }), cut])
    for (const worker of this.#workers) worker.process.kill('SIGKILL')
  }

  #noteAll(): void {
    this.#options.onChange([...this.#workers].flatMap(({ process: child }) => child.pid ?? []))
  }

  #spawn(): Worker {
    const child = fork(this.#options.workerFile, ['worker'], {
      execArgv: [...NODE_OPTIONS, ...heapFlags()],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
      // A process group of its own: ending a hung primary with its group must not end those who still serve.
      detached: true,
    })
    const listening = Promise.withResolvers<Ports>()
    const worker: Worker = {
      process: child,
      startedAt: performance.now(),
      listening,
      questions: createQuestions(),
      isListening: false,
      isRetired: false,
    }
    this.#workers.add(worker)
    this.#noteAll()
    child.on('message', (message: ToPrimary | Pong) => {
      if (!isPong(message)) this.#hear(worker, message)
    })
    child.once('exit', (code, signal) => this.#onExit(worker, signal ?? code))
    listening.promise.then(() => this.#watch(worker)).catch(() => {})
    return worker
  }

  #watch(worker: Worker): void {
    const { process: child } = worker
    worker.isListening = true
    const stop = askForPongs(child, () => {
      this.#log.error({ pid: child.pid }, 'a worker does not answer: it is stopped or hangs, and is ended')
      child.kill('SIGKILL')
    })
    child.once('exit', stop)
  }

  #hear(worker: Worker, message: ToPrimary): void {
    switch (message.type) {
      case 'listening':
        return worker.listening.resolve({ httpsPort: message.httpsPort, httpPort: message.httpPort })
      case 'failed':
        return worker.listening.reject(new Error(message.message))
      case 'views':
        return this.#options.onViews(message.pages, message.visits)
      case 'attempt':
        for (const other of this.#workers) if (other !== worker) this.#tell(other, message)
        return undefined
      case 'confirmed':
      case 'report':
        return worker.questions.answered(message.id, message)
      default:
        return message satisfies never
    }
  }

  #onExit(worker: Worker, why: unknown): void {
    this.#workers.delete(worker)
    this.#noteAll()
    worker.questions.end()
    worker.listening.reject(new Error(`a worker ended while it started (${String(why)})`))
    if (!this.#isDraining && !worker.isRetired) {
      this.#log.error({ pid: worker.process.pid, why }, 'a worker died and is replaced')
      void this.#replace(worker)
    }
  }

  async #replace(worker: Worker): Promise<void> {
    this.#quickDeaths = performance.now() - worker.startedAt > STABLE_AFTER_MS ? 0 : this.#quickDeaths + 1
    this.#restarts += 1
    await sleep(stepAt(RESPAWN_MS, this.#quickDeaths))
    if (this.#isDraining) return
    await this.#listenOn(this.#spawn()).catch((error: unknown) =>
      this.#log.error({ err: error }, 'a worker could not be started'),
    )
  }

  #listenOn(worker: Worker): Promise<Ports> {
    this.#tell(worker, { type: 'listen', address: this.#options.address, ...this.#ports })
    return worker.listening.promise
  }

  #tell(worker: Worker, message: ToWorker): void {
    if (worker.process.connected) worker.process.send(message, () => {})
  }

  /** A worker that dies meanwhile answers undefined: it starts again with nothing remembered. */
  #ask(worker: Worker, make: (id: number) => ToWorker): Promise<ToPrimary | undefined> {
    return worker.questions.ask((id) => this.#tell(worker, make(id)))
  }

  /** Those who do not answer in time must not hide those who do. */
  async #reportOf(worker: Worker, isScrape: boolean): Promise<Counters[]> {
    const asking = this.#ask(worker, (id) => ({ type: 'report', id, isScrape }))
    const answer = await Promise.race([asking, sleep(REPORT_MS, undefined, { ref: false })])
    return answer?.type === 'report' ? [answer.counters] : []
  }

  /**
   * One slow request must not cost the others on its worker their connections: another worker takes its place, and it
   * ends when they have. The primary still waits for its confirmations; its watchdog ends one that hangs.
   */
  #retireSlow(): void {
    for (const worker of this.#workers) {
      // One that is still being loaded serves no visitor, and how long that takes is the machine's affair.
      if (!worker.questions.isWaiting() || !worker.isListening || worker.isRetired || this.#isDraining) continue
      this.#log.error({ pid: worker.process.pid }, 'a worker is too slow: it takes no more connections and is replaced')
      worker.isRetired = true
      this.#tell(worker, { type: 'drain' })
      setTimeout(() => worker.process.kill('SIGKILL'), this.#options.config.drainMs + DRAIN_GRACE_MS).unref()
      void this.#replace(worker)
    }
  }
}
