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

/**
 * Dead, but its parent has not yet asked for the exit code. While other threads of a killed process still end, its first
 * one is marked like that already, and the process has its ports.
 */
function isZombie(pid: number): boolean {
  const fields = statFields(pid)
  return fields?.[0] === 'Z' && Number(fields[17]) <= 1
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

/** The operator stopped a start that was under way. */
export class StartCancelled extends Error {}

/** What the work results in, or a rejection as soon as the start is cancelled; the caller ends what the work began. */
export async function unlessCancelled<Result>(cancel: AbortSignal | undefined, work: Promise<Result>): Promise<Result> {
  if (!cancel) return work
  // A failure that comes after the cancellation concerns no one any more.
  work.catch(() => {})
  const over = new AbortController()
  const cancelled = new Promise<never>((_resolve, reject) => {
    const stop = (): void => reject(new StartCancelled('the start was stopped'))
    if (cancel.aborted) return stop()
    cancel.addEventListener('abort', stop, { signal: over.signal })
  })
  try {
    return await Promise.race([work, cancelled])
  } finally {
    over.abort()
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

/**
 * Kills a process, its group, and the groups of its children: workers of a plane have groups of their own. Returns who
 * they were; they end soon after.
 */
export function endFamily(pid: number): number[] {
  const family = [pid, ...childrenOf(pid)]
  for (const each of family) {
    killIfThere(-each)
    killIfThere(each)
  }
  return family
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** `target` as in kill(2): below zero it is a group. */
function killIfThere(target: number): void {
  try {
    process.kill(target, 'SIGKILL')
  } catch {
    // It has gone, or the group is empty.
  }
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
    if (await isGone(pid, graceMs)) return
  }
}

/** Waits for the end of a process, also of one that is not our child; false when it took too long. */
export async function isGone(pid: number, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (isAlive(pid)) {
    if (Date.now() > deadline) return false
    await sleep(10)
  }
  return true
}
