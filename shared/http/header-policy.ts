/** Which response headers are the service's word and which ones a publisher may set in `_headers`. */

/** No `includeSubDomains`: on a custom domain the other names are not ours to decide about. */
export const STRICT_TRANSPORT_SECURITY = 'max-age=31536000'

/**
 * Never from `_headers`: what the edge computes from the bytes, what frames the message (RFC 9110 §7.6.1, RFC 9112 §6),
 * what protects the visitor, and cookies (a drop is static; they would be shared by every visitor).
 */
const SERVICE_HEADERS: ReadonlySet<string> = new Set(
  `strict-transport-security x-content-type-options dropway-version location set-cookie set-cookie2
   content-length content-encoding content-range accept-ranges etag last-modified date age vary
   connection keep-alive proxy-connection transfer-encoding te trailer upgrade http2-settings alt-svc
   allow server status host www-authenticate proxy-authenticate clear-site-data public-key-pins
   public-key-pins-report-only`.split(/\s+/),
)

/** The later one counts when two rules, or two lines of one, set one of these. All other headers are lists and grow. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set(
  `content-type content-disposition expires age
   access-control-allow-origin access-control-allow-credentials access-control-max-age
   timing-allow-origin cross-origin-opener-policy cross-origin-embedder-policy
   cross-origin-resource-policy origin-agent-cluster referrer-policy x-frame-options x-xss-protection
   x-dns-prefetch-control service-worker-allowed refresh`.split(/\s+/),
)
/** Lists (RFC 9111 §5.2), so that lines of one rule are joined; but the rule of a narrower path means its policy instead. */
const CACHE_POLICIES: ReadonlySet<string> = new Set(['cache-control', 'cdn-cache-control'])

/** `name` in lower case. Of several lines of one rule only one counts. */
export function isSingleHeader(name: string): boolean {
  return SINGLE_HEADERS.has(name)
}

/** `name` in lower case. A later rule replaces what an earlier one set, instead of adding to it. */
export function isReplacedByLaterRule(name: string): boolean {
  return SINGLE_HEADERS.has(name) || CACHE_POLICIES.has(name)
}

const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/
/** RFC 9110 §5.5: visible ASCII, space and tab, and Latin-1, which Node sends as it is. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export function isHeaderName(name: string): boolean {
  return NAME.test(name)
}

export function isHeaderValue(value: string): boolean {
  return VALUE.test(value)
}

/** Ours, and orders to servers that an operator may have put in front, which would send files of their own for them. */
const RESERVED_BEGINNINGS = ['dropway-', 'x-accel-', 'x-sendfile', 'x-lighttpd-send', 'x-litespeed-', 'x-reproxy-']

/** `name` in lower case, and a header name at all. */
export function maySetHeader(name: string): boolean {
  return (
    isHeaderName(name) &&
    !SERVICE_HEADERS.has(name) &&
    !RESERVED_BEGINNINGS.some((beginning) => name.startsWith(beginning))
  )
}
