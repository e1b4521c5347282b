/** What the bytes of a file say: charset, places for snippets, title, links, encoded variants. Runs in a worker thread. */
import { isUtf8 } from 'node:buffer'
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { keyInBytes } from '../../../../shared/content/key-text.ts'
import type { KeyTrace } from '../../../../shared/content/private-key.ts'
import { secretIn, SMALL_SECRET_BYTES } from '../../../../shared/content/secret-files.ts'
import type { ManifestFile } from '../../../../shared/contracts/manifest.ts'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import { compress, MAX_COMPRESSED_BYTES, MIN_COMPRESSED_BYTES, type Effort } from './compression.ts'
import { scanHtml, type HtmlScan } from '../html/scan.ts'
import { cssLinks, encodeCode, encodeLinks, htmlLinks, type EncodedCode, type EncodedLinks } from './links.ts'
import type { FileFacts } from '../manifest/manifest-builder.ts'
import { pageAsUtf8 } from '../files/text-encoding.ts'
import { isCompressible, isHtmlType, isTextual, mediaTypeOf } from '../files/types.ts'

/** A larger page gets its snippets at its end and no link check: one tag of this size already fills a thread's heap. */
export const MAX_SCANNED_BYTES = 16_000_000

export interface AnalysisRequest {
  readonly path: string
  readonly hash: string
  readonly size: number
  /** Undefined: variants are known, or not wanted now. */
  readonly effort?: Effort
}

/** What a page says about itself and about other files. */
export interface Reading {
  readonly title?: string
  readonly links?: EncodedLinks | undefined
  /** Which of them are scripts and stylesheets. */
  readonly code?: EncodedCode | undefined
  /** Whether a private key is in it. */
  readonly key?: KeyTrace | undefined
}

export interface Analysis extends FileFacts, Reading {
  /** What is served in place of the file: a page that is not written in a superset of ASCII, as UTF-8. All facts are about it. */
  readonly converted?: { readonly hash: string; readonly size: number }
  /** Blobs that were not in the store before, if there are any: an upload that fails takes them back. */
  readonly created?: readonly StoredBlob[]
}

/** True when there is anything to learn from the bytes. */
export function isWorthReading(path: string, size: number): boolean {
  const mediaType = mediaTypeOf(path)
  if (isTextual(mediaType)) return size <= MAX_COMPRESSED_BYTES
  return isCompressible(mediaType) && size <= MAX_COMPRESSED_BYTES
}

/** True when the content may be a secret that the name does not tell: all texts, and whatever is as small as a key. */
export function mayHoldKey(path: string, size: number): boolean {
  return size <= SMALL_SECRET_BYTES || isWorthReading(path, size) || isNamedLikeKey(path, size)
}

/** True when the name says that it is a key, unless the content says otherwise. */
export function isNamedLikeKey(path: string, size: number): boolean {
  return size <= MAX_COMPRESSED_BYTES && secretIn({ path, size }) !== undefined
}

/** True when variants may save something. */
export function isWorthCompressing(path: string, size: number): boolean {
  return size >= MIN_COMPRESSED_BYTES && size <= MAX_COMPRESSED_BYTES && isCompressible(mediaTypeOf(path))
}

export async function analyse(blobs: BlobStore, request: AnalysisRequest): Promise<Analysis> {
  const mediaType = mediaTypeOf(request.path)
  const isPage = isHtmlType(mediaType)
  const sent = await blobs.read(request.hash)
  const { bytes, scan, isConverted } = read(sent, isPage)
  const converted = isConverted ? await blobs.put(bytes) : undefined
  const { encodings, created } = await storeVariants(
    blobs,
    bytes,
    isCompressible(mediaType) ? request.effort : undefined,
  )
  const added = [...(converted ? [converted] : []), ...created].filter((blob) => blob.modifiedAt !== undefined)
  return {
    charset: charsetOf(bytes, isPage, scan),
    key: keyInBytes(sent),
    ...(scan && { injection: injectionOf(scan) }),
    ...titleOf(scan),
    ...linksOf(request.path, mediaType, bytes, scan),
    ...(encodings && { encodings }),
    ...(converted && { converted: { hash: converted.hash, size: converted.size } }),
    ...(added.length > 0 && { created: added }),
  }
}

/** A page without a title is known by its first heading. */
function titleOf(scan: HtmlScan | undefined): Pick<Reading, 'title'> {
  const title = scan?.title ?? scan?.heading
  return title === undefined ? {} : { title }
}

/** The bytes that are served, and what a page of them says. */
function read(bytes: Buffer, isPage: boolean): { bytes: Buffer; scan?: HtmlScan; isConverted?: true } {
  if (!isPage || bytes.length > MAX_SCANNED_BYTES) return { bytes }
  const scan = scanHtml(bytes)
  const utf8 = pageAsUtf8(bytes, scan.charset)
  return utf8 ? { bytes: utf8, scan: scanHtml(utf8), isConverted: true } : { bytes, scan }
}

/** The header must not contradict what a page declares; text that is not UTF-8 is left to the browser's guess. */
function charsetOf(bytes: Buffer, isPage: boolean, scan: HtmlScan | undefined): 'utf-8' | null {
  if (isPage && !scan) return null
  if (scan?.charset !== undefined && scan.charset !== 'utf-8' && scan.charset !== 'utf8') return null
  return isUtf8(bytes) ? 'utf-8' : null
}

function injectionOf({ head, body, csp }: HtmlScan): NonNullable<ManifestFile['injection']> {
  return { head, body, ...(csp.length > 0 && { csp: [...csp] }) }
}

function linksOf(
  path: string,
  mediaType: string,
  bytes: Buffer,
  scan: HtmlScan | undefined,
): Pick<Reading, 'links' | 'code'> {
  if (scan) {
    const links = htmlLinks(path, scan)
    return { links: encodeLinks(links), code: encodeCode(links) }
  }
  if (mediaType === 'text/css' && bytes.length <= MAX_SCANNED_BYTES)
    return { links: encodeLinks(cssLinks(path, bytes.toString())) }
  return {}
}

async function storeVariants(
  blobs: BlobStore,
  bytes: Buffer,
  effort: Effort | undefined,
): Promise<{ encodings?: ManifestFile['encodings']; created: readonly StoredBlob[] }> {
  if (effort === undefined) return { created: [] }
  const encodings: NonNullable<ManifestFile['encodings']> = {}
  const variants = compress(bytes, effort)
  const stored = await Promise.all(variants.map((variant) => blobs.put(variant.bytes)))
  for (const [{ encoding }, { hash, size }] of sideBySide(variants, stored)) encodings[encoding] = { hash, size }
  return { encodings, created: stored }
}
