/** DATA_DIR: there, ours to write, and closed to every other user of the machine. */
import { accessSync, chmodSync, constants, existsSync, lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { FORMER_LOCK_FILE, LOCK_FILE, SetUpRefused, StartRefused } from './preflight.ts'

/** Everything that group and others may do. */
const OTHERS = 0o077
/** Some of what earlier starts leave in a DATA_DIR: it is Dropway's own folder then, whatever else lies there. */
const OUR_MARKS = ['secret.key', 'postgres', 'services.json', LOCK_FILE, FORMER_LOCK_FILE, 'redis']

export function prepareDataDir(dataDir: string): void {
  try {
    makeDirectory(dataDir)
    // The slash makes it fail on anything but a directory.
    accessSync(`${dataDir}/`, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new StartRefused(
      `DATA_DIR ${dataDir} cannot be used: ${reasonOf(error)}. Set DATA_DIR to a directory that you can write to.`,
    )
  }
  closeToOthers(dataDir)
}

/**
 * A folder that others may enter is closed if it is Dropway's own, with everything that an earlier release left open in
 * it. Anything else is not ours to close: `DATA_DIR=/tmp` must not take /tmp away from the machine.
 */
function closeToOthers(dataDir: string): void {
  const { mode, uid } = statSync(dataDir)
  if ((mode & OTHERS) === 0) return
  const names = readdirSync(dataDir)
  const isOurs = names.length === 0 || OUR_MARKS.some((mark) => names.includes(mark))
  const own = process.getuid?.()
  if (!isOurs || (uid !== own && own !== 0))
    throw new SetUpRefused(
      `DATA_DIR ${dataDir} is open to other users and not Dropway's own. Set DATA_DIR to a directory of its own, or close it: chmod 700 ${dataDir}`,
    )
  closeTree(dataDir)
}

/** From the top, so that no other user gets in meanwhile. */
function closeTree(file: string): void {
  const stats = lstatSync(file)
  if (stats.isSymbolicLink()) return
  if ((stats.mode & OTHERS) !== 0) chmodSync(file, stats.mode & ~OTHERS & 0o7777)
  if (stats.isDirectory()) for (const name of readdirSync(file)) closeTree(path.join(file, name))
}

/** Step by step: Node's recursive mkdir never returns on a file system that refuses with ENOENT, such as /proc. */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return
  makeDirectory(path.dirname(directory))
  mkdirSync(directory)
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'permission denied'
    case 'ENOTDIR':
    case 'EEXIST':
      return 'it is not a directory'
    case 'ENOENT':
      return 'it cannot be created'
    case 'EROFS':
      return 'the file system is read-only'
    case 'ENOSPC':
      return 'the disk is full'
    default:
      return message
  }
}
