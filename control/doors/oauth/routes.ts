/** Discovery, registration, tokens and revocation. The consent page is authorize.ts. */
import { ApiError } from '../../../shared/contracts/errors.ts'
import { SCOPES } from '../../ground/actor.ts'
import { json } from '../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../ground/http/route.ts'
import { ExchangeRefused, type Publishers } from '../../drops/publishers/publishers.ts'
import type { OAuth } from './oauth.ts'
import {
  exchangeOf,
  GRANT_SCOPES,
  GRANT_TYPES,
  OAuthError,
  requireSingle,
  TOKEN_EXCHANGE_GRANT,
  UntrustedRequest,
} from './rules.ts'

export const paths = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  device: '/oauth/device_authorization',
}

/** Browser-based clients call these endpoints from their own origin; nothing here depends on cookies. */
const OPEN = { 'access-control-allow-origin': '*' }
/** Clients announce their protocol version with a header of its own. */
const PREFLIGHT = {
  ...OPEN,
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'content-type, authorization, mcp-protocol-version',
  'access-control-max-age': '86400',
}
const MAX_BODY_BYTES = 16_384
/** A token that is too long is refused with its reason in the audit log; one that is longer than this is not read. */
const MAX_EXCHANGE_BYTES = 65_536

interface OAuthRoutesDependencies {
  readonly oauth: OAuth
  readonly publishers: Pick<Publishers, 'exchange'>
  readonly baseUrl: string
  /** Clients may describe themselves in a document. */
  readonly readsClientDocuments: boolean
  /** What people call the service. */
  readonly name: string
}

export function oauthRoutes({
  oauth,
  publishers,
  baseUrl,
  readsClientDocuments,
  name,
}: OAuthRoutesDependencies): Route[] {
  /** RFC 8693 for workflows, which are no clients of ours; everything else is a client's. */
  async function tokenFor(form: URLSearchParams, ip: string): Promise<object> {
    if (form.get('grant_type') !== TOKEN_EXCHANGE_GRANT) return oauth.token(form)
    requireSingle(form)
    return publishers.exchange(exchangeOf(form), ip).catch((error: unknown) => {
      throw error instanceof ExchangeRefused ? new OAuthError(error.kind, error.message) : error
    })
  }

  /** RFC 8414. */
  const authorizationServer = {
    issuer: baseUrl,
    authorization_endpoint: `${baseUrl}${paths.authorize}`,
    token_endpoint: `${baseUrl}${paths.token}`,
    registration_endpoint: `${baseUrl}${paths.register}`,
    revocation_endpoint: `${baseUrl}${paths.revoke}`,
    scopes_supported: GRANT_SCOPES,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    device_authorization_endpoint: `${baseUrl}${paths.device}`,
    grant_types_supported: [...GRANT_TYPES, TOKEN_EXCHANGE_GRANT],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: readsClientDocuments,
    service_documentation: `${baseUrl}/docs`,
  }
  /** RFC 9728. */
  const protectedResource = {
    resource: `${baseUrl}/mcp`,
    authorization_servers: [baseUrl],
    scopes_supported: ['mcp', ...SCOPES],
    bearer_methods_supported: ['header'],
    resource_name: name,
    resource_documentation: `${baseUrl}/docs`,
  }

  const preflight = (path: string): Route => ({
    method: 'OPTIONS',
    path,
    handle: () => ({ status: 204, headers: PREFLIGHT }),
  })
  const document = (path: string, body: unknown): Route[] => [
    { method: 'GET', path, handle: () => json(200, body, { ...OPEN, 'cache-control': 'max-age=300' }) },
    preflight(path),
  ]
  const endpoint = (path: string, wrongBody: string, run: (request: Request) => Promise<Reply>): Route[] => [
    { method: 'POST', path, handle: (request) => run(request).catch((error) => replyOf(error, wrongBody)) },
    preflight(path),
  ]

  return [
    ...document('/.well-known/oauth-authorization-server', authorizationServer),
    // Older clients take the address of the server itself for the issuer (RFC 8414 §3.1 puts its path behind).
    ...document('/.well-known/oauth-authorization-server/mcp', authorizationServer),
    ...document('/.well-known/oauth-protected-resource', protectedResource),
    ...document('/.well-known/oauth-protected-resource/mcp', protectedResource),
    ...document('/.well-known/oauth-protected-resource/mcp/', protectedResource),
    ...endpoint(paths.register, 'invalid_client_metadata', async (request) =>
      json(201, await oauth.register(await request.json(MAX_BODY_BYTES), request.ip), OPEN),
    ),
    ...endpoint(paths.token, 'invalid_request', async (request) =>
      json(200, await tokenFor(await formOf(request, MAX_EXCHANGE_BYTES), request.ip), { ...OPEN, pragma: 'no-cache' }),
    ),
    ...endpoint(paths.device, 'invalid_request', async (request) =>
      json(200, await oauth.device.authorize(await formOf(request), request.ip), { ...OPEN, pragma: 'no-cache' }),
    ),
    ...endpoint(paths.revoke, 'invalid_request', async (request) => {
      await oauth.revoke(await formOf(request))
      return { status: 200, headers: { ...OPEN, 'cache-control': 'no-store' } }
    }),
  ]
}

async function formOf(request: Request, maxBytes = MAX_BODY_BYTES): Promise<URLSearchParams> {
  // RFC 6749 §5.2: who tried to authenticate by a header hears of it in one.
  if (request.header('authorization') !== undefined)
    throw new OAuthError('invalid_client', 'Clients are public here: send client_id in the body and no secret.', 401)
  return request.form(maxBytes)
}

/** RFC 6749 §5.2 and RFC 7591 §3.2.2. What is our own fault is left to the server. */
function replyOf(error: unknown, wrongBody: string): Reply {
  if (error instanceof OAuthError) {
    const challenge: Record<string, string> = error.status === 401 ? { 'www-authenticate': 'Basic realm="oauth"' } : {}
    const body = { error: error.code, error_description: error.message }
    return json(error.status, body, { ...OPEN, ...challenge, pragma: 'no-cache' })
  }
  if (error instanceof UntrustedRequest) return replyOf(new OAuthError('invalid_client', error.message, 401), wrongBody)
  if (!(error instanceof ApiError) || error.status >= 500) throw error
  const code = error.status === 429 ? 'temporarily_unavailable' : wrongBody
  return json(error.status, { error: code, error_description: error.message }, { ...OPEN, ...error.headers })
}
