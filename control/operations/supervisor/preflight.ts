/** What must be true before anything is started; each failure is one sentence that says what to do. */
import { rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND_MS } from '../../../shared/running/clock.ts'
import { memoryLimit } from '../../../shared/running/memory.ts'
import { readIfThere, readOrCreate } from '../../../shared/secrets/whole-files.ts'
import { isAlive, startTimeOf } from './processes/processes.ts'

/** A reason not to start that the operator can mend. Shown without a stack trace. */
export class StartRefused extends Error {}

/** One that every start meets until the operator has changed something. Other refusals may pass: a port gets free, a disk is mounted. */
export class SetUpRefused extends StartRefused {}

/** Another supervisor has DATA_DIR, or seems to. */
class DataDirHeld extends StartRefused {}

const MB = 1_000_000
/** Held while a supervisor runs. */
export const LOCK_FILE = 'supervisor.held'
/**
 * Names the supervisor that runs by process id and start time: the only lock of 0.1.0's earlier checkouts. It is read and
 * written for an upgrade from them and for the way back, and goes with the release after 0.1.0.
 */
export const FORMER_LOCK_FILE = 'supervisor.lock'
/** The third word of a former lock that this release wrote. Readers of the earlier checkouts take the first two. */
const HELD_BY_KERNEL = 'held'
/** A supervisor that was just killed is gone by then, and so is most of what an orderly stop takes. */
const HELD_PATIENCE_MS = 5 * SECOND_MS
const LOOK_AGAIN_MS = 100
const SQLITE_BUSY = 5
const SQLITE_CANTOPEN = 14

/** Refuses a start that the kernel would end later, again and again, when people use it. */
export function requireMemory(minimumMb: number, availableBytes = memoryLimit()): void {
  if (availableBytes >= minimumMb * MB) return
  throw new SetUpRefused(
    `Dropway needs ${minimumMb} MB of memory and has ${Math.floor(availableBytes / MB)} MB here. Give it more, run the planes on several machines, or set MIN_MEMORY_MB to try with less.`,
  )
}

export interface WantedPort {
  /** The setting that names it. */
  readonly setting: string
  readonly port: number
  /** Undefined: every address of this machine. */
  readonly address: string | undefined
}

/** Refuses a port that another program has, or that we may not have, before anything is started. */
export async function requireFreePorts(wanted: readonly WantedPort[]): Promise<void> {
  for (const [index, { setting, port, address }] of wanted.entries()) {
    if (port === 0) continue
    const twin = wanted.slice(0, index).find((other) => other.port === port)
    if (twin) throw new SetUpRefused(`${twin.setting} and ${setting} are both ${port}. Give each its own port.`)
    const code = await listenError(port, address)
    if (code === 'EADDRINUSE') {
      throw new StartRefused(
        `Port ${port} is already in use. Stop the program that has it, or set ${setting} to another port.`,
      )
    }
    if (code === 'EACCES') {
      throw new SetUpRefused(
        `Port ${port} needs more rights than you have. Set ${setting} to a port above 1023, or start as root.`,
      )
    }
    if (code !== undefined) throw new StartRefused(`Port ${port} (${setting}) cannot be used: ${code}.`)
  }
}

function listenError(port: number, address: string | undefined): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    server.listen({ port, host: address }, () => server.close(() => resolve(undefined)))
  })
}

/**
 * awaitDataDir locks as lockDataDir does, and waits a little for a holder that may just be ending: who stops a service and
 * starts it again, or whose system does, should not be refused.
 */
export async function awaitDataDir(
  dataDir: string,
  cancel: AbortSignal,
  patienceMs = HELD_PATIENCE_MS,
): Promise<() => void> {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    try {
      return lockDataDir(dataDir)
    } catch (error) {
      if (!(error instanceof DataDirHeld) || performance.now() >= giveUpAt) throw error
    }
    await sleep(LOOK_AGAIN_MS, undefined, { signal: cancel })
  }
}

/**
 * One supervisor per DATA_DIR, in whichever containers they run: a process id would mean nothing in another one. The kernel
 * holds the lock for as long as its process is there, running or stopped. Node can ask for one through SQLite alone; the
 * file stays empty, and stays. Returns how to give it back.
 */
export function lockDataDir(dataDir: string): () => void {
  const lock = takeKernelLock(dataDir)
  try {
    const giveBack = takeFormerLock(dataDir)
    return () => {
      giveBack()
      lock.close()
    }
  } catch (error) {
    lock.close()
    throw error
  }
}

function takeKernelLock(dataDir: string): DatabaseSync {
  const file = path.join(dataDir, LOCK_FILE)
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(file)
    // A journal beside the file would need room, which a full disk has not.
    lock.exec('pragma journal_mode = memory; begin exclusive')
    return lock
  } catch (error) {
    lock?.close()
    switch ((error as { errcode?: number }).errcode) {
      // SQLite says so too where the kernel has no lock to give (ENOLCK, EACCES).
      case SQLITE_BUSY:
        throw new DataDirHeld(
          `Dropway already runs on ${dataDir}, here or in another container, or this file system has no locks. Stop it, or set DATA_DIR to another directory.`,
        )
      case SQLITE_CANTOPEN:
        throw new StartRefused(
          `${file} cannot be opened. Free some space if its disk is full, or give the file to the user that runs Dropway.`,
        )
      default:
        throw error
    }
  }
}

/** Refuses beside a supervisor that has no other lock. Callers hold the kernel's: no start of this release comes between. */
function takeFormerLock(dataDir: string): () => void {
  const file = path.join(dataDir, FORMER_LOCK_FILE)
  if (formerHolder(file) === undefined) noteFormerLock(file)
  // Read again: an earlier checkout that started in between wrote it first.
  const holder = formerHolder(file)
  if (holder !== undefined) {
    throw new DataDirHeld(
      `Dropway already runs on ${dataDir} (process ${holder}). Stop it, or set DATA_DIR to another directory.`,
    )
  }
  return () => rmSync(file, { force: true })
}

function noteFormerLock(file: string): void {
  rmSync(file, { force: true })
  try {
    readOrCreate(file, () => `${process.pid} ${startTimeOf(process.pid)} ${HELD_BY_KERNEL}\n`)
  } catch (error) {
    // A full disk is no reason not to start: the kernel's lock holds.
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** The living supervisor that a former lock names. One of this release would hold the kernel's lock, so its note is a leftover. */
function formerHolder(file: string): number | undefined {
  const [id, startTime, by] = (readIfThere(file) ?? '').trim().split(' ')
  const pid = Number(id)
  const isRunning = pid > 0 && by !== HELD_BY_KERNEL && isAlive(pid) && startTimeOf(pid) === startTime
  return isRunning ? pid : undefined
}
