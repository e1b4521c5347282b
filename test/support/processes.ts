/** Processes of tests and benches: which core they run on, how much CPU they took by the kernel's own count, how to freeze them. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Linux counts CPU time in hundredths of a second. */
const TICK_MS = 10

/** A process and everything below it. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return children === '' ? [] : children.split(' ').map(Number)
}

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

export function cpuMs(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + cpuOf(each), 0)
}

function cpuOf(pid: number): number {
  const fields = statOf(pid)
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
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
