/** A log in DATA_DIR/logs that cannot fill the disk: at its limit it becomes `<name>.log.1` and a new one begins. */
import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs'
import path from 'node:path'

const MAX_LOG_BYTES = 10_000_000

export function openLogFile(dataDir: string, name: string): (line: string) => void {
  const file = path.join(dataDir, 'logs', `${name}.log`)
  mkdirSync(path.dirname(file), { recursive: true })
  let bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return (line) => {
    try {
      if (bytes > MAX_LOG_BYTES) {
        renameSync(file, `${file}.1`)
        bytes = 0
      }
      appendFileSync(file, `${line}\n`)
      bytes += Buffer.byteLength(line) + 1
    } catch {
      // A full disk must not take the supervisor down with it.
    }
  }
}
