/** Files that a process was writing when it died. */
import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'

/** Removes the files of a folder that were last written before that time; returns how many. */
export async function sweepDrafts(folder: string, writtenBefore: number): Promise<number> {
  let removed = 0
  for (const name of await readdir(folder).catch(() => [])) {
    const facts = await stat(path.join(folder, name)).catch(() => undefined)
    if (!facts?.isFile() || facts.mtimeMs > writtenBefore) continue
    await rm(path.join(folder, name), { force: true })
    removed++
  }
  return removed
}
