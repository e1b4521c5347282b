/**
 * What this person did on this machine: which drops they linked folders and pages to. `.dropway.json` says the same and
 * travels with a repository, so that anyone may have written it; this record never leaves the person's own settings.
 * One small file per folder or page, so that two clients never write the same one.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { removeLeftovers, keepFile } from './kept-file.ts'

interface FolderLink {
  /** The drop that the person published to, chose, or said yes to. */
  readonly id?: string
  /** The slug of a drop that a deploy was about to make. */
  readonly making?: string
}

export interface FolderLinks {
  /** `name` is that of a page or a zip; without it the folder's own. */
  read(name?: string): FolderLink
  /** Where the settings cannot be written nothing is kept: the person is asked again. */
  write(link: FolderLink, name?: string): void
  remove(name?: string): void
}

export async function openLinks(configDir: string, service: string, folder: string): Promise<FolderLinks> {
  const place = await realpath(folder).catch(() => path.resolve(folder))
  const fileOf = (name = ''): string => {
    const key = createHash('sha256')
      .update(JSON.stringify([service, place, name]))
      .digest('hex')
    return path.join(configDir, 'links', `${key.slice(0, 32)}.json`)
  }
  return {
    read(name) {
      try {
        return JSON.parse(readFileSync(fileOf(name), 'utf8')) as FolderLink
      } catch {
        return {}
      }
    },
    write(link, name) {
      const file = fileOf(name)
      try {
        mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
        removeLeftovers(path.dirname(file), path.basename(file))
        keepFile(file, `${JSON.stringify({ service, folder: place, name, ...link })}\n`, 0o600)
      } catch (error) {
        if (!['EACCES', 'EROFS', 'EPERM', 'ENOSPC'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      }
    },
    remove: (name) => rmSync(fileOf(name), { force: true }),
  }
}
