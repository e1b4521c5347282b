/** Content types by file name. */
import mime from 'mime'

/** Where the registry is silent, ambiguous for a web server, or differs from what browsers insist on. */
const FIXED: ReadonlyMap<string, string> = new Map([
  ['js', 'text/javascript'],
  ['mjs', 'text/javascript'],
  ['cjs', 'text/javascript'],
  ['ts', 'text/plain'],
  ['tsx', 'text/plain'],
  ['jsx', 'text/plain'],
  // The registry does not know them, or as something that browsers offer to save.
  ['py', 'text/x-python'],
  ['vcf', 'text/vcard'],
  ['mobileconfig', 'application/x-apple-aspen-config'],
  ['md', 'text/markdown'],
  ['markdown', 'text/markdown'],
  ['map', 'application/json'],
  ['webmanifest', 'application/manifest+json'],
  ['wasm', 'application/wasm'],
  ['svg', 'image/svg+xml'],
  ['avif', 'image/avif'],
  ['woff2', 'font/woff2'],
  ['ico', 'image/vnd.microsoft.icon'],
  ['xml', 'application/xml'],
  ['rss', 'application/rss+xml'],
  ['atom', 'application/atom+xml'],
])

const UNKNOWN = 'application/octet-stream'

/** Types other than text/… whose bytes are text. */
const TEXTUAL = /^(?:text\/.+|application\/(?:json|javascript|xml|manifest\+json|.+\+json|.+\+xml)|image\/svg\+xml)$/

/** Already compressed inside, or too rare to be worth it, is everything that is not listed here. */
const COMPRESSIBLE =
  /^(?:application\/(?:wasm|octet-stream|pdf|x-tar|vnd\.ms-fontobject)|font\/(?:ttf|otf|collection)|image\/(?:bmp|vnd\.microsoft\.icon)|model\/.+)$/

/** Type without parameters: `text/html`. Files without an extension are bytes, except for a few well-known names. */
export function mediaTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const extension = extensionOf(name)
  if (extension === undefined)
    return /^(?:LICENSE|README|CNAME|CHANGELOG|humans|security)$/.test(name) ? 'text/plain' : UNKNOWN
  return FIXED.get(extension) ?? registeredType(extension) ?? UNKNOWN
}

/** Each known extension is looked up once: the registry takes a path apart again, and is asked for every file. */
const registered = new Map<string, string>()

function registeredType(extension: string): string | undefined {
  const known = registered.get(extension)
  if (known !== undefined) return known
  const type = mime.getType(extension)
  if (type !== null) registered.set(extension, type)
  return type ?? undefined
}

/**
 * Value of content-type. `charset` is what the bytes say of themselves: `utf-8`, or null when they are something
 * else; then the header stays silent and the page's own declaration counts.
 */
export function contentTypeOf(mediaType: string, charset: 'utf-8' | null): string {
  const wantsCharset = mediaType.startsWith('text/') || mediaType === 'application/manifest+json'
  return wantsCharset && charset !== null ? `${mediaType}; charset=${charset}` : mediaType
}

/** `.ts` is TypeScript, or a piece of a video (MPEG-TS), whose bytes are no text. */
export function servedTypeOf(mediaType: string, path: string, charset: 'utf-8' | null): string {
  const isVideo = charset === null && extensionOf(path.slice(path.lastIndexOf('/') + 1)) === 'ts'
  return isVideo ? 'video/mp2t' : mediaType
}

export function isHtmlType(mediaType: string): boolean {
  return mediaType === 'text/html' || mediaType === 'application/xhtml+xml'
}

export function isTextual(mediaType: string): boolean {
  return TEXTUAL.test(mediaType)
}

export function isCompressible(mediaType: string): boolean {
  return isTextual(mediaType) || COMPRESSIBLE.test(mediaType)
}

/** Lower case, without the dot; a dotfile such as `.env` has none. */
export function extensionOf(name: string): string | undefined {
  const dot = name.lastIndexOf('.')
  return dot > 0 && dot < name.length - 1 ? name.slice(dot + 1).toLowerCase() : undefined
}
