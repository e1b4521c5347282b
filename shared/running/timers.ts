/** Time as the publish path uses it. Handed in, so that a simulation can run hours of it in a millisecond. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Timers {
  /** Milliseconds since some moment; never goes back. */
  now(): number
  sleep(ms: number): Promise<void>
  /** Calls `work` again and again until the returned function is called. */
  every(ms: number, work: () => void): () => void
}

/** Waiting in here keeps no process alive. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  sleep: (ms) => sleep(ms, undefined, { ref: false }),
  every(ms, work) {
    const timer = setInterval(work, ms)
    return () => clearInterval(timer)
  },
}
