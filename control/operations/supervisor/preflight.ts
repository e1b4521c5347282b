/** What must be true before anything is started; each failure is one sentence that says what to do. */
import net from 'node:net'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryLimit } from '../../../shared/running/memory.ts'

/** A reason not to start that the operator can mend. Shown without a stack trace. */
export class StartRefused extends Error {}

const MB = 1_000_000
/** Held while a supervisor runs. */
export const LOCK_FILE = 'supervisor.held'
const SQLITE_BUSY = 5

/** Refuses a start that the kernel would end later, again and again, when people use it. */
export function requireMemory(minimumMb: number, availableBytes = memoryLimit()): void {
  if (availableBytes >= minimumMb * MB) return
  throw new StartRefused(
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
    if (twin) throw new StartRefused(`${twin.setting} and ${setting} are both ${port}. Give each its own port.`)
    const code = await listenError(port, address)
    if (code === 'EADDRINUSE') {
      throw new StartRefused(
        `Port ${port} is already in use. Stop the program that has it, or set ${setting} to another port.`,
      )
    }
    if (code === 'EACCES') {
      throw new StartRefused(
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
 * One supervisor per DATA_DIR, in whichever containers they run: a process id would mean nothing in another one. The kernel
 * holds the lock for as long as its process is there, running or stopped. Node can ask for one through SQLite alone; the
 * file stays empty, and stays. Returns how to give it back.
 */
export function lockDataDir(dataDir: string): () => void {
  const lock = new DatabaseSync(path.join(dataDir, LOCK_FILE))
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    throw new StartRefused(
      `Dropway already runs on ${dataDir}, here or in another container. Stop it, or set DATA_DIR to another directory.`,
    )
  }
  return () => lock.close()
}
