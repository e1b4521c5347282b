/** What must be true before anything is started; each failure is one sentence that says what to do. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { memoryLimit } from '../../../shared/running/memory.ts'
import { isAlive, startTimeOf } from './processes/processes.ts'

/** A reason not to start that the operator can mend. Shown without a stack trace. */
export class StartRefused extends Error {}

const MB = 1_000_000

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

/** One supervisor per DATA_DIR. Returns how to give it back. */
export function lockDataDir(dataDir: string): () => void {
  const file = path.join(dataDir, 'supervisor.lock')
  const mine = `${process.pid} ${startTimeOf(process.pid)}\n`
  for (let attempt = 1; attempt <= 3; attempt++) {
    try {
      writeFileSync(file, mine, { flag: 'wx' })
      return () => rmSync(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const holder = holderOf(file)
    if (holder !== undefined) {
      throw new StartRefused(
        `Dropway already runs on ${dataDir} (process ${holder}). Stop it, or set DATA_DIR to another directory.`,
      )
    }
    // Left by a supervisor that was killed.
    rmSync(file, { force: true })
  }
  throw new StartRefused(`${file} cannot be taken. Is another start under way?`)
}

function holderOf(file: string): number | undefined {
  try {
    const [pid, startTime] = readFileSync(file, 'utf8').trim().split(' ')
    return isAlive(Number(pid)) && startTimeOf(Number(pid)) === startTime ? Number(pid) : undefined
  } catch {
    return undefined
  }
}
