/**
 * What a publisher gives: a page, a document, an archive or a site. Decided from the whole set of files, by this one
 * function for every way in: the browser before it sends, the forms, the API, MCP and the client. Pure; linear.
 *
 * - One file by itself is a page (HTML, Markdown), a document that a small page shows (PDF, image, video, sound, text),
 *   or an archive that is unpacked.
 * - Several files, or a folder, are a site: `index.html`, or `index.md`, must lie at its root.
 */
import { errors } from '../contracts/errors.ts'
import { DEFAULT_BUNDLE_FILES } from '../contracts/limits.ts'
import { quotePath } from '../values/quoted-path.ts'

export interface GivenFile {
  /** Relative, with `/`; a file that came in no folder has none. */
  readonly path: string
  readonly size: number
}

export type PageFormat = 'html' | 'markdown'
/** How a document is shown. */
export type Shown = 'pdf' | 'image' | 'video' | 'sound' | 'text'
export type SingleKind = PageFormat | Shown
export type FileKind = SingleKind | 'archive'

export type UploadKind =
  | { readonly kind: 'page'; readonly name: string; readonly format: PageFormat }
  | { readonly kind: 'document'; readonly name: string; readonly shown: Shown }
  | { readonly kind: 'archive'; readonly name: string }
  /** `root` is the folder that holds it, `''` or with a `/` at its end. */
  | { readonly kind: 'site'; readonly root: string }

export interface UploadTerms {
  readonly capBytes: number
  /** Unset: as many as a plan allows unless it says otherwise. */
  readonly maxFiles?: number | undefined
  /** The publisher has no account: one page and nothing else. */
  readonly takes: 'page' | 'anything'
}

export const LANDING_PAGE = 'index.html'
/** Rendered to the landing page where there is no index.html. */
export const MARKDOWN_LANDINGS: readonly string[] = ['index.md', 'index.markdown']
/** One of them makes a folder a site. */
export const LANDING_PAGES: readonly string[] = [LANDING_PAGE, ...MARKDOWN_LANDINGS]

const KINDS: ReadonlyMap<string, FileKind> = new Map(
  (
    [
      ['html', 'html htm'],
      ['markdown', 'md markdown'],
      ['archive', 'zip'],
      ['pdf', 'pdf'],
      ['image', 'png jpg jpeg gif webp avif svg bmp'],
      ['video', 'mp4 m4v webm mov ogv'],
      ['sound', 'mp3 m4a ogg oga opus wav flac'],
      ['text', 'txt text log csv tsv json xml yaml yml toml diff patch'],
    ] as const
  ).flatMap(([kind, endings]) => endings.split(' ').map((ending) => [ending, kind] as const)),
)

/** What a file is by its name, when it comes by itself; undefined when it cannot be published so. */
export function fileKindOf(name: string): FileKind | undefined {
  const base = name.slice(name.lastIndexOf('/') + 1)
  const dot = base.lastIndexOf('.')
  return dot > 0 ? KINDS.get(base.slice(dot + 1).toLowerCase()) : undefined
}

export function isPageFormat(kind: FileKind | undefined): kind is PageFormat {
  return kind === 'html' || kind === 'markdown'
}

/** Folders whose addresses belong to the service at every drop. */
const SERVICE_FOLDERS: readonly string[] = ['.dropway/', '.well-known/acme-challenge/']
/** What an archiver of macOS adds. */
const MAC_FOLDER = '__MACOSX/'

/** What operating systems add to a folder by themselves. It is never published. */
export function isSystemClutter(path: string): boolean {
  return path.startsWith(MAC_FOLDER) || /(?:^|\/)(?:\.DS_Store|Thumbs\.db|desktop\.ini)$/.test(path)
}

/** The kind of file that no visitor can ask for, by the name that the report gives it; undefined: it is served. */
export function unservedKindOf(path: string): string | undefined {
  if (path.startsWith(MAC_FOLDER)) return MAC_FOLDER
  if (isSystemClutter(path)) return path.slice(path.lastIndexOf('/') + 1)
  return SERVICE_FOLDERS.find((folder) => `${path}/`.startsWith(folder))
}

/** Throws the error that the service would answer with, so that it can be known before anything is sent. */
export function uploadKindOf(given: readonly GivenFile[], terms: UploadTerms): UploadKind {
  const files = given.filter(({ path }) => !isSystemClutter(path))
  const [first] = files
  if (!first) throw errors.invalidRequest('There is no file in this upload.')
  const isAlone = files.length === 1 && !first.path.includes('/')
  const found = isAlone ? aloneOf(first.path, terms.takes) : siteOf(files, terms)
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  if (bytes > terms.capBytes) throw errors.uploadTooLarge(terms.capBytes)
  if (isAlone && bytes === 0) throw errors.invalidRequest(`"${first.path}" is empty.`)
  return found
}

function aloneOf(name: string, takes: UploadTerms['takes']): UploadKind {
  const kind = fileKindOf(name)
  if (isPageFormat(kind)) return { kind: 'page', name, format: kind }
  if (kind === undefined || takes === 'page') throw errors.unsupportedFileType(name, takes)
  return kind === 'archive' ? { kind, name } : { kind: 'document', name, shown: kind }
}

function siteOf(
  files: readonly GivenFile[],
  { takes, maxFiles = DEFAULT_BUNDLE_FILES }: Pick<UploadTerms, 'takes' | 'maxFiles'>,
): UploadKind {
  if (takes === 'page') throw errors.needsAccount(files.length === 1 ? 'A folder' : `A site of ${files.length} files`)
  if (files.length > maxFiles) throw errors.tooManyFiles(maxFiles)
  const paths = files.map(({ path }) => path)
  const root = siteRootOf(paths)
  if (!LANDING_PAGES.some((name) => paths.includes(root + name))) throw errors.missingIndex(missingIndexHint(paths))
  return { kind: 'site', root }
}

/** What a file manager's "compress", or a dropped folder, makes: all of it lies in one folder with the landing page. */
export function siteRootOf(paths: readonly string[]): string {
  const folder = /^[^/]+\//.exec(paths[0] ?? '')?.[0]
  if (folder === undefined || !paths.every((path) => path.startsWith(folder))) return ''
  const found = new Set(paths)
  return LANDING_PAGES.some((name) => found.has(folder + name)) ? folder : ''
}

/** Where the landing page probably is; undefined when there is no trace of one. */
export function missingIndexHint(paths: readonly string[]): string | undefined {
  if (paths.length === 0) return 'The upload holds no files. Add an index.html.'
  const misspelt = paths.find((path) => path.toLowerCase() === LANDING_PAGE || /^index\.htm$/i.test(path))
  if (misspelt !== undefined)
    return `The bundle has ${quotePath(misspelt)} but no index.html at its root. Rename it to index.html.`
  const nested = paths
    .filter((path) => path.endsWith(`/${LANDING_PAGE}`))
    .toSorted((a, b) => a.split('/').length - b.split('/').length)[0]
  if (nested !== undefined) {
    const folder = nested.slice(0, -LANDING_PAGE.length)
    return `The bundle has no index.html at its root, but there is one in ${quotePath(folder)}. Upload that folder instead.`
  }
  const whole = paths.filter((path) => isPageFormat(fileKindOf(path)) || fileKindOf(path) === 'archive')
  return whole.length === 1
    ? `The bundle has no index.html at its root. To publish ${quotePath(whole[0] ?? '')} by itself, send that file alone.`
    : undefined
}
