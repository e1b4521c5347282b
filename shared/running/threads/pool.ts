/**
 * Worker threads for work that would hold up all else on the event loop. One job at a time per thread; a job that
 * takes too long is ended together with its thread, and a new thread takes its place. A thread without work gives
 * its memory back by ending.
 *
 * Callers share the threads: each has a queue of its own (share-queue.ts), the queues take turns, and one caller never
 * holds all threads at once. A caller for whom nothing has happened for some seconds is told to come back.
 */
import { Worker } from 'node:worker_threads'
import { errors, type ApiError } from '../../contracts/errors.ts'
import { patiently } from '../../settings/patience.ts'
import { createShareQueue } from './share-queue.ts'

export interface PoolOptions {
  readonly script: URL
  readonly size: number
  /** Threads that one caller may hold at once; fewer than `size`, so that the next caller finds one. */
  readonly share: number
  /** Handed to every thread when it starts. */
  readonly workerData?: unknown
  /** Heap of one thread; a job that needs more fails, the process lives. */
  readonly maxHeapMb: number
  /** More waiting jobs than this are refused: the caller should come back later. */
  readonly maxWaiting: number
  /** A caller whose jobs have waited this long, while none of them ran, is refused. */
  readonly maxWaitMs: number
  /** A thread that has had nothing to do for this long is ended; without it, never. */
  readonly idleMs?: number
  /** What a caller who is refused hears. */
  readonly busyText?: string
}

export interface WorkerPool {
  /**
   * Rejects with JobTimeout, JobCrashed, JobFailed, an error of the catalogue that the job threw, or `unavailable`; with the
   * signal's reason when it is aborted before the job has begun.
   */
  run<Result>(job: unknown, terms: JobTerms): Promise<Result>
  close(): Promise<void>
}

export interface JobTerms {
  /** How much processor time the thread may use for one job. The clock allows more: a busy machine is not the job's fault. */
  readonly timeoutMs: number
  /** How much more the clock allows; two minutes unless told otherwise. */
  readonly patienceMs?: number
  /** Whose work it is: an account or a network. */
  readonly owner: string
  /** Aborted when the result is no longer wanted. A job that runs is finished. */
  readonly signal?: AbortSignal | undefined
}

/** What a thread keeps for objects that soon are garbage. Node would keep four times as much, which ten threads have each. */
const YOUNG_MB = 12

/** How much longer than its limit a job may take by the clock, where the machine gives its thread too little time. */
const PATIENCE_MS = 120_000

/** The job took too long. */
export class JobTimeout extends Error {}
/** The patience of its caller ended before it had its processor time; or it does not say how much it had. */
export class JobStarved extends JobTimeout {}
/** The thread died of it, mostly because its memory was full. */
export class JobCrashed extends Error {}
/** The job threw. The code tells a full disk from a mistake of ours. */
export class JobFailed extends Error {
  readonly code: string | undefined
  constructor(message: string, code: string | undefined) {
    super(message)
    this.code = code
  }
}

/** With every answer: processor time of the thread since it began. */
export interface SpentTime {
  readonly spentMs: number
}

/** What a thread answers. Errors of the catalogue keep their code across the border. */
export type JobReply =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'refused'; readonly status: number; readonly code: string; readonly detail: string }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined }

interface Task {
  readonly owner: string
  readonly job: unknown
  readonly timeoutMs: number
  readonly patienceMs: number
  /** It waits no longer: it begins, or is given up. */
  leaveQueue(): void
  resolve(result: unknown): void
  reject(error: Error): void
}

/** A thread and the task it is at; the timer ends the task, or the idle thread. */
interface Thread {
  readonly worker: Worker
  task: Task | undefined
  timer: NodeJS.Timeout | undefined
  /** Processor time of the thread when it had its last answer ready. */
  spentMs: number
}

