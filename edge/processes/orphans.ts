/**
 * Workers whose primary died: they go on serving for a few seconds, until the next primary's workers listen beside them.
 * A list on disk tells the next primary who they are, so that it neither takes them for another edge on its ports nor
 * leaves them behind.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

interface KnownProcess {
  readonly pid: number
  /** A pid alone may have been given to another process since. */
  readonly startedAt: string
}

interface WorkerList {
  readonly primary: KnownProcess
  readonly workers: readonly KnownProcess[]
}

const fileIn = (directory: string): string => path.join(directory, 'workers.json')

/** Who serves now, for the primary that comes after this one. */
export function noteWorkers(directory: string, pids: readonly number[]): void {
  const primary = known(process.pid)
  if (!primary) return
  const list: WorkerList = { primary, workers: pids.flatMap((pid) => known(pid) ?? []) }
  try {
    writeFileSync(fileIn(directory), JSON.stringify(list), { mode: 0o600 })
  } catch {
    // Then the next primary waits until they have gone by themselves.
  }
}

/** Workers that still run although their primary does not. */
export function findOrphans(directory: string): number[] {
  try {
    const { primary, workers } = JSON.parse(readFileSync(fileIn(directory), 'utf8')) as WorkerList
    return isRunning(primary) ? [] : workers.filter(isRunning).map(({ pid }) => pid)
  } catch {
    return []
  }
}

function known(pid: number): KnownProcess | undefined {
  const startedAt = startTimeOf(pid)
  return startedAt === undefined ? undefined : { pid, startedAt }
}

function isRunning({ pid, startedAt }: KnownProcess): boolean {
  return startTimeOf(pid) === startedAt
}

/** Field 22 of /proc/<pid>/stat; the second is a name that may contain spaces. A dead, unreaped child is gone. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' ? undefined : fields[18]
  } catch {
    return undefined
  }
}
