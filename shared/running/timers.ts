/** Time as the publish path uses it. Handed in, so that a simulation can run hours of it in a millisecond. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Timers {
  /** Milliseconds since some moment; never goes back. */
  now(): number
  sleep(ms: number): Promise<void>
  /** What the work comes to, or undefined once so much time has passed. Nothing wakes the process for work that is done. */
  within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined>
  /** Calls `work` again and again until the returned function is called. */
  every(ms: number, work: () => void): () => void
}

/** Waiting in here keeps no process alive. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  sleep: (ms) => sleep(ms, undefined, { ref: false }),
  within: (ms, work) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(undefined), ms).unref()
      work.then(resolve, reject).finally(() => clearTimeout(timer))
    }),
  every(ms, work) {
    const timer = setInterval(work, ms)
    return () => clearInterval(timer)
  },
}