export function createWorkerPool(options: PoolOptions): WorkerPool {
  const queue = createShareQueue<Task>({
    share: options.share,
    maxWaitMs: patiently(options.maxWaitMs),
    onGivenUp(task) {
      task.leaveQueue()
      task.reject(busy(options))
    },
  })
  const threads = new Set<Thread>()
  let closed = false

  function openThread(): Thread {
    const worker = new Worker(options.script, {
      workerData: options.workerData,
      resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMb, maxYoungGenerationSizeMb: YOUNG_MB },
    })
    const thread: Thread = { worker, task: undefined, timer: undefined, spentMs: 0 }
    worker.on('message', ({ spentMs, ...reply }: JobReply & SpentTime) => {
      thread.spentMs = spentMs
      finish(thread, (task) => settle(task, reply as JobReply))
    })
    worker.on('error', (error) => retire(thread, new JobCrashed(String(error))))
    worker.on('exit', (code) => retire(thread, new JobCrashed(`the thread ended with code ${code}`)))
    threads.add(thread)
    return thread
  }

  function dispatch(): void {
    for (;;) {
      const idle = [...threads].find((thread) => thread.task === undefined)
      if (!idle && threads.size >= options.size) return
      const task = queue.take()
      if (!task) return
      begin(idle ?? openThread(), task)
    }
  }

  function begin(thread: Thread, task: Task): void {
    clearTimeout(thread.timer)
    task.leaveQueue()
    thread.task = task
    thread.worker.ref()
    thread.worker.postMessage(task.job)
    limit(thread, task)
  }

  /** Ends the task when its thread has worked for `timeoutMs` on it, or when it has had no chance to and patience ends. */
  function limit(thread: Thread, task: Task): void {
    const latest = performance.now() + task.timeoutMs + task.patienceMs
    const giveUp = (): void => retire(thread, new JobStarved(`no result ${task.patienceMs} ms after its limit`))
    const look = async (): Promise<void> => {
      // A thread that is deep in native code does not say.
      thread.timer = setTimeout(giveUp, latest - performance.now())
      const leftMs = task.timeoutMs - ((await processorMsOf(thread.worker)) - thread.spentMs)
      if (thread.task !== task) return
      clearTimeout(thread.timer)
      if (leftMs <= 0) return retire(thread, new JobTimeout(`no result after ${task.timeoutMs} ms`))
      if (performance.now() >= latest) return giveUp()
      thread.timer = setTimeout(() => void look(), Math.min(leftMs, latest - performance.now()))
    }
    thread.timer = setTimeout(() => void look(), task.timeoutMs)
  }

  function finish(thread: Thread, conclude: (task: Task) => void): void {
    const task = thread.task
    clearTimeout(thread.timer)
    thread.task = undefined
    // An idle thread must not keep the process alive.
    thread.worker.unref()
    if (options.idleMs !== undefined && threads.has(thread))
      thread.timer = setTimeout(() => retire(thread, new JobCrashed('the thread was idle')), options.idleMs).unref()
    if (task) {
      queue.release(task.owner)
      conclude(task)
    }
    dispatch()
  }

  /** Ends a thread that failed, took too long or is idle. It may still report an error or its exit: by then it has no task. */
  function retire(thread: Thread, error: Error): void {
    if (!threads.delete(thread)) return
    void thread.worker.terminate()
    finish(thread, (task) => task.reject(error))
  }

  return {
    run(job, { timeoutMs, patienceMs = PATIENCE_MS, owner, signal }) {
      if (closed) return Promise.reject(new JobCrashed('the pool is closed'))
      if (signal?.aborted) return Promise.reject(signal.reason as Error)
      if (queue.size >= options.maxWaiting) return Promise.reject(busy(options))
      return new Promise((resolve, reject) => {
        const drop = (): void => {
          if (queue.remove(owner, task)) reject(signal?.reason as Error)
        }
        const leaveQueue = (): void => signal?.removeEventListener('abort', drop)
        const task: Task = { owner, job, timeoutMs, patienceMs, leaveQueue, resolve, reject }
        signal?.addEventListener('abort', drop, { once: true })
        queue.add(owner, task)
        dispatch()
      })
    },
    async close() {
      closed = true
      for (const task of queue.drain()) task.reject(new JobCrashed('the pool is closed'))
      const open = [...threads]
      for (const thread of open) retire(thread, new JobCrashed('the pool is closed'))
      await Promise.all(open.map((thread) => thread.worker.terminate()))
    },
  }
}

/** A thread that has not begun, or has just ended, does not say; the end of one is told by its `exit`. */
async function processorMsOf(worker: Worker): Promise<number> {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    return 0
  }
}

/** What a caller hears of a job that did not end: `refusal`, unless the machine had no time for it. Other errors stay. */
export function ofUnfinished(error: unknown, refusal: () => ApiError): unknown {
  if (error instanceof JobStarved)
    return errors.unavailable('The service is too busy right now. Try again in a moment.')
  return error instanceof JobTimeout || error instanceof JobCrashed ? refusal() : error
}

function busy({ busyText = 'Too many uploads are being prepared. Try again in a moment.' }: PoolOptions): ApiError {
  return errors.unavailable(busyText)
}

function settle(task: Task, reply: JobReply): void {
  switch (reply.kind) {
    case 'result':
      return task.resolve(reply.result)
    case 'refused':
      return task.reject(errors.relayed(reply))
    case 'failed':
      return task.reject(new JobFailed(reply.message, reply.code))
    default:
      reply satisfies never
  }
}
