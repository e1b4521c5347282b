/** Decisions of the authorization server: no I/O, no clock. RFC numbers stand where the rule comes from. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { equalTexts } from '../../shared/secrets.ts'

export const SCOPES = ['mcp', 'cli'] as const
export type Scope = (typeof SCOPES)[number]

/** An OAuth error as RFC 6749 §5.2 writes it. */
export class OAuthError extends Error {
  readonly code: string
  readonly status: number
  constructor(code: string, description: string, status = 400) {
    super(description)
    this.code = code
    this.status = status
  }
}

/** What each resource accepts: a token is made for one resource and useless at the other (RFC 8707). */
export function resourcesOf(baseUrl: string): ReadonlyMap<string, Scope> {
  return new Map([
    [`${baseUrl}/mcp`, 'mcp'],
    [`${baseUrl}/api/v1`, 'cli'],
  ])
}

/** The audience and the scopes of a grant: what was asked for, narrowed to what the resource accepts. */
export function decideGrant(
  asked: { scope: string | undefined; resource: string | undefined },
  baseUrl: string,
): { resource: string; scopes: Scope[] } {
  const resources = resourcesOf(baseUrl)
  const wanted = (asked.scope ?? '').split(' ').filter((scope) => scope !== '')
  const unknown = wanted.find((scope) => !SCOPES.some((known) => known === scope))
  if (unknown !== undefined) throw new OAuthError('invalid_scope', `There is no scope "${unknown}". Use mcp or cli.`)
  const resource =
    asked.resource ?? (wanted.includes('cli') && !wanted.includes('mcp') ? `${baseUrl}/api/v1` : `${baseUrl}/mcp`)
  const scope = resources.get(resource)
  if (scope === undefined) throw new OAuthError('invalid_target', `"${resource}" is not a resource of this server.`)
  if (wanted.length > 0 && !wanted.includes(scope))
    throw new OAuthError('invalid_scope', `This resource takes the scope ${scope}.`)
  return { resource, scopes: [scope] }
}

/** Redirect URIs that a client may register: https, loopback http, or a private-use scheme (RFC 8252 §7). */
export function isAcceptableRedirect(uri: string): boolean {
  const url = URL.parse(uri)
  if (!url || url.hash !== '' || uri.includes('#') || url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:') return true
  if (url.protocol === 'http:') return isLoopbackHost(url.hostname)
  // A private-use scheme is a reversed domain or an app name, never one that a browser runs or reads by itself.
  return /^[a-z][a-z0-9+.-]*:$/.test(url.protocol) && !FORBIDDEN_SCHEMES.has(url.protocol)
}

const FORBIDDEN_SCHEMES: ReadonlySet<string> = new Set([
  'javascript:',
  'data:',
  'vbscript:',
  'file:',
  'blob:',
  'about:',
  'ftp:',
  'ws:',
  'wss:',
  'view-source:',
  'filesystem:',
  'mailto:',
  'tel:',
  'sms:',
  'intent:',
])

function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
}

/** Exact match; only the port of a loopback redirect is free (RFC 8252 §7.3). */
export function isRegisteredRedirect(uri: string, registered: readonly string[]): boolean {
  if (registered.includes(uri)) return isAcceptableRedirect(uri)
  const url = URL.parse(uri)
  if (!url || url.protocol !== 'http:' || !isLoopbackHost(url.hostname) || !isAcceptableRedirect(uri)) return false
  return registered.some((candidate) => {
    const known = URL.parse(candidate)
    return (
      known !== null &&
      known.protocol === 'http:' &&
      known.hostname === url.hostname &&
      known.pathname === url.pathname &&
      known.search === url.search
    )
  })
}

/** RFC 7636 §4.1: 43 to 128 unreserved characters; S256 only. */
export function isVerified(verifier: string, challenge: string): boolean {
  return (
    /^[A-Za-z0-9\-._~]{43,128}$/.test(verifier) &&
    equalTexts(createHash('sha256').update(verifier).digest('base64url'), challenge)
  )
}

export const challengePattern = /^[A-Za-z0-9_-]{43}$/

const redirectUris = z
  .array(
    z
      .string()
      .max(500)
      .refine(isAcceptableRedirect, 'must be https, loopback http or a private-use scheme, without a fragment'),
  )
  .min(1, 'needs at least one redirect URI')
  .max(10)

/** RFC 7591 metadata that we look at; the rest is ignored, as the RFC says. */
export const registrationSchema = z.object({
  redirect_uris: redirectUris,
  client_name: z.string().trim().min(1).max(80).optional(),
  grant_types: z.array(z.string()).optional(),
  response_types: z.array(z.string()).optional(),
  token_endpoint_auth_method: z.string().optional(),
  scope: z.string().optional(),
})

/** A client-id metadata document: it must name its own address. */
export const clientDocumentSchema = z.object({
  client_id: z.string(),
  client_name: z.string().trim().min(1).max(80).optional(),
  redirect_uris: redirectUris,
})

/** `https://app.example/oauth/client.json`: https, with a path, without tricks. */
export function isClientDocumentUrl(clientId: string): boolean {
  const url = URL.parse(clientId)
  return (
    url !== null &&
    url.protocol === 'https:' &&
    url.pathname.length > 1 &&
    url.hash === '' &&
    url.username === '' &&
    url.href === clientId
  )
}
