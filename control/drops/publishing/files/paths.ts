/**
 * The one gate for names of files, from any sender: archive entries, `paths` fields, single files, MCP content.
 * A path that passes is relative, normal, safe in a URL and in another person's file system after an export.
 */
import { MAX_PATH_BYTES, MAX_PATH_DEPTH, MAX_PATH_SEGMENT_BYTES } from '../../../../shared/contracts/limits.ts'
import { toNfc } from '../../../../shared/values/nfc.ts'

/** Names of plain letters, few and short: nearly all paths, and nothing below is wrong with one of them. */
const PLAIN_PATH = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/
/** Within the bounds of a path, of its depth and of a part of it. */
const MAX_PLAIN_CHARS = 60

/** What is wrong with a path, in words that follow its name; undefined when it may be published. */
export function pathProblem(path: string): string | undefined {
  if (path.length <= MAX_PLAIN_CHARS && PLAIN_PATH.test(path)) return undefined
  if (path === '') return 'has no name'
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what must be found
  if (/[\u0000-\u001f\u007f]/.test(path)) return 'contains a control character'
  if (!path.isWellFormed() || path.includes('\ufffd')) return 'is not valid UTF-8'
  if (path.includes('\\')) return 'contains a backslash; separate folders with /'
  if (path.startsWith('/')) return 'is an absolute path'
  if (/^[A-Za-z]:/.test(path)) return 'starts with a drive letter'
  if (isLonger(path, MAX_PATH_BYTES)) return `is longer than ${MAX_PATH_BYTES} bytes`
  const segments = path.split('/')
  if (segments.length > MAX_PATH_DEPTH) return `lies more than ${MAX_PATH_DEPTH} folders deep`
  for (const segment of segments) {
    const problem = segmentProblem(segment)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** No unit of UTF-16 takes more than three bytes: most paths need not be measured. */
function isLonger(text: string, maxBytes: number): boolean {
  return text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes
}

function segmentProblem(segment: string): string | undefined {
  if (segment === '') return 'contains an empty folder name'
  if (segment === '.' || segment === '..') return `contains "${segment}" as a folder name`
  if (isLonger(segment, MAX_PATH_SEGMENT_BYTES)) return `has a part longer than ${MAX_PATH_SEGMENT_BYTES} bytes`
  return undefined
}

/**
 * The path set of one upload. Refuses a second file of the same name, and a file where another path needs a folder:
 * neither could be exported again, and one of them would silently win. Names that differ only in how an accent is
 * composed are the same name, as they are to a visitor.
 */
export class PathSet {
  readonly #files = new Set<string>()
  readonly #folders = new Set<string>()

  /** Adds a path that passed `pathProblem`; returns what is wrong with it beside the others. */
  add(path: string): string | undefined {
    const name = toNfc(path)
    if (this.#files.has(name)) return 'appears twice'
    if (this.#folders.has(name)) return 'is both a file and a folder'
    // A folder that is known was judged with all that it lies in.
    const parent = name.slice(0, Math.max(0, name.lastIndexOf('/')))
    const folders = this.#folders.has(parent) ? [] : foldersOf(name)
    if (folders.some((folder) => this.#files.has(folder))) return 'lies in a folder that is also a file'
    this.#files.add(name)
    for (const folder of folders) this.#folders.add(folder)
    return undefined
  }

  get size(): number {
    return this.#files.size
  }
}

/** `a/b/c.html` → `a`, `a/b`. */
function foldersOf(path: string): string[] {
  const folders: string[] = []
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
    folders.push(path.slice(0, slash))
  return folders
}
