import { setTimeout as sleep } from 'node:timers/promises'
import { cpuMs } from '../../test/support/processes.ts'

/** A process that uses no more than this in a second has done what follows a publish. */
const CALM_CPU_MS = 40
const MOST_SECONDS = 300

/** Waits until a process has nothing left to do; not for ever. */
export async function untilCalm(pid: number): Promise<void> {
  for (let second = 0; second < MOST_SECONDS; second++) {
    const before = cpuMs(pid)
    await sleep(1000)
    if (cpuMs(pid) - before <= CALM_CPU_MS) return
  }
}
