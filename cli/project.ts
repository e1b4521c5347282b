/** `.dropway.json`: which drop a folder or a page belongs to. Meant to be committed; holds no secrets. */
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { CliError, exitCodes } from './failure.ts'

const FILE = '.dropway.json'

export interface RememberedDrop {
  readonly id: string
  readonly slug: string
  /** Of a page or a zip: what was published last, and as which version. */
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
  /** `name` is that of a page or a zip; without it the folder's own drop. */
  find(name?: string): RememberedDrop | undefined
  remember(drop: RememberedDrop, name?: string): Promise<void>
}

export async function openProject(folder: string, service: string): Promise<Project> {
  const file = path.join(folder, FILE)
  let content = await read(file)
  if (content.service !== service) content = { service }
  const files = new Map(Object.entries(content.files ?? {}))
  let { drop } = content
  return {
    find: (name) => (name === undefined ? drop : files.get(name)),
    async remember(changed, name) {
      if (name === undefined) drop = changed
      else files.set(name, changed)
      const next: ProjectFile = {
        service,
        ...(drop ? { drop } : {}),
        ...(files.size > 0 ? { files: Object.fromEntries(files) } : {}),
      }
      const text = `${JSON.stringify(next, null, 2)}\n`
      if (text !== (await readFile(file, 'utf8').catch(() => ''))) await writeFile(file, text)
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
    // Told below, like any other wrong content.
  }
  throw new CliError(
    `"${file}" is not valid JSON. Correct it, or delete it to publish a new drop.`,
    exitCodes.failed,
    'damaged_project',
  )
}
