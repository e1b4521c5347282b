/** Decisions of the authorization server: no I/O, no clock. RFC numbers stand where the rule comes from. */
import { isPreviewName } from '../../../shared/http/hosts.ts'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { equalTexts } from '../../../shared/secrets/secrets.ts'
import { SCOPES, type Scope } from '../../ground/actor.ts'

/** A resource as a whole, with everything that it offers. */
const WHOLE_SCOPES = ['mcp', 'cli'] as const
type WholeScope = (typeof WHOLE_SCOPES)[number]

/** What a client can ask for: a resource as a whole, or less of it. */
export const GRANT_SCOPES = [...WHOLE_SCOPES, ...SCOPES] as const
export type GrantScope = (typeof GRANT_SCOPES)[number]

/** What narrows a grant; null when it is for everything that its resource offers. */
export function accessScopesOf(granted: readonly string[]): readonly Scope[] | null {
  const narrowed = SCOPES.filter((scope) => granted.includes(scope))
  return narrowed.length > 0 ? narrowed : null
}

/** RFC 8628 §3.4. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** RFC 8693 §2.1: a workflow's own token for one of ours. It needs no client. */
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const SUBJECT_TOKEN_TYPES: readonly string[] = [
  'urn:ietf:params:oauth:token-type:jwt',
  'urn:ietf:params:oauth:token-type:id_token',
]

/** What an exchange asks for. `audience` and `resource` say where we are, which the token itself has to say. */
export function exchangeOf(form: URLSearchParams): { token: string; site: string; preview: string | null } {
  const given = requireParameters(form, ['subject_token', 'subject_token_type', 'site'])
  if (!SUBJECT_TOKEN_TYPES.includes(given.subject_token_type))
    throw new OAuthError('invalid_request', `subject_token_type is one of ${SUBJECT_TOKEN_TYPES.join(', ')}.`)
  const scope = form.get('scope')
  if (scope && scope !== 'publish') throw new OAuthError('invalid_scope', 'An exchange gives the scope publish.')
  const preview = form.get('preview') || null
  if (preview !== null && !isPreviewName(preview))
    throw new OAuthError('invalid_request', 'preview is the name of a preview, such as pr-12.')
  return { token: given.subject_token, site: given.site, preview }
}

export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT] as const

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

/** The request cannot be answered by a redirect, because the client or its address is not known. */
export class UntrustedRequest extends Error {}

/** The client's own document cannot be read from here. It may register instead. */
export class UnreachableDocument extends UntrustedRequest {}

/** What each resource accepts: a token is made for one resource and useless at the other (RFC 8707). */
export function resourcesOf(baseUrl: string): ReadonlyMap<string, WholeScope> {
  return new Map([
    [`${baseUrl}/mcp`, 'mcp'],
    [`${baseUrl}/api/v1`, 'cli'],
  ])
}

/** RFC 6749 §3.3: what we do not know (`offline_access`, `openid`) is left out, and the answer says what was granted. */
function knownScopes(scope: string | null | undefined): GrantScope[] {
  const wanted = new Set(scope?.split(' '))
  return GRANT_SCOPES.filter((known) => wanted.has(known))
}

/**
 * The audience and the scopes of a grant: what was asked for, narrowed to what the resource accepts. Where `read`,
 * `publish` or `manage` stands beside the resource's own scope, or alone, the grant is for no more than that.
 */
export function decideGrant(
  asked: { scope: string | undefined; resource: string | undefined },
  baseUrl: string,
): { resource: string; scopes: GrantScope[] } {
  const resources = resourcesOf(baseUrl)
  const wanted = knownScopes(asked.scope)
  const resource =
    asked.resource ?? (wanted.includes('cli') && !wanted.includes('mcp') ? `${baseUrl}/api/v1` : `${baseUrl}/mcp`)
  const whole = resources.get(resource)
  if (whole === undefined) throw new OAuthError('invalid_target', `"${resource}" is not a resource of this server.`)
  if (wanted.length === 0) return { resource, scopes: [whole] }
  const scopes = wanted.filter((scope) => scope === whole || SCOPES.some((narrow) => narrow === scope))
  if (scopes.length === 0)
    throw new OAuthError('invalid_scope', `This resource takes the scopes ${[whole, ...SCOPES].join(', ')}.`)
  return { resource, scopes }
}

