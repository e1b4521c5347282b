/** One thing that the supervisor keeps running: a service or a plane. */
import { setTimeout as sleep } from 'node:timers/promises'
import { stepAt, type Steps } from '../../../../shared/running/steps.ts'
import type { Report } from '../report.ts'

/** `hurried`: nothing has begun yet that is worth waiting for; over within two seconds or three. */
export type StopPace = 'orderly' | 'hurried'

export interface Running {
  readonly pid: number
  /** Settles when the process has gone, for whatever reason. */
  readonly exited: Promise<void>
  stop(pace?: StopPace): Promise<void>
}

export interface Unit {
  readonly name: string
  /** Pid of the process that runs now; undefined between a crash and the restart. */
  readonly pid: number | undefined
  stop(pace?: StopPace): Promise<void>
}

/** Waits before the 1st, 2nd, … restart. A unit that then lives long enough starts again from the first. */
const RESTART_DELAYS_MS: Steps = [0, 200, 1000, 5000, 15_000]
const HEALTHY_AFTER_MS = 30_000

export interface KeepRunningOptions {
  readonly name: string
  /** Rejects, with nothing left behind, when the signal is aborted before it is done. */
  start(cancel: AbortSignal): Promise<Running>
  readonly report: Report
  /** Aborted when the operator wants everything to end: nothing is begun after that. */
  readonly cancel?: AbortSignal
  /** Called after each start and each end of the process. */
  onChange(): void
  /** How a pause before a restart is made; it ends early when the signal is aborted. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

const realPause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal }).catch(() => {})

/** Starts it, failing when the first start fails; from then on a crash is followed by a restart until `stop`. */
export async function keepRunning({
  name,
  start,
  report,
  onChange,
  pause = realPause,
  cancel,
}: KeepRunningOptions): Promise<Unit> {
  const stopping = new AbortController()
  cancel?.addEventListener('abort', () => stopping.abort())
  let running: Running | undefined = await start(cancel ?? stopping.signal)

  /** What cannot be noted, on a full disk, is no reason to let go of what runs. */
  function changed(): void {
    try {
      onChange()
    } catch (error) {
      report.problem(name, error)
    }
  }

  async function watch(): Promise<void> {
    let crashes = 0
    while (!stopping.signal.aborted) {
      const startedAt = Date.now()
      await running?.exited
      if (stopping.signal.aborted) return
      running = undefined
      changed()
      crashes = Date.now() - startedAt > HEALTHY_AFTER_MS ? 1 : crashes + 1
      const delayMs = stepAt(RESTART_DELAYS_MS, crashes - 1)
      report.crashed(name, delayMs)
      await pause(delayMs, stopping.signal)
      if (stopping.signal.aborted) return
      await restart()
    }
  }

  async function restart(): Promise<void> {
    try {
      running = await start(stopping.signal)
      report.restarted(name)
      changed()
    } catch (error) {
      if (!stopping.signal.aborted) report.problem(name, error)
    }
  }

  const watching = watch()
  return {
    name,
    get pid() {
      return running?.pid
    },
    async stop(pace) {
      stopping.abort()
      await running?.stop(pace)
      // A restart may have been under way when we were asked to stop.
      await watching
      await running?.stop(pace)
    },
  }
}
