/**
 * Which web pages may call the MCP endpoint. Nothing here reads cookies: a page needs a token, which only its own
 * sign-in gives it. What remains to be refused is DNS rebinding, where a page of a stranger reaches a service inside
 * the visitor's network under its own name: there the origin is foreign and the service is not a public one.
 */
import { isIP } from 'node:net'
import { isPublicAddress } from '../../../../shared/http/ip.ts'

/** Names that only one machine or one network knows (RFC 6761, RFC 6762, RFC 8375). */
const LOCAL_NAMES = /(?:^|\.)(?:localhost|local|internal|lan|test|home\.arpa)$/

function isPublicService(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0) return isPublicAddress(host)
  return host.includes('.') && !LOCAL_NAMES.test(host)
}

/** A tool's page on the visitor's own machine, such as the inspector's. A drop of a local service is not one. */
function isLoopbackOrigin(origin: string): boolean {
  return /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/.test(origin)
}

export function createOriginCheck(baseUrl: string): (origin: string) => boolean {
  const isOpen = isPublicService(baseUrl)
  return (origin) => origin === baseUrl || isLoopbackOrigin(origin) || (isOpen && origin !== 'null')
}

/** What a page may send and read. Credentials are not allowed: a browser then sends no cookie. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    vary: 'origin',
    'access-control-expose-headers': 'www-authenticate, mcp-session-id, mcp-protocol-version, retry-after',
  }
}

export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, accept, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, last-event-id',
  'access-control-max-age': '86400',
}
