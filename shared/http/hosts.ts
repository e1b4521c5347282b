/**
 * Host names as they arrive and as they are owned. Everything is an ASCII, lower-case LDH name
 * (letters, digits, hyphens) without port and without trailing dot; IDNs appear as A-labels.
 */
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
  // `xn--…` would be an IDN; `12--slug` is a preview address.
  if (/^..--/.test(slug) || /^\d+--/.test(slug)) return 'prefixed'
  if (RESERVED_SLUGS.has(slug) || DNS_TARGET_PATTERN.test(slug)) return 'reserved'
  return undefined
}

export function siteHost(slug: string, sitesDomain: string): string {
  return `${slug}.${sitesDomain}`
}

/** `<number>--<slug>` of a preview address; undefined when the label would be too long for DNS. */
export function previewHost(versionNumber: number, slug: string, sitesDomain: string): string | undefined {
  const label = `${versionNumber}--${slug}`
  return label.length <= MAX_SLUG_CHARS ? `${label}.${sitesDomain}` : undefined
}

/** Splits a preview host into the version and the host of its site. */
export function parsePreviewHost(host: string): { versionNumber: number; siteHost: string } | undefined {
  const match = /^([1-9]\d{0,8})--(.+)$/.exec(host)
  const siteHost = match?.[2]
  return siteHost === undefined ? undefined : { versionNumber: Number(match?.[1]), siteHost }
}
