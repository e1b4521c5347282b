/** Where the site is inside an upload: the landing page must be index.html, or a Markdown index, at the root. Pure. */
import { errors } from '../../../../shared/contracts/errors.ts'
import {
  LANDING_PAGE,
  MARKDOWN_LANDINGS,
  missingIndexHint,
  siteRootOf,
} from '../../../../shared/content/upload-kind.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'

/** Only for archives; the paths of other uploads are taken as given. */
export function unwrapFolder(files: readonly StoredFile[]): readonly StoredFile[] {
  const root = siteRootOf(files.map(({ path }) => path))
  return root === '' ? files : files.map((file) => ({ ...file, path: file.path.slice(root.length) }))
}

/** The landing page, or an error that says where one was found instead. */
export function requireLandingPage(files: readonly StoredFile[]): StoredFile {
  const landing = files.find((file) => file.path === LANDING_PAGE)
  if (landing) return landing
  throw errors.missingIndex(missingIndexHint(files.map(({ path }) => path)))
}

/** The file that has to be rendered to become the landing page; undefined when there is an index.html, or neither. */
export function markdownLanding(files: readonly StoredFile[]): StoredFile | undefined {
  if (files.some((file) => file.path === LANDING_PAGE)) return undefined
  return files.find((file) => MARKDOWN_LANDINGS.includes(file.path))
}
