/** What the control plane does by itself, every `jobIntervalMs`. A failing job is logged and tried again next time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../shared/log.ts'

export interface Job {
  readonly name: string
  run(): Promise<unknown>
}

export function createJobs({ jobs, intervalMs, log }: { jobs: readonly Job[]; intervalMs: number; log: Log }) {
  const stopping = new AbortController()
  let loop: Promise<void> = Promise.resolve()

  async function runAll(): Promise<void> {
    for (const job of jobs) {
      if (stopping.signal.aborted) return
      await job.run().catch((error: unknown) => log.warn({ err: error, job: job.name }, 'job failed; it runs again'))
    }
  }

  async function runForEver(): Promise<void> {
    while (!stopping.signal.aborted) {
      await runAll()
      await sleep(intervalMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  return {
    runAll,
    start(): void {
      loop = runForEver()
    },
    async stop(): Promise<void> {
      stopping.abort()
      await loop
    },
  }
}
