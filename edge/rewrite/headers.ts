/**
 * The headers of an answer from a drop, as a list that can be prepared once and sent many times.
 * Not in here, because they belong to one message: content-length, content-range, date, set-cookie.
 */
import { STRICT_TRANSPORT_SECURITY, isHeaderValue, maySetHeader } from '../../shared/http/header-policy.ts'
import { isPage, type Encoding, type ManifestFile } from '../../shared/contracts/manifest.ts'
import type { Markup, Snippets } from '../context.ts'
import { extendPolicies, withAncestor } from './csp.ts'

/** Names (lower case) with their values, while headers are put together; `HeaderList` is what is sent. */
export type HeaderPairs = [name: string, value: string][]

export interface DropFacts {
  readonly versionNumber: number
  /** The drop has a password: nothing of it may be kept or indexed. */
  readonly isProtected: boolean
  /** A preview address of one version: visible, but not for search engines. */
  readonly isPreview: boolean
  /** Opened by a token. */
  readonly isForProgram?: boolean
}

export interface AssetFacts extends DropFacts {
  readonly file: ManifestFile
  readonly status: 200 | 404
  /** From `_headers`, see Intent. */
  readonly custom: readonly (readonly [string, string | null])[]
  readonly encoding: Encoding | 'identity'
  /** Set when the snippets are injected into this answer. */
  readonly snippets: Snippets | undefined
  /** The page is also there as Markdown, for those who ask for it. */
  readonly hasMarkdown?: boolean
}

/** What a drop may be asked with. */
export const DROP_METHODS = 'GET, HEAD, OPTIONS'

const REVALIDATE = 'max-age=0, must-revalidate'
const FOR_EVER = 'max-age=31536000, immutable'
/** Hex digits of the content hash in an ETag: 128 bits. */
const ETAG_CHARS = 32

export function assetHeaders(facts: AssetFacts): HeaderPairs {
  const headers = new Map<string, string>([['content-type', facts.file.type]])
  if (facts.encoding !== 'identity') headers.set('content-encoding', facts.encoding)
  headers.set('cache-control', facts.file.immutable ? FOR_EVER : REVALIDATE)
  // A protected drop's answers are the service's word alone: nothing a publisher writes may make them public.
  if (!facts.isProtected) applyCustom(headers, facts)
  if (facts.snippets?.frameAncestor !== undefined) allowFrame(headers, facts.snippets.frameAncestor)
  applyService(headers, facts)
  if (facts.status === 404) headers.set('cache-control', facts.isProtected ? 'private, no-store' : 'no-store')
  else headers.set('etag', entityTag(facts.file, facts.encoding, facts.snippets))
  const vary = varyOf(facts)
  if (vary !== '') headers.set('vary', vary)
  return [...headers]
}

/**
 * Whether the answer is a page, and in which of the two languages; undefined: it is none. `_headers` may show an HTML
 * file as plain text, or some other file as HTML.
 */
export function markupOf({
  file,
  custom,
  isProtected,
}: Pick<AssetFacts, 'file' | 'custom' | 'isProtected'>): Markup | undefined {
  const type = isProtected ? undefined : custom.find(([name]) => name === 'content-type')?.[1]
  const shown = type ?? file.type
  if (HTML.test(shown)) return 'html'
  if (XHTML.test(shown)) return 'xhtml'
  return type == null && isPage(file) ? 'html' : undefined
}

const HTML = /^\s*text\/html\s*(?:;|$)/i
const XHTML = /^\s*application\/xhtml\+xml\s*(?:;|$)/i

/** Redirects of a drop: they may change with the next version, so they are never kept for long. */
export function redirectHeaders(facts: DropFacts): HeaderPairs {
  return [['cache-control', servicePolicy(facts) ?? REVALIDATE], ...serviceHeaders(facts)]
}

function applyService(headers: Map<string, string>, facts: DropFacts): void {
  const policy = servicePolicy(facts)
  if (policy !== undefined) headers.set('cache-control', policy)
  for (const [name, value] of serviceHeaders(facts)) headers.set(name, value)
}

/** How long an answer may be kept, where that is the service's word; a preview is for the owner's eyes, now. */
function servicePolicy({ isProtected, isPreview }: DropFacts): string | undefined {
  if (isProtected) return 'private, no-store'
  return isPreview ? 'no-store' : undefined
}

/** What stands on every answer of a drop, whatever `_headers` says. */
function serviceHeaders({ versionNumber, isProtected, isPreview, isForProgram }: DropFacts): HeaderPairs {
  const always: HeaderPairs = [
    ['x-content-type-options', 'nosniff'],
    ['strict-transport-security', STRICT_TRANSPORT_SECURITY],
    ['dropway-version', String(versionNumber)],
  ]
  // Where a private page leads must not learn the address that it came from.
  if (isProtected) always.push(['referrer-policy', 'same-origin'])
  if (isForProgram) always.push(['access-control-allow-origin', '*'])
  return isProtected || isPreview ? [['x-robots-tag', 'noindex'], ...always] : always
}

function applyCustom(headers: Map<string, string>, { custom, snippets }: AssetFacts): void {
  for (const [name, value] of custom) {
    if (!maySetHeader(name)) continue
    if (value === null) {
      if (name !== 'content-type') headers.delete(name)
    } else if (isHeaderValue(value)) {
      const isPolicy = name === 'content-security-policy' || name === 'content-security-policy-report-only'
      headers.set(name, isPolicy && snippets ? extendPolicies(value, snippets.csp) : value)
    }
  }
}

/** For the frame of the review page: its origin, beside those that the page's own headers allow. */
function allowFrame(headers: Map<string, string>, origin: string): void {
  headers.delete('x-frame-options')
  const policy = headers.get('content-security-policy')
  if (policy !== undefined) headers.set('content-security-policy', withAncestor(policy, origin))
}

/** Strong: it names these very bytes, so every encoding and every set of snippets has its own. */
export function entityTag(file: ManifestFile, encoding: Encoding | 'identity', snippets: Snippets | undefined): string {
  const place = file.injection === undefined ? '-end' : ''
  const injected = snippets ? `-${snippets.key}${place}` : ''
  const encoded = encoding === 'identity' ? '' : `-${encoding}`
  return `"${file.hash.slice(0, ETAG_CHARS)}${injected}${encoded}"`
}

function varyOf({ file, encoding, snippets, hasMarkdown, isProtected, isForProgram }: AssetFacts): string {
  const { br, zstd, gzip } = file.encodings ?? {}
  const names: string[] = []
  if (br || zstd || gzip || encoding !== 'identity') names.push('accept-encoding')
  if (hasMarkdown) names.push('accept')
  if (snippets?.variesByLanguage) names.push('accept-language')
  if (isProtected) names.push('cookie')
  if (isForProgram) names.push('authorization', 'dropway-guest')
  return names.join(', ')
}