/** Redirect URIs that a client may register: https, loopback http, or a private-use scheme (RFC 8252 §7). */
export function isAcceptableRedirect(uri: string): boolean {
  // The parser drops line breaks and turns backslashes around: what is compared and sent must be what is meant.
  if (/[^\x21-\x7e]|[#\\]/.test(uri)) return false
  const url = URL.parse(uri)
  if (!url || url.username !== '' || url.password !== '') return false
  if (url.protocol === 'http:') return isLoopbackHost(url.hostname)
  // A private-use scheme is a reversed domain or an app name, never one that a browser runs or reads by itself;
  // https is none of them.
  return !FORBIDDEN_SCHEMES.has(url.protocol)
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

/**
 * Who gets the answer, in words that nothing in the address can fake: a host is one only behind https, a program of
 * the person's machine behind loopback, and whatever else stands in front of the colon is an app's own scheme.
 */
export type ReturnPlace =
  | { readonly kind: 'site'; readonly host: string }
  | { readonly kind: 'own-machine' }
  | { readonly kind: 'app'; readonly scheme: string }

export function returnPlace(redirectUri: string): ReturnPlace {
  const url = new URL(redirectUri)
  if (url.protocol === 'https:' && !isLoopbackHost(url.hostname)) return { kind: 'site', host: url.host }
  if (url.protocol === 'https:' || url.protocol === 'http:') return { kind: 'own-machine' }
  return { kind: 'app', scheme: url.protocol }
}

const LOOPBACK_REDIRECT = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?(?=[/?]|$)(.*)$/

/** Leads to a program on the person's own machine. */
export function isLoopbackRedirect(uri: string): boolean {
  return LOOPBACK_REDIRECT.test(uri)
}

/** Exact match, byte by byte; only the port of a loopback redirect is free (RFC 8252 §7.3). */
export function isRegisteredRedirect(uri: string, registered: readonly string[]): boolean {
  if (!isAcceptableRedirect(uri)) return false
  if (registered.includes(uri)) return true
  const asked = LOOPBACK_REDIRECT.exec(uri)
  return (
    asked !== null &&
    registered.some((candidate) => {
      const known = LOOPBACK_REDIRECT.exec(candidate)
      return known !== null && known[1] === asked[1] && known[2] === asked[2]
    })
  )
}

/** The client's address with the answer behind whatever query it has (RFC 6749 §3.1.2: that query stays as it is). */
export function withAnswer(redirectUri: string, answer: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(answer).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${new URLSearchParams(given)}`
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
  .max(10)
  .default([])

/** Shown to a person who decides by it: nothing invisible, nothing that turns the text around. */
const clientName = z
  .string()
  .max(200)
  .transform((name) => name.replaceAll(/\p{C}/gu, '').trim().slice(0, 80) || undefined)
  .optional()

/** Without redirects when it never comes back by a browser. */
const grantTypes = z
  .array(z.string().max(200))
  .max(20)
  .refine(
    (types) => types.includes('authorization_code') || types.includes(DEVICE_GRANT),
    'must include authorization_code or the device grant',
  )
  .optional()

function hasItsRedirects(metadata: { redirect_uris: unknown[]; grant_types?: string[] | undefined }): boolean {
  const isDevice = metadata.grant_types !== undefined && !metadata.grant_types.includes('authorization_code')
  return isDevice || metadata.redirect_uris.length > 0
}

const MISSING_REDIRECTS = { path: ['redirect_uris'], message: 'needs at least one redirect URI' }

/** RFC 7591 metadata that we look at; the rest is ignored or replaced, as the RFC says. */
export const registrationSchema = z
  .object({
    redirect_uris: redirectUris,
    client_name: clientName,
    grant_types: grantTypes,
    response_types: z
      .array(z.string())
      .refine((types) => types.length === 0 || types.includes('code'), 'must include code')
      .optional(),
  })
  .refine(hasItsRedirects, MISSING_REDIRECTS)

/** A client-id metadata document: it must name its own address. */
export const clientDocumentSchema = z
  .object({ client_id: z.string(), client_name: clientName, redirect_uris: redirectUris, grant_types: grantTypes })
  .refine(hasItsRedirects, MISSING_REDIRECTS)

/** `https://app.example/oauth/client.json`: https, with a path, without tricks. */
export function isClientDocumentUrl(clientId: string): boolean {
  const url = URL.parse(clientId)
  return (
    url !== null &&
    url.protocol === 'https:' &&
    url.pathname.length > 1 &&
    url.hash === '' &&
    url.username === '' &&
    url.password === '' &&
    url.href === clientId
  )
}

export function requireSameResource(form: URLSearchParams, resource: string): void {
  if (form.has('resource') && form.get('resource') !== resource)
    throw new OAuthError('invalid_target', 'The token was granted for another resource.')
}

export function requireSubset(scope: string | null, granted: readonly string[]): void {
  if (knownScopes(scope).some((wanted) => !granted.includes(wanted)))
    throw new OAuthError('invalid_scope', 'A refresh cannot widen the scope.')
}

/** RFC 6749 §3.1: parameters must not be repeated. */
export function requireSingle(parameters: URLSearchParams): void {
  const names = [...parameters.keys()]
  if (new Set(names).size !== names.length) throw new OAuthError('invalid_request', 'A parameter is given twice.')
}

/** RFC 6749 §3.2: an empty parameter counts as missing. */
export function requireParameters<Name extends string>(
  form: URLSearchParams,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  const given = names.map((name) => {
    const value = form.get(name)
    if (!value) throw new OAuthError('invalid_request', `${name} is missing.`)
    return [name, value] as const
  })
  return Object.fromEntries(given) as Record<Name, string>
}
