/**
 * Children end with their supervisor, also when it is killed and can do nothing any more.
 *
 * 1. A guard, one small shell for each child, waits at a pipe that only the supervisor holds. When the kernel closes it,
 *    the guard ends the child: in order, and after seven seconds without mercy.
 * 2. A note in DATA_DIR/run says who the children are. A start that finds any of them alive (a guard was killed too)
 *    ends them before it begins.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { replaceFile } from '../../../../shared/secrets/whole-files.ts'
import { endFamily, isGone, isAlive, pidOf, startTimeOf } from './processes.ts'

export interface Guarded {
  readonly dataDir: string
  /** What the child is; one of each runs at a time. */
  readonly name: string
  /** What makes it end in order. */
  readonly signal: NodeJS.Signals
}

const GUARD = fileURLToPath(new URL('./guard.sh', import.meta.url))
/** As long as a guard waits. */
const GRACE_MS = 7000

const folderIn = (dataDir: string): string => path.join(dataDir, 'run')

/** Call it right after the child was started: what comes between the two calls may leave an orphan. */
export function endWithUs(child: ChildProcess, { dataDir, name, signal }: Guarded): void {
  const pid = pidOf(child)
  const startTime = startTimeOf(pid)
  if (startTime === undefined) return
  const guard = spawn('/bin/sh', [GUARD, String(pid), startTime, signal.replace('SIG', '')], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    // A process group of its own: what ends a whole group must leave someone who ends the rest.
    detached: true,
  })
  // Without a shell the note below still leads the next start to the child.
  guard.on('error', () => {})
  guard.stdin.on('error', () => {})
  child.once('exit', () => guard.kill('SIGKILL'))
  note(dataDir, name, { pid, startTime, boot: bootId(), signal })
}

interface Note {
  readonly pid: number
  readonly startTime: string
  /** Start times are counted from the boot of the machine. */
  readonly boot: string | undefined
  readonly signal: NodeJS.Signals
}

function note(dataDir: string, name: string, content: Note): void {
  try {
    mkdirSync(folderIn(dataDir), { recursive: true })
    replaceFile(path.join(folderIn(dataDir), `${name}.json`), JSON.stringify(content))
  } catch {
    // A full disk; the guard knows the child too.
  }
}

function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Ends children that outlived an earlier supervisor of this DATA_DIR. Returns how many there were. */
export async function endNoted(dataDir: string): Promise<number> {
  const orphans = readNotes(dataDir).filter(isStillRunning)
  await Promise.all(orphans.map(endOrphan))
  return orphans.length
}

async function endOrphan({ pid, signal }: Note): Promise<void> {
  try {
    process.kill(pid, signal)
  } catch {
    return
  }
  if (await isGone(pid, GRACE_MS)) return
  await Promise.all(endFamily(pid).map((each) => isGone(each, GRACE_MS)))
}

function isStillRunning({ pid, startTime, boot }: Note): boolean {
  return boot === bootId() && startTimeOf(pid) === startTime && isAlive(pid)
}

function readNotes(dataDir: string): Note[] {
  try {
    return readdirSync(folderIn(dataDir)).flatMap((file) => readNote(path.join(folderIn(dataDir), file)))
  } catch {
    return []
  }
}

/** A note that cannot be read leads to no one. */
function readNote(file: string): Note[] {
  try {
    return [JSON.parse(readFileSync(file, 'utf8')) as Note]
  } catch {
    return []
  }
}
