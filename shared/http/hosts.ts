/**
 * Host names as they arrive and as they are owned. Everything is an ASCII, lower-case LDH name
 * (letters, digits, hyphens) without port and without trailing dot; IDNs appear as A-labels.
 */
import { createHash } from 'node:crypto'
import { MAX_HOST_CHARS, MAX_SLUG_CHARS, MIN_SLUG_CHARS } from '../contracts/limits.ts'
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function isHostname(host: string): boolean {
  return host.length <= MAX_HOST_CHARS && host.split('.').every((label) => LABEL.test(label))
}

/**
 * `Host` header or `:authority` → host, or undefined when it is not a strict host name.
 * Case, a port and one trailing dot do not matter (RFC 9110 §4.2.3). IP literals are not hosts of ours.
 */
export function parseAuthority(authority: string | undefined): string | undefined {
  if (authority === undefined || authority.length > 260) return undefined
  const match = /^([^:@/\\?#\s[\]]+?)\.?(?::(\d{1,5}))?$/.exec(authority)
  const name = match?.[1]
  if (name === undefined || Number(match?.[2]) > 65535) return undefined
  const host = name.toLowerCase()
  return isHostname(host) ? host : undefined
}

/** The rule of SLUG_PATTERN and its lengths, for whoever chooses one. */
export const SLUG_RULE = `${MIN_SLUG_CHARS} to ${MAX_SLUG_CHARS} lower-case letters, digits and hyphens`
/** A DNS label: no hyphen at either end. */
const SLUG_PATTERN = /^[a-z0-9][a-z0-9-]*[a-z0-9]$/

/** Names that the service keeps for itself or that would mislead a visitor. */
const RESERVED_SLUGS: ReadonlySet<string> = new Set(
  `www api app mcp admin administrator root mail email smtp imap pop pop3 ftp sftp ssh ns ns1 ns2 ns3 dns mx
   webmail autoconfig autodiscover localhost local dropway dashboard account accounts login signin signup
   logout oauth auth sso id billing pay payment payments checkout stripe invoice support help status docs
   blog about contact legal terms privacy security abuse report trust staff internal static assets cdn edge
   control metrics health healthz gallery templates sites drops domains dev test staging preview beta
   wpad isatap postmaster hostmaster webmaster noreply no-reply example`.split(/\s+/),
)

/** What the CNAME of a custom domain points to: a name of the service, never a drop. */
const DNS_TARGET_PATTERN = /^t-[0-9a-f]{16}$/

export type SlugProblem = 'invalid' | 'reserved' | 'prefixed'

/** Why a slug may not be used, or undefined when it may (uniqueness is the database's word). */
export function slugProblem(slug: string): SlugProblem | undefined {
  if (slug.length < MIN_SLUG_CHARS || slug.length > MAX_SLUG_CHARS || !SLUG_PATTERN.test(slug)) return 'invalid'
  // `xn--…` would be an IDN; `12--slug` and `name--slug` are previews.
  if (slug.includes('--')) return 'prefixed'
  if (RESERVED_SLUGS.has(slug) || DNS_TARGET_PATTERN.test(slug)) return 'reserved'
  return undefined
}

export function siteHost(slug: string, sitesDomain: string): string {
  return `${slug}.${sitesDomain}`
}

/** Stands between what a preview shows and the slug of its drop; no slug has it. */
const PREVIEW_MARK = '--'
/** Told apart from other drops whose slugs begin alike. */
const SHORTENED_TAG_CHARS = 8

/**
 * The host of a preview: `<label>--<slug>`. A slug that is too long for that is cut, and told apart by a few characters
 * made of the drop's id; such a host has a record of its own (`preview` in route-record.ts).
 */
export function previewHost(label: string, site: { id: string; slug: string }, sitesDomain: string): string {
  const whole = label + PREVIEW_MARK + site.slug
  if (whole.length <= MAX_SLUG_CHARS) return siteHost(whole, sitesDomain)
  const tag = createHash('sha256').update(site.id).digest('hex').slice(0, SHORTENED_TAG_CHARS)
  const room = MAX_SLUG_CHARS - label.length - PREVIEW_MARK.length - tag.length - 1
  return siteHost(`${label}${PREVIEW_MARK}${site.slug.slice(0, room)}-${tag}`, sitesDomain)
}

export function isShortenedPreview(label: string, slug: string): boolean {
  return label.length + PREVIEW_MARK.length + slug.length > MAX_SLUG_CHARS
}

/** Splits a preview host into what it shows and the host of its site. */
export function parsePreviewHost(host: string): { label: string; siteHost: string } | undefined {
  const mark = host.indexOf(PREVIEW_MARK)
  const rest = host.slice(mark + PREVIEW_MARK.length)
  return mark < 1 || rest === '' || rest.startsWith('.') ? undefined : { label: host.slice(0, mark), siteHost: rest }
}

/**
 * What a preview label stands for: `12` a version by its number, `12-k3j5x7q2m4pa` a version by its number and a
 * signature that no one guesses, anything else a name.
 */
export type PreviewLabel =
  | { readonly kind: 'number'; readonly versionNumber: number }
  | { readonly kind: 'signed'; readonly versionNumber: number; readonly label: string }
  | { readonly kind: 'name'; readonly name: string }

export function readPreviewLabel(label: string): PreviewLabel | undefined {
  const [, digits, signature] = /^([1-9]\d{0,8})(?:-([a-z2-7]{12}))?$/.exec(label) ?? []
  if (digits !== undefined) {
    const versionNumber = Number(digits)
    return signature === undefined ? { kind: 'number', versionNumber } : { kind: 'signed', versionNumber, label }
  }
  return isPreviewName(label) ? { kind: 'name', name: label } : undefined
}

/** Leaves room for a part of the slug in a label of DNS. */
export const MAX_PREVIEW_NAME_CHARS = 40

/** `xn` would make an international name of the address. */
export function isPreviewName(name: string): boolean {
  return /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) && name.length <= MAX_PREVIEW_NAME_CHARS && name !== 'xn'
}
