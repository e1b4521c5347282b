/** `.dropway.json`: which drop a folder or a page belongs to. Meant to be committed; holds no secrets. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { CliError, exitCodes } from '../terminal/failure.ts'

const FILE = '.dropway.json'
/** No file has this name. */
const OWN = '.'

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
  /** Slugs of drops that a deploy was about to make, by file name; `.` is the folder's own. */
  readonly making?: Readonly<Record<string, string>>
}

export interface Project {
  /** `name` is that of a page or a zip; without it the folder's own drop. */
  find(name?: string): RememberedDrop | undefined
  remember(drop: RememberedDrop, name?: string): Promise<void>
  /** The slug of a drop that was about to be made when its deploy was killed; it may be there, empty. */
  unfinished(name?: string): string | undefined
  /** Notes the slug before its drop is made, so that the next deploy finds it; until it is remembered or forgotten. */
  announce(slug: string, name?: string): Promise<void>
  /** What was remembered, if anything. The file goes with its last entry. */
  forget(name?: string): Promise<RememberedDrop | undefined>
}

export async function openProject(folder: string, service: string): Promise<Project> {
  const file = path.join(folder, FILE)
  let content = await read(file)
  if (content.service !== service) content = { service }
  const files = new Map(Object.entries(content.files ?? {}))
  const making = new Map(Object.entries(content.making ?? {}))
  let { drop } = content
  const find = (name?: string): RememberedDrop | undefined => (name === undefined ? drop : files.get(name))

  async function save(): Promise<void> {
    if (drop === undefined && files.size === 0 && making.size === 0) return rm(file, { force: true })
    const next: ProjectFile = {
      service,
      ...(drop ? { drop } : {}),
      ...(files.size > 0 ? { files: Object.fromEntries(files) } : {}),
      ...(making.size > 0 ? { making: Object.fromEntries(making) } : {}),
    }
    const text = `${JSON.stringify(next, null, 2)}\n`
    if (text === (await readFile(file, 'utf8').catch(() => ''))) return
    // A process that is killed in between leaves the old file or the new one.
    const temporary = `${file}.${process.pid}`
    await writeFile(temporary, text)
    await rename(temporary, file)
  }

  return {
    find,
    async remember(changed, name) {
      if (name === undefined) drop = changed
      else files.set(name, changed)
      making.delete(name ?? OWN)
      await save()
    },
    unfinished: (name) => making.get(name ?? OWN),
    async announce(slug, name) {
      making.set(name ?? OWN, slug)
      await save()
    },
    async forget(name) {
      const known = find(name)
      if (name === undefined) drop = undefined
      else files.delete(name)
      if (making.delete(name ?? OWN) || known !== undefined) await save()
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
