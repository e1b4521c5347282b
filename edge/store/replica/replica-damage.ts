/**
 * Whether the replica can be read. A disk that lies or a file that was cut short is nothing that LMDB survives: it is
 * native code over a mapped file, and ends the process. So before an edge opens it, another process reads all of it
 * (300,000 routes: half a second), and what that one dies of is set aside: the replica is only a copy.
 */
import { execFile } from 'node:child_process'
import { existsSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { openReplica } from './replica.ts'

/** As an argument of the edge's program: be the process that reads. */
export const CHECK_REPLICA = 'check-replica'
const DAMAGED_EXIT_CODE = 3
/** What native code dies of. Not among them: whatever ends a process from outside. */
const CRASHES: ReadonlySet<unknown> = new Set(['SIGSEGV', 'SIGBUS', 'SIGABRT', 'SIGILL', 'SIGFPE'])
/** A slow disk is no damage: what takes longer is opened as it is. */
const CHECK_TIMEOUT_MS = 30_000

/** Says what is wrong; undefined also when something else kept us from knowing. A good replica is never given up. */
export async function findDamage(dir: string, program: string): Promise<string | undefined> {
  if (!existsSync(dataFile(dir))) return undefined
  try {
    const limit = { timeout: CHECK_TIMEOUT_MS, killSignal: 'SIGKILL' } as const
    await promisify(execFile)(process.execPath, [...process.execArgv, program, CHECK_REPLICA], limit)
    return undefined
  } catch (error) {
    const { code, signal, stderr } = error as { code?: unknown; signal?: unknown; stderr?: string }
    if (code === DAMAGED_EXIT_CODE) return stderr?.trim() ?? ''
    return CRASHES.has(signal) ? `reading it ended with ${String(signal)}` : undefined
  }
}

/** The other process. */
export async function checkReplica(dir: string): Promise<void> {
  try {
    const replica = openReplica(dir, { readOnly: false })
    replica.readAll()
    await replica.close()
  } catch (error) {
    if (!isDamage(error)) throw error
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = DAMAGED_EXIT_CODE
  }
}

/** LMDB numbers its own errors below zero; those of the system (no space, no permission) are above. */
function isDamage(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'number' && code < 0
}

/** The last damaged file is kept for the operator; returns its name. */
export function setAside(dir: string): string {
  const kept = `${dataFile(dir)}.damaged`
  renameSync(dataFile(dir), kept)
  rmSync(path.join(dir, 'lock.mdb'), { force: true })
  return kept
}

function dataFile(dir: string): string {
  return path.join(dir, 'data.mdb')
}
