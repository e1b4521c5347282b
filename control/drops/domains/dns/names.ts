/** Names that could be an owner's own: what may be added, where a name lies in its zone. No I/O. */
import { MAX_HOST_CHARS } from '../../../../shared/contracts/limits.ts'
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { parse as parseSuffix } from 'tldts'
import { isHostname } from '../../../../shared/http/hosts.ts'

export interface OwnNames {
  readonly serviceHost: string
  readonly sitesDomain: string
}

export type ParsedDomain = { readonly domain: string } | { readonly problem: string }

const WILDCARD = '*.'
/** A name below a wildcard that its owner has hardly given to anything else: there it is seen where visitors end up. */
const LOOKED_AT_LABEL = 'dropway-check'

/** Does it stand for every name directly below another? */
export function isWildcard(domain: string): boolean {
  return domain.startsWith(WILDCARD)
}

/** The name that a wildcard is below; any other name itself. */
export function baseOf(domain: string): string {
  return isWildcard(domain) ? domain.slice(WILDCARD.length) : domain
}

/** A name that visitors of the domain could type. */
export function visitedName(domain: string): string {
  return isWildcard(domain) ? `${LOOKED_AT_LABEL}.${baseOf(domain)}` : domain
}

/** Names that mean nothing in the public DNS (RFC 6761 and its registry, ICANN's reserved ones), with what they are for. */
const NOT_PUBLIC: ReadonlyMap<string, string> = new Map([
  ['local', 'names on a local network (RFC 6762)'],
  ['internal', 'private networks'],
  ['onion', 'the Tor network (RFC 7686)'],
  ['alt', 'names outside of DNS (RFC 9476)'],
  ['arpa', 'the infrastructure of the internet'],
  ['invalid', 'names that must not exist (RFC 6761)'],
  ['localhost', 'this machine itself (RFC 6761)'],
  ...['home', 'lan', 'corp', 'intranet', 'private', 'localdomain'].map((name) => [name, 'private networks'] as const),
])

/** Free to use where no outsider is served; no certificate authority issues for them. */
const FOR_DEVELOPMENT: ReadonlyMap<string, string> = new Map([
  ['test', 'tests (RFC 6761)'],
  ...['example', 'example.com', 'example.net', 'example.org'].map((name) => [name, 'examples (RFC 6761)'] as const),
])

/** Authorities refuse longer ones, and each label costs a question about CAA. */
const MAX_LABELS = 10

/** What the owner typed → an A-label name that could be theirs, or a sentence that says why not. */
export function parseDomain(input: string, own: OwnNames): ParsedDomain {
  const typed = input.trim().replace(/\.$/, '')
  if (!isWildcard(typed)) return parseName(typed, own)
  const base = parseName(baseOf(typed), own)
  if ('problem' in base) return base
  return isHostname(visitedName(`${WILDCARD}${base.domain}`))
    ? { domain: `${WILDCARD}${base.domain}` }
    : { problem: `"${base.domain}" is too long: there is no room for names below it.` }
}

function parseName(typed: string, own: OwnNames): ParsedDomain {
  if (isIP(typed) !== 0) return { problem: 'Use a domain name, not an address.' }
  // Only names go into the converter: it would read a URL's host out of anything longer.
  const domain = /[\s/:@?#\\%[\]]/.test(typed) ? '' : domainToASCII(typed)
  if (domain === '' || !isHostname(domain))
    return { problem: `"${typed.slice(0, MAX_HOST_CHARS)}" is not a domain name. Write it like www.example.com.` }
  if (domain.split('.').length > MAX_LABELS)
    return {
      problem: `"${domain}" has more than ${MAX_LABELS} parts. No certificate authority issues for such a name.`,
    }
  const { domain: registrable, isIp } = parseSuffix(domain, { allowPrivateDomains: true })
  if (isIp || /^\d+$/.test(domain.slice(domain.lastIndexOf('.') + 1)))
    return { problem: 'Use a domain name, not an address.' }
  if (isOurs(domain, own)) return { problem: `"${domain}" belongs to the service. Use a domain of your own.` }
  const purpose = specialUse(domain, isForDevelopment(own.serviceHost))
  if (purpose !== undefined)
    return {
      problem: `"${domain}" cannot be reached from the internet: names like it are kept for ${purpose}. Use a registered domain.`,
    }
  if (registrable === null) return { problem: `"${domain}" is a public suffix. Use a name below it.` }
  return { domain }
}

/** What the name is kept for, where it is no name of the public DNS. */
function specialUse(domain: string, isDevelopment: boolean): string | undefined {
  for (const above of selfAndParents(domain)) {
    const purpose = NOT_PUBLIC.get(above) ?? (isDevelopment ? undefined : FOR_DEVELOPMENT.get(above))
    if (purpose !== undefined) return purpose
  }
  return undefined
}

/** A service that is itself at such a name has no visitors from outside. */
function isForDevelopment(serviceHost: string): boolean {
  return (
    serviceHost === 'localhost' ||
    isIP(serviceHost) !== 0 ||
    selfAndParents(serviceHost).some((above) => FOR_DEVELOPMENT.has(above) || NOT_PUBLIC.has(above))
  )
}

/** `a.b.c` → `a.b.c`, `b.c`, `c`. */
export function selfAndParents(domain: string): string[] {
  const labels = domain.split('.')
  return labels.map((_, index) => labels.slice(index).join('.'))
}

/** Our own names, anything below them, and anything above them. */
function isOurs(domain: string, { serviceHost, sitesDomain }: OwnNames): boolean {
  return [serviceHost, sitesDomain].some(
    (own) => domain === own || domain.endsWith(`.${own}`) || own.endsWith(`.${domain}`),
  )
}

/** The registrable name: what people have a zone for at their DNS provider. */
export function zoneOf(domain: string): string {
  const base = baseOf(domain)
  return parseSuffix(base, { allowPrivateDomains: true }).domain ?? base
}

/** The registrable name itself, where DNS allows no CNAME. */
export function isApex(domain: string): boolean {
  return zoneOf(domain) === domain
}

/** How providers want a name to be typed: relative to the zone, `@` for the zone itself. */
export function hostInZone(name: string, zone: string): string {
  if (name === zone) return '@'
  return name.endsWith(`.${zone}`) ? name.slice(0, -zone.length - 1) : name
}

/** apex ↔ www; undefined for any other name. */
export function pairOf(domain: string): string | undefined {
  if (isApex(domain)) return `www.${domain}`.length <= 253 ? `www.${domain}` : undefined
  const rest = domain.startsWith('www.') ? domain.slice(4) : ''
  return rest !== '' && isApex(rest) ? rest : undefined
}

/** As its owner would write it; null where that is the same. */
export function unicodeOf(domain: string): string | null {
  const base = baseOf(domain)
  const unicode = domainToUnicode(base)
  return unicode === '' || unicode === base ? null : domain.slice(0, -base.length) + unicode
}

/** For sentences: an international name in both forms, since DNS providers show either. */
export function inBothForms(domain: string): string {
  const unicode = unicodeOf(domain)
  return unicode === null ? domain : `${unicode} (${domain})`
}
