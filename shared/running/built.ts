/**
 * The built form of our programs. `npm run build`, and `npm ci` at its end, join the modules of each program into a few
 * files of plain JavaScript in a folder of `built/`: they load in a third of the processor time, and a thousand modules
 * hold memory that a dozen do not. The list beside the folders names the one that runs and the sources that it was made
 * of. Where one of these is another now, the sources run: what is edited is what runs. The image, in which no source ever
 * changes, has a list without sources.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const BUILT_FOLDER = 'built'
/** The build of the image, which starts it without reading the list. */
export const SEALED_BUILD = 'sealed'
const LIST = 'sources.json'
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Size and time of the last change of each source, by its path from the root. */
export type SourceMarks = Readonly<Record<string, string>>

/** What the list says: the folder of the build, and what it was made of. */
export interface PlacedBuild {
  readonly build: string
  readonly sources: SourceMarks
}

/** The build that this is itself part of, which `npm run build` writes here; undefined in the sources. */
export const OWN_BUILD = undefined as string | undefined

/** Imports the built form of a module, named by its path from the root, or the module itself where there is none of today. */
export async function importBuilt<Module>(source: string, fromSources: () => Promise<Module>): Promise<Module> {
  // Who runs in the built form was started by someone who had compared, and stays with the same build.
  const build = OWN_BUILD ?? currentBuild()
  if (build === undefined) return fromSources()
  return (await import(path.join(buildFolder(ROOT, build), builtName(source)))) as Module
}

/** The place of a script for browsers in a build, named by its file, without its types. */
export function builtScript(build: string, file: string): string {
  return path.join(buildFolder(ROOT, build), 'scripts', builtName(path.relative(ROOT, file)))
}

/** All files lie in one folder, which is as far from the sources for each. */
export function builtName(source: string): string {
  return `${source.replaceAll('/', '-').replace(/\.ts$/, '')}.js`
}

export function buildFolder(root: string, build: string): string {
  return path.join(root, BUILT_FOLDER, build)
}

/** The build that was made of the sources that are there now; undefined when there is none. */
export function currentBuild(root = ROOT): string | undefined {
  const placed = placedBuild(root)
  if (placed === undefined || !existsSync(buildFolder(root, placed.build))) return undefined
  const isCurrent = Object.entries(placed.sources).every(([file, mark]) => sourceMark(path.join(root, file)) === mark)
  return isCurrent ? placed.build : undefined
}

export function listFile(root: string): string {
  return path.join(root, BUILT_FOLDER, LIST)
}

/** Says which state of a file was seen; undefined for a file that is not there. */
export function sourceMark(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats && `${stats.size} ${stats.mtimeMs}`
}

/** What the list says, whatever became of the sources; undefined of a list that is not there or not one of this release. */
export function placedBuild(root: string): PlacedBuild | undefined {
  try {
    const { build, sources } = JSON.parse(readFileSync(listFile(root), 'utf8')) as Partial<PlacedBuild>
    return typeof build === 'string' && typeof sources === 'object' ? { build, sources } : undefined
  } catch {
    return undefined
  }
}
