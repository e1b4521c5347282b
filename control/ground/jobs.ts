/**
 * What the control plane does by itself, every `jobIntervalMs`, one after the other: what may take long gets a loop of
 * its own. A failing job is logged and tried again next time.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND_MS } from '../../shared/running/clock.ts'
import type { Log } from '../../shared/running/log.ts'
import type { JobRecords } from './watching/job-records.ts'

export interface Job {
  readonly name: string
  /** For work that looks at everything there is: not more often than this. */
  readonly atMostEveryMs?: number
  /** How long a run may take without anyone wondering; its interval, where that is longer. */
  readonly mayTakeMs?: number
  /** A long run ends early when it is told that the control stops. */
  run(stopping: AbortSignal): Promise<unknown>
}

export interface Jobs {
  start(): void
  /** Resolves when the job under way has ended. */
  stop(): Promise<void>
}

export function createJobs({
  jobs,
  intervalMs,
  log,
  records,
}: {
  readonly jobs: readonly Job[]
  readonly intervalMs: number
  readonly log: Log
  /** What came of each run, for monitors. */
  readonly records?: JobRecords
}): Jobs {
  const stopping = new AbortController()
  let loop: Promise<void> = Promise.resolve()

  const startedAt = new Map<Job, number>()

  function isDue(job: Job): boolean {
    const last = startedAt.get(job)
    return last === undefined || performance.now() - last >= (job.atMostEveryMs ?? 0)
  }

  async function runDue(): Promise<void> {
    for (const job of jobs.filter(isDue)) {
      if (stopping.signal.aborted) return
      startedAt.set(job, performance.now())
      const began = performance.now()
      try {
        await job.run(stopping.signal)
        records?.succeeded(job.name, (performance.now() - began) / SECOND_MS)
      } catch (error) {
        records?.failed(job.name)
        log.warn({ err: error, job: job.name }, 'job failed; it runs again')
      }
    }
  }

  async function runForEver(): Promise<void> {
    while (!stopping.signal.aborted) {
      await runDue()
      await sleep(intervalMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  return {
    start(): void {
      for (const { name, atMostEveryMs = 0, mayTakeMs = 0 } of jobs)
        records?.expect(name, Math.max(intervalMs, atMostEveryMs, mayTakeMs))
      loop = runForEver()
    },
    async stop(): Promise<void> {
      stopping.abort()
      await loop
    },
  }
}
