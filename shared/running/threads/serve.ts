/** The thread's side of the pool: one message in, one answer out. */
import { parentPort } from 'node:worker_threads'
import { ApiError } from '../../contracts/errors.ts'
import type { JobReply, SpentTime } from './pool.ts'

export function serveJobs<Job>(perform: (job: Job) => Promise<unknown>): void {
  const port = parentPort
  if (!port) throw new Error('must run in a worker thread')
  port.on('message', async (job: Job) => {
    const reply = await answer(perform, job)
    port.postMessage({ ...reply, spentMs: spentMs() } satisfies JobReply & SpentTime)
  })
}

/** Processor time of this thread since it began. It is a call to the kernel. */
export function spentMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

async function answer<Job>(perform: (job: Job) => Promise<unknown>, job: Job): Promise<JobReply> {
  try {
    return { kind: 'result', result: await perform(job) }
  } catch (error) {
    if (error instanceof ApiError)
      return { kind: 'refused', status: error.status, code: error.code, detail: error.message }
    if (!(error instanceof Error)) return { kind: 'failed', message: String(error), code: undefined }
    return { kind: 'failed', message: error.stack ?? error.message, code: (error as NodeJS.ErrnoException).code }
  }
}
