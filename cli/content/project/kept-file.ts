/** Small files of the client's own, of which a process that is killed leaves the old one or the new one, never half of it. */
import { type Dirent, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** Nothing else runs between the two steps, so that Ctrl-C finds no temporary file. */
export function keepFile(file: string, text: string, mode = 0o666): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return
  const temporary = `${file}.${process.pid}`
  try {
    writeFileSync(temporary, text, { mode })
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Removes what clients that were killed between the two steps of `keepFile` have left beside files of this name. */
export function removeLeftovers(folder: string, name: string): void {
  for (const entry of entriesOf(folder)) {
    const pid = entry.name.startsWith(`${name}.`) ? entry.name.slice(name.length + 1) : ''
    if (/^\d{1,10}$/.test(pid) && entry.isFile() && !isRunning(Number(pid)))
      rmSync(path.join(folder, entry.name), { force: true })
  }
}

/** Nothing where the folder cannot be read: that is told by whoever needs what is in it. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
