/** Where the site is inside an upload: the landing page must be index.html, or a Markdown index, at the root. Pure. */
import { errors } from '../../../../shared/errors.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'
import { quotePath } from '../files/paths.ts'

export const LANDING_PAGE = 'index.html'
/** Rendered to the landing page where there is no index.html. */
const MARKDOWN_LANDINGS = ['index.md', 'index.markdown']

/**
 * What a file manager's "compress" makes: everything lies in one folder, and that folder holds the landing page.
 * Only for archives; the paths of other uploads are taken as given.
 */
export function unwrapFolder(files: readonly StoredFile[]): readonly StoredFile[] {
  const folder = /^[^/]+\//.exec(files[0]?.path ?? '')?.[0]
  if (folder === undefined || !files.every((file) => file.path.startsWith(folder))) return files
  if (![LANDING_PAGE, ...MARKDOWN_LANDINGS].some((name) => files.some((file) => file.path === folder + name)))
    return files
  return files.map((file) => ({ ...file, path: file.path.slice(folder.length) }))
}

/** The landing page, or an error that says where one was found instead. */
export function requireLandingPage(files: readonly StoredFile[]): StoredFile {
  const landing = files.find((file) => file.path === LANDING_PAGE)
  if (landing) return landing
  throw errors.missingIndex(missingIndexHint(files))
}

/** The file that has to be rendered to become the landing page; undefined when there is an index.html, or neither. */
export function markdownLanding(files: readonly StoredFile[]): StoredFile | undefined {
  if (files.some((file) => file.path === LANDING_PAGE)) return undefined
  return files.find((file) => MARKDOWN_LANDINGS.includes(file.path))
}

function missingIndexHint(files: readonly StoredFile[]): string | undefined {
  if (files.length === 0) return 'The upload holds no files. Add an index.html.'
  const misspelt = files.find((file) => file.path.toLowerCase() === LANDING_PAGE || /^index\.htm$/i.test(file.path))
  if (misspelt)
    return `The bundle has ${quotePath(misspelt.path)} but no index.html at its root. Rename it to index.html.`
  const nested = files
    .filter((file) => file.path.endsWith(`/${LANDING_PAGE}`))
    .toSorted((a, b) => depth(a) - depth(b))[0]
  if (!nested) return undefined
  const folder = nested.path.slice(0, -LANDING_PAGE.length)
  return `The bundle has no index.html at its root, but there is one in ${quotePath(folder)}. Upload that folder instead.`
}

function depth(file: StoredFile): number {
  return file.path.split('/').length
}
