/** Processes of a bench: which core they run on, and how much CPU they took, from the kernel's own count. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Linux counts CPU time in hundredths of a second. */
const TICK_MS = 10

/** A process and everything below it. */
export function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => processTree(Number(child))))]
}

export function cpuMs(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + cpuOf(each), 0)
}

function cpuOf(pid: number): number {
  // The name in parentheses may contain spaces; fields are counted behind it.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

export function pinToCore(pid: number, core: number): void {
  for (const each of processTree(pid))
    execFileSync('taskset', ['-acp', String(core), String(each)], { stdio: 'ignore' })
}

export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1000
}
