/**
 * Pages and stylesheets with the same bytes in different folders. What bytes are is the same wherever they lie, so each
 * content is read once; where their links lead is not. The copies in other folders are read again for their links, as far
 * as there is room. Pure.
 */
import type { AnalysisRequest } from '../analysis/analyse.ts'
import { isHtmlType, mediaTypeOf } from '../files/types.ts'
import type { ByContent } from '../manifest/by-content.ts'
import type { StoredFile } from '../manifest/manifest-builder.ts'

/** Copies that are read again, all together. Those of a hand-made site are fewer; a generated one has thousands of stubs. */
const COPIES_BYTES = 2_000_000

export interface PlannedCopies {
  readonly requests: readonly AnalysisRequest[]
  /** Those that there is no room for: nothing is said of their links. */
  readonly unread: readonly string[]
}

/** `first`: the file of each content that is read anyway. */
export function planCopies(files: readonly StoredFile[], first: Pick<ByContent<StoredFile>, 'get'>): PlannedCopies {
  const requests: AnalysisRequest[] = []
  const unread: string[] = []
  let bytes = 0
  for (const file of files) {
    const { path, hash, size, live } = file
    const read = live || !hasLinks(path) ? undefined : first.get(file)
    if (!read || read === file || folderOf(read.path) === folderOf(path)) continue
    bytes += size
    if (bytes <= COPIES_BYTES) requests.push({ path, hash, size })
    else unread.push(path)
  }
  return { requests, unread }
}

function hasLinks(path: string): boolean {
  const type = mediaTypeOf(path)
  return isHtmlType(type) || type === 'text/css'
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
