/** The words of the pages of a version, for search. Runs in a thread; linear in the bytes that are read. */
import { createHash } from 'node:crypto'
import type { BlobStore } from '../../../../shared/blobs/blob-store.ts'
import { isPage, type Manifest } from '../../../../shared/contracts/manifest.ts'
import { LANDING_PAGE } from '../../../../shared/content/upload-kind.ts'
import { decodeText } from '../files/text-encoding.ts'
import { RAW_TEXT } from '../html/open-elements.ts'
import { decodeReferences } from '../html/text.ts'
import { findRawTextEnd, LESS_THAN, readMarkup } from '../html/tokens.ts'
import { MAX_WORDS, wordsOf } from './words.ts'

export interface ReadPage {
  readonly path: string
  readonly hash: string
  readonly size: number
}

/** Enough to find a site by; a search engine of its content it is not. */
const MAX_PAGES = 300
const MAX_PAGE_BYTES = 1_000_000
const MAX_BYTES = 8_000_000

/** Between these no word ends. */
const INLINE: ReadonlySet<string> = new Set('a b i em strong span u s sub sup mark small font wbr'.split(' '))
const SHOWN_RAW: ReadonlySet<string> = new Set(['title', 'textarea', 'noscript'])

/** The pages and texts that are read, the landing page first, then the smallest. Pure. */
export function planWords(manifest: Manifest): ReadPage[] {
  let bytes = 0
  return manifest.files
    .filter(([, file]) => file.size <= MAX_PAGE_BYTES && (isPage(file) || /^text\/(?:plain|markdown)/.test(file.type)))
    .map(([path, { hash, size }]) => ({ path, hash, size }))
    .toSorted((a, b) => Number(b.path === LANDING_PAGE) - Number(a.path === LANDING_PAGE) || a.size - b.size)
    .slice(0, MAX_PAGES)
    .filter(({ size }) => (bytes += size) <= MAX_BYTES)
}

/** Other words are found in the same pages when this is counted up. */
const READING = 1

/** Pages of the same digest have the same words. */
export function digestOf(pages: readonly ReadPage[]): string {
  const hash = createHash('sha256').update(String(READING))
  for (const { path, hash: content } of pages) hash.update(`${isText(path) ? 'text' : 'page'} ${content}`)
  return hash.digest('hex')
}

/** What is read as it is, without looking for markup. */
function isText(path: string): boolean {
  return /\.(?:txt|md|markdown)$/i.test(path)
}

export async function readWords(blobs: Pick<BlobStore, 'read'>, pages: readonly ReadPage[]): Promise<string[]> {
  const words = new Set<string>()
  for (const { path, hash } of pages) {
    const bytes = await blobs.read(hash)
    const text = isText(path) ? decodeText(bytes) : textOfPage(bytes)
    for (const word of wordsOf(text)) {
      if (words.size >= MAX_WORDS) return [...words]
      words.add(word)
    }
  }
  return [...words]
}

/** What a page shows, as far as it stands in its markup. */
export function textOfPage(bytes: Buffer): string {
  const parts: string[] = []
  let at = 0
  while (at < bytes.length) {
    const lessThan = bytes.indexOf(LESS_THAN, at)
    parts.push(bytes.toString('utf8', at, lessThan < 0 ? bytes.length : lessThan))
    if (lessThan < 0) break
    const markup = readMarkup(bytes, lessThan, false)
    if (markup.kind === 'unfinished') break
    if (markup.kind === 'text') {
      parts.push('<')
      at = lessThan + 1
      continue
    }
    at = markup.end
    if (markup.kind === 'other') continue
    if (!INLINE.has(markup.name)) parts.push(' ')
    if (markup.kind === 'end' || !RAW_TEXT.has(markup.name)) continue
    const end = findRawTextEnd(bytes, markup.name, markup.end)
    if (SHOWN_RAW.has(markup.name)) parts.push(bytes.toString('utf8', markup.end, end?.start ?? bytes.length), ' ')
    at = end?.end ?? bytes.length
  }
  return decodeReferences(parts.join(''))
}
