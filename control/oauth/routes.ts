/** Discovery, registration, tokens and revocation. The consent page is authorize.ts. */
import { errors } from '../../shared/errors.ts'
import { json } from '../http/reply.ts'
import type { Reply, Request, Route } from '../http/route.ts'
import type { OAuth } from './oauth.ts'
import { OAuthError, SCOPES } from './rules.ts'

export const paths = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
}

/** Browser-based clients call these endpoints from their own origin; nothing here depends on cookies. */
const OPEN = { 'access-control-allow-origin': '*' }
const MAX_FORM_BYTES = 16_384

export function oauthRoutes({ oauth, baseUrl }: { oauth: OAuth; baseUrl: string }): Route[] {
  /** RFC 8414. */
  const authorizationServer = {
    issuer: baseUrl,
    authorization_endpoint: `${baseUrl}${paths.authorize}`,
    token_endpoint: `${baseUrl}${paths.token}`,
    registration_endpoint: `${baseUrl}${paths.register}`,
    revocation_endpoint: `${baseUrl}${paths.revoke}`,
    scopes_supported: SCOPES,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    service_documentation: `${baseUrl}/docs`,
  }
  /** RFC 9728. */
  const protectedResource = {
    resource: `${baseUrl}/mcp`,
    authorization_servers: [baseUrl],
    scopes_supported: ['mcp'],
    bearer_methods_supported: ['header'],
    resource_name: 'Dropway',
    resource_documentation: `${baseUrl}/docs`,
  }

  const document = (path: string, body: unknown): Route => ({
    method: 'GET',
    path,
    handle: () => json(200, body, { ...OPEN, 'cache-control': 'max-age=300' }),
  })
  const endpoint = (path: string, run: (request: Request) => Promise<Reply>): Route => ({
    method: 'POST',
    path,
    handle: (request) => run(request).catch(replyOf),
  })

  return [
    document('/.well-known/oauth-authorization-server', authorizationServer),
    document('/.well-known/oauth-protected-resource', protectedResource),
    document('/.well-known/oauth-protected-resource/mcp', protectedResource),
    endpoint(paths.register, async (request) =>
      json(201, await oauth.register(await request.json(), request.ip), OPEN),
    ),
    endpoint(paths.token, async (request) =>
      json(200, await oauth.token(await formOf(request)), { ...OPEN, pragma: 'no-cache' }),
    ),
    endpoint(paths.revoke, async (request) => {
      await oauth.revoke(await formOf(request))
      return { status: 200, headers: { ...OPEN, 'cache-control': 'no-store' } }
    }),
  ]
}

async function formOf(request: Request): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.header('content-type') ?? ''))
    throw errors.unsupportedMediaType('application/x-www-form-urlencoded')
  return new URLSearchParams(await request.text(MAX_FORM_BYTES))
}

/** RFC 6749 §5.2. */
function replyOf(error: unknown): Reply {
  if (error instanceof OAuthError)
    return json(error.status, { error: error.code, error_description: error.message }, OPEN)
  throw error
}
