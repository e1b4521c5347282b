/**
 * The built form of our programs. `npm run build`, and `npm ci` at its end, join the modules of each program into a few
 * files of plain JavaScript in `built/`: they load in a third of the processor time, and a thousand modules hold memory
 * that a dozen do not. The list beside them says from which sources they were made. Where one of these is another now,
 * the sources run: what is edited is what runs. The image, in which no source ever changes, has an empty list.
 */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const BUILT_FOLDER = 'built'
const LIST = 'sources.json'
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Size and time of the last change of each source, by its path from the root. */
export type SourceMarks = Readonly<Record<string, string>>

/** Whether this is itself part of the built form. `npm run build` writes it so. */
export const RUNS_BUILT = false as boolean

/** Imports the built form of a module, named by its path from the root, or the module itself where there is none of today. */
export async function importBuilt<Module>(source: string, fromSources: () => Promise<Module>): Promise<Module> {
  // Who runs in the built form was started by someone who had compared.
  if (!RUNS_BUILT && !isBuilt()) return fromSources()
  return (await import(path.join(ROOT, BUILT_FOLDER, builtName(source)))) as Module
}

/** The place of a script for browsers, named by its file, without its types. */
export function builtScript(file: string): string {
  return path.join(ROOT, BUILT_FOLDER, 'scripts', builtName(path.relative(ROOT, file)))
}

/** All files lie in one folder, which is as far from the sources for each. */
export function builtName(source: string): string {
  return `${source.replaceAll('/', '-').replace(/\.ts$/, '')}.js`
}

/** Whether the built form in a folder was made of the sources that are there now. */
export function isBuilt(root = ROOT): boolean {
  const marks = readMarks(root)
  return marks !== undefined && Object.entries(marks).every(([file, mark]) => sourceMark(root + file) === mark)
}

export function listFile(root: string): string {
  return path.join(root, BUILT_FOLDER, LIST)
}

/** Says which state of a file was seen; undefined for a file that is not there. */
export function sourceMark(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats && `${stats.size} ${stats.mtimeMs}`
}

function readMarks(root: string): SourceMarks | undefined {
  try {
    return JSON.parse(readFileSync(listFile(root), 'utf8')) as SourceMarks
  } catch {
    return undefined
  }
}
