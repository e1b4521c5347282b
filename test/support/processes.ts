/** Processes of tests and benches: which core they run on, how much CPU they took by the kernel's own count, how to freeze them. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Linux counts CPU time in hundredths of a second. */
const TICK_MS = 10

/** A process and everything below it. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

/** Of one that has ended meanwhile: none. */
function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return children === '' ? [] : children.split(' ').map(Number)
  } catch {
    return []
  }
}

/** Neither gone nor dead and only waiting to be asked for its exit code. */
export function isRunning(pid: number): boolean {
  try {
    return !/[ZX]/.test(stateOf(pid))
  } catch {
    return false
  }
}

/** Asks again and again; fails after far more time than it ever takes. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let attempt = 0; !(await holds()); attempt++) {
    if (attempt === UNTIL_ATTEMPTS) throw new Error(`waited in vain for ${what}`)
    await sleep(20)
  }
}

/** A minute and a half, on a machine that has time. */
const UNTIL_ATTEMPTS = 4500

/** Stops a process, then everything below it: one that stands has no new children. Returns how to let them go on. */
export function freeze(pid: number): () => void {
  const stopped: number[] = []
  const stop = (each: number): void => {
    process.kill(each, 'SIGSTOP')
    while (!/[TZ]/.test(stateOf(each))) continue
    stopped.push(each)
    for (const child of childrenOf(each)) stop(child)
  }
  stop(pid)
  return () => {
    for (const each of stopped) process.kill(each, 'SIGCONT')
  }
}

/** Processor time of a process and all below it, those that have ended included: sums do not fall. */
export function cpuMs(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + cpuOf(each), 0)
}

/** utime and stime, and those of children that it has waited for, cutime and cstime. */
function cpuOf(pid: number): number {
  const own = statOf(pid).slice(11, 15)
  return own.reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS
}

function stateOf(pid: number): string {
  return statOf(pid)[0]!
}

/** The name in parentheses may contain spaces; fields are counted behind it. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

export function pinToCore(pid: number, core: number): void {
  for (const each of processTree(pid))
    execFileSync('taskset', ['-acp', String(core), String(each)], { stdio: 'ignore' })
}

export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1000
}

/** What a process takes of memory, where pages that several share count in parts. */
export function proportionalMb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1000
}

/** What a process has made itself, without the pages of files that it maps, which the kernel takes back when it needs them. */
export function anonymousMb(pid: number): number {
  return Number(/^Anonymous:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))![1]) / 1000
}

/** What a process shares with no other: what would be free without it. */
export function privateMb(pid: number): number {
  const parts = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').matchAll(/^Private_\w+:\s+(\d+)/gm)
  return [...parts].reduce((sum, [, kb]) => sum + Number(kb), 0) / 1000
}
