/**
 * `.dropway.json`: which drop a folder or a page belongs to. Meant to be committed; holds no secrets. Since anyone may
 * have written it, what it says is a proposal until this person has linked the folder on this machine, see links.ts.
 */
import { readFileSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { CliError, exitCodes } from '../../terminal/failure.ts'
import { openLinks } from './links.ts'
import { removeLeftovers, keepFile } from './kept-file.ts'

const FILE = '.dropway.json'

export interface RememberedDrop {
  readonly id: string
  readonly slug: string
  /** What was published last of a page or a zip, and as which version. */
  readonly sha256?: string
  readonly version_id?: string
}

interface ProjectFile {
  /** Origin of the service; drops of another one are not these. */
  readonly service?: string
  readonly drop?: RememberedDrop
  /** Pages and zips by file name. */
  readonly files?: Readonly<Record<string, RememberedDrop>>
}

export interface Project {
  /** Where `.dropway.json` is, or would be. */
  readonly folder: string
  /** `name` is that of a page or a zip; without it the folder's own drop. */
  find(name?: string): RememberedDrop | undefined
  /** Whether this person linked it to this drop, here: what the file alone says was not theirs to say. */
  isLinkedTo(id: string, name?: string): boolean
  /** Notes that the person has linked it, without a word in the file. */
  link(id: string, name?: string): void
  remember(drop: RememberedDrop, name?: string): Promise<void>
  /** The slug of a drop that was about to be made when its deploy was killed; it may be there, empty. */
  unfinished(name?: string): string | undefined
  /** Notes the slug before its drop is made, so that the next deploy finds it; until it is remembered or forgotten. */
  announce(slug: string, name?: string): void
  /** What was remembered, if anything. The file goes with its last entry. */
  forget(name?: string): Promise<RememberedDrop | undefined>
}

/** The nearest folder, from this one upwards, whose `.dropway.json` speaks of the folder itself, not of pages in it. */
export function findProjectFolder(from: string): string | undefined {
  for (let folder = path.resolve(from); ; folder = path.dirname(folder)) {
    if (speaksOfFolder(path.join(folder, FILE))) return folder
    if (folder === path.dirname(folder)) return undefined
  }
}

/** One that cannot be read says nothing; where it is in the way, `openProject` tells. */
function speaksOfFolder(file: string): boolean {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as ProjectFile).drop !== undefined
  } catch {
    return false
  }
}

export async function openProject(folder: string, service: string, configDir: string): Promise<Project> {
  const file = path.join(folder, FILE)
  removeLeftovers(folder, FILE)
  let content = await read(file)
  if (content.service !== service) content = { service }
  const files = new Map(Object.entries(content.files ?? {}))
  const links = await openLinks(configDir, service, folder)
  let { drop } = content
  const find = (name?: string): RememberedDrop | undefined => (name === undefined ? drop : files.get(name))

  function save(): void {
    if (drop === undefined && files.size === 0) return rmSync(file, { force: true })
    const next: ProjectFile = {
      service,
      ...(drop ? { drop } : {}),
      ...(files.size > 0 ? { files: Object.fromEntries(files) } : {}),
    }
    keepFile(file, `${JSON.stringify(next, null, 2)}\n`)
  }

  return {
    folder,
    find,
    isLinkedTo: (id, name) => links.read(name).id === id,
    link: (id, name) => links.write({ id }, name),
    async remember(changed, name) {
      if (name === undefined) drop = changed
      else files.set(name, changed)
      // A client that is killed in between finds the drop again, by the file or as one that was about to be made.
      links.write({ id: changed.id, making: changed.slug }, name)
      save()
      links.write({ id: changed.id }, name)
    },
    unfinished: (name) => links.read(name).making,
    announce: (slug, name) => links.write({ making: slug }, name),
    async forget(name) {
      const known = find(name)
      if (name === undefined) drop = undefined
      else files.delete(name)
      links.remove(name)
      if (known !== undefined) save()
      return known
    },
  }
}

async function read(file: string): Promise<ProjectFile> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}'
    throw error
  })
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // The error is told below, like any other wrong content.
  }
  throw new CliError(
    `"${file}" is not valid JSON. Correct it, or delete it to publish a new drop.`,
    exitCodes.failed,
    'damaged_project',
  )
}
