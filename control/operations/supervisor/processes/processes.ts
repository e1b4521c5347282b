/** Processes: children of ours, and what /proc tells about those that we may not have started ourselves. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Dead, but its parent has not yet asked for the exit code. */
function isZombie(pid: number): boolean {
  return statFields(pid)?.[0] === 'Z'
}

/** A pid alone may have been reused; together with the start time it names one process. */
export function startTimeOf(pid: number): string | undefined {
  return statFields(pid)?.[19]
}

/** Fields of /proc/<pid>/stat from the third (state) on; the second is a name that may contain spaces. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

export function workingDirectoryOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}

export interface StopStep {
  readonly signal: NodeJS.Signals
  /** How long the process may take before the next step. */
  readonly graceMs: number
}

/** A child that was started with pipes for what it says. */
export interface PipedChild extends ChildProcess {
  stdout: Readable
  stderr: Readable
}

/** The number of a process that runs or has run; throws for a program that could not be started. */
export function pidOf({ pid, spawnfile }: ChildProcess): number {
  if (pid === undefined) throw new Error(`${spawnfile} could not be started`)
  return pid
}

/** Sends each signal in turn until the process has gone. Works for a process that is not our child, too. */
export async function endProcess(pid: number, steps: readonly StopStep[]): Promise<void> {
  for (const { signal, graceMs } of steps) {
    if (!isAlive(pid)) return
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    if (await hasEnded(pid, graceMs)) return
  }
}

async function hasEnded(pid: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (isAlive(pid)) {
    if (Date.now() > deadline) return false
    await sleep(10)
  }
  return true
}
