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

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
/** RFC 9110 §5.5, without bytes beyond ASCII, which intermediaries do not agree on. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/

/** `name` in lower case. */
export function maySetHeader(name: string): boolean {
  return TOKEN.test(name) && !SERVICE_HEADERS.has(name) && !name.startsWith('dropway-')
}

export function isHeaderValue(value: string): boolean {
  return FIELD_VALUE.test(value)
}
