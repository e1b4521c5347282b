/**
 * The authorization server: OAuth 2.1 with PKCE for MCP clients and the command line.
 * Consent makes a grant; a code, access tokens and a chain of refresh tokens hang on it. Whatever smells of a copied
 * code or token (second use) ends the grant with everything on it.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, type Clock } from '../../shared/clock.ts'
import { errors } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { limitKeyOfIp } from '../../shared/ip.ts'
import { hashSecret, randomSecret } from '../../shared/secrets.ts'
import { OAUTH_TOKEN_PREFIX } from '../accounts/access.ts'
import type { Actor } from '../accounts/actor.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import * as queries from './queries.ts'
import {
  challengePattern,
  clientDocumentSchema,
  decideGrant,
  isClientDocumentUrl,
  isRegisteredRedirect,
  isVerified,
  OAuthError,
  registrationSchema,
  type Scope,
} from './rules.ts'

const CODE_LIFETIME_MS = MINUTE_MS
const ACCESS_LIFETIME_MS = HOUR_MS
const REFRESH_LIFETIME_MS = 60 * DAY_MS
/** A registration that nobody used for this long was a probe. */
const UNUSED_CLIENT_LIFETIME_MS = 7 * DAY_MS
const REGISTRATIONS_PER_HOUR = 60
const DOCUMENT_LIMITS = { maxBytes: 64 * 1024, timeoutMs: 3000 }
const TOUCH_INTERVAL_MS = MINUTE_MS

export interface AuthorizationRequest {
  readonly client: queries.ClientRow
  readonly redirectUri: string
  readonly state: string | undefined
  readonly challenge: string
  readonly resource: string
  readonly scopes: readonly Scope[]
}

export interface TokenReply {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token: string
  readonly scope: string
}

interface OAuthDeps {
  sql: Pool
  clock: Clock
  baseUrl: string
  limiter: RateLimiter
  /** Reads a client-id metadata document from the public internet. */
  fetchDocument(url: string, limits: { maxBytes: number; timeoutMs: number }): Promise<Buffer>
}

/** The request cannot be answered by a redirect, because the client or its address is not known. */
export class UntrustedRequest extends Error {}

export type OAuth = ReturnType<typeof createOAuth>

export function createOAuth({ sql, clock, baseUrl, limiter, fetchDocument }: OAuthDeps) {
  const now = (): Date => new Date(clock.now())

  async function findClient(clientId: string): Promise<queries.ClientRow | undefined> {
    if (!isClientDocumentUrl(clientId)) return queries.findClient(sql, clientId)
    const bytes = await fetchDocument(clientId, DOCUMENT_LIMITS).catch((error: Error) => {
      throw new UntrustedRequest(`The client's metadata document could not be read: ${error.message}.`)
    })
    const document = clientDocumentSchema.safeParse(parseJson(bytes))
    if (!document.success || document.data.client_id !== clientId)
      throw new UntrustedRequest("The client's metadata document does not describe this client.")
    return {
      id: clientId,
      name: document.data.client_name ?? new URL(clientId).hostname,
      redirect_uris: document.data.redirect_uris,
    }
  }

  async function issue(db: Sql, grant: queries.GrantRow): Promise<TokenReply> {
    const access = `${OAUTH_TOKEN_PREFIX}${randomSecret()}`
    const refresh = `dwr_${randomSecret()}`
    await queries.deleteAccessTokens(db, grant.id)
    await queries.insertToken(db, {
      hash: hashSecret(access),
      grant_id: grant.id,
      kind: 'access',
      expires_at: new Date(clock.now() + ACCESS_LIFETIME_MS),
    })
    await queries.insertToken(db, {
      hash: hashSecret(refresh),
      grant_id: grant.id,
      kind: 'refresh',
      expires_at: new Date(clock.now() + REFRESH_LIFETIME_MS),
    })
    return {
      access_token: access,
      token_type: 'Bearer',
      expires_in: ACCESS_LIFETIME_MS / 1000,
      refresh_token: refresh,
      scope: grant.scopes.join(' '),
    }
  }

  /** Revokes in a transaction of its own: the refusal that follows must not undo it. */
  async function endGrant(grantId: string): Promise<void> {
    await queries.revokeGrant(sql, grantId, now())
  }

  async function exchangeCode(form: URLSearchParams): Promise<TokenReply> {
    const hash = hashSecret(form.get('code') ?? '')
    const outcome = await transaction(sql, async (db) => {
      const code = await queries.lockCode(db, hash)
      if (!code || code.client_id !== form.get('client_id'))
        throw invalidGrant('The code is unknown, or it belongs to another client.')
      if (code.used_at) return { reused: code.id }
      if (code.revoked_at || code.expires_at.getTime() <= clock.now())
        throw invalidGrant('The code has expired. Start again.')
      // OAuth 2.1 no longer asks for it here; what is given must still be right.
      if (form.has('redirect_uri') && code.redirect_uri !== form.get('redirect_uri'))
        throw invalidGrant('redirect_uri differs from the one of the authorization request.')
      if (!isVerified(form.get('code_verifier') ?? '', code.challenge))
        throw invalidGrant('code_verifier does not match the challenge.')
      requireSameResource(form, code.resource)
      await queries.markCodeUsed(db, hash, now())
      await queries.touchClient(db, code.client_id, now())
      return { reply: await issue(db, code) }
    })
    if (outcome.reply) return outcome.reply
    await endGrant(outcome.reused)
    throw invalidGrant('The code was used before. Everything that came from it has been revoked.')
  }

  async function refresh(form: URLSearchParams): Promise<TokenReply> {
    const hash = hashSecret(form.get('refresh_token') ?? '')
    const outcome = await transaction(sql, async (db) => {
      const token = await queries.lockToken(db, hash)
      if (!token || token.kind !== 'refresh' || token.client_id !== form.get('client_id'))
        throw invalidGrant('The refresh token is unknown, or it belongs to another client.')
      if (token.used_at) return { reused: token.id }
      if (token.revoked_at || token.expires_at.getTime() <= clock.now())
        throw invalidGrant('The refresh token has expired or was revoked. Sign in again.')
      requireSameResource(form, token.resource)
      requireSubset(form.get('scope'), token.scopes)
      await queries.markTokenUsed(db, hash, now())
      return { reply: await issue(db, token) }
    })
    if (outcome.reply) return outcome.reply
    await endGrant(outcome.reused)
    throw invalidGrant('The refresh token was used before. Everything that came from it has been revoked.')
  }

  return {
    /** RFC 7591. Clients are public: no secret is handed out. */
    async register(body: unknown, ip: string) {
      await limiter.consume('oauth-register', limitKeyOfIp(ip), { points: REGISTRATIONS_PER_HOUR, windowSeconds: 3600 })
      const parsed = registrationSchema.safeParse(body)
      if (!parsed.success) {
        const issue = parsed.error.issues[0]!
        throw new OAuthError(
          issue.path[0] === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata',
          `${issue.path.join('.')}: ${issue.message}`,
        )
      }
      const client = {
        id: newId('cli', clock.now()),
        name: parsed.data.client_name ?? 'Unnamed client',
        redirect_uris: parsed.data.redirect_uris,
      }
      await queries.insertClient(sql, client, now())
      return {
        client_id: client.id,
        client_id_issued_at: Math.floor(clock.now() / 1000),
        client_name: client.name,
        redirect_uris: client.redirect_uris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      }
    },

    /**
     * Checks an authorization request in two steps (RFC 6749 §4.1.2.1): until client and redirect URI are known to
     * belong together, errors are shown here (UntrustedRequest); after that they go back to the client (OAuthError).
     */
    async checkRequest(
      query: URLSearchParams,
    ): Promise<
      { request: AuthorizationRequest } | { error: OAuthError; redirectUri: string; state: string | undefined }
    > {
      const client = await findClient(query.get('client_id') ?? '')
      if (!client)
        throw new UntrustedRequest('This client is not registered, or its registration has expired. Connect it again.')
      const redirectUri =
        query.get('redirect_uri') ?? (client.redirect_uris.length === 1 ? client.redirect_uris[0]! : '')
      if (!isRegisteredRedirect(redirectUri, client.redirect_uris))
        throw new UntrustedRequest('The address to return to is not registered for this client.')
      const state = query.get('state') ?? undefined
      try {
        requireSingle(query)
        if (query.get('response_type') !== 'code')
          throw new OAuthError('unsupported_response_type', 'Use response_type=code.')
        if (query.get('code_challenge_method') !== 'S256' || !challengePattern.test(query.get('code_challenge') ?? ''))
          throw new OAuthError('invalid_request', 'PKCE with code_challenge_method=S256 is required.')
        const grant = decideGrant(
          { scope: query.get('scope') ?? undefined, resource: query.get('resource') ?? undefined },
          baseUrl,
        )
        return { request: { client, redirectUri, state, challenge: query.get('code_challenge')!, ...grant } }
      } catch (error) {
        if (error instanceof OAuthError) return { error, redirectUri, state }
        throw error
      }
    },

    /** The person said yes. Returns where to send the browser. */
    async allow(actor: Actor, request: AuthorizationRequest): Promise<string> {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      const code = randomSecret()
      const grant = {
        id: newId('cli', clock.now()),
        client_id: request.client.id,
        client_name: request.client.name,
        user_id: actor.userId,
        org_id: actor.orgId,
        scopes: [...request.scopes],
        resource: request.resource,
        created_at: now(),
      }
      await transaction(sql, async (db) => {
        await queries.insertGrant(db, grant)
        await queries.insertCode(db, {
          hash: hashSecret(code),
          grant_id: grant.id,
          redirect_uri: request.redirectUri,
          challenge: request.challenge,
          expires_at: new Date(clock.now() + CODE_LIFETIME_MS),
        })
        await recordAudit(db, {
          orgId: actor.orgId,
          actor,
          action: 'oauth.allowed',
          subject: request.client.name,
          detail: { scopes: request.scopes },
        })
      })
      return this.redirect(request.redirectUri, { code, state: request.state })
    },

    /** Adds the answer, and who gives it (RFC 9207), to the client's address. */
    redirect(redirectUri: string, answer: Record<string, string | undefined>): string {
      const url = new URL(redirectUri)
      for (const [name, value] of Object.entries({ ...answer, iss: baseUrl }))
        if (value !== undefined) url.searchParams.set(name, value)
      return url.href
    },

    async token(form: URLSearchParams): Promise<TokenReply> {
      requireSingle(form)
      switch (form.get('grant_type')) {
        case 'authorization_code':
          return exchangeCode(form)
        case 'refresh_token':
          return refresh(form)
        default:
          throw new OAuthError('unsupported_grant_type', 'Use authorization_code or refresh_token.')
      }
    },

    /** RFC 7009: answers alike whether or not there was such a token. */
    async revoke(form: URLSearchParams): Promise<void> {
      await transaction(sql, async (db) => {
        const token = await queries.lockToken(db, hashSecret(form.get('token') ?? ''))
        if (token) await queries.revokeGrant(db, token.id, now())
      })
    },

    /** Who a bearer token speaks for at one resource; undefined when it is unknown, expired, revoked or for another. */
    async actorOf(token: string, resource: string, ip: string): Promise<Actor | undefined> {
      const found = await queries.findTokenIdentity(sql, hashSecret(token), now())
      if (!found || found.resource !== resource) return undefined
      const { grantId, scopes, resource: _, lastUsedAt, ...identity } = found
      if (!lastUsedAt || clock.now() - lastUsedAt.getTime() > TOUCH_INTERVAL_MS)
        await queries.touchGrant(sql, grantId, now())
      return { ...identity, via: { kind: 'oauth', grantId, scopes }, ip }
    },

    listGrants: (actor: Actor) => queries.listGrants(sql, actor.userId),

    async revokeGrant(actor: Actor, grantId: string): Promise<void> {
      if (!(await queries.revokeOwnGrant(sql, actor.userId, grantId, now()))) throw errors.notFound('connected app')
      await recordAudit(sql, { orgId: actor.orgId, actor, action: 'oauth.revoked', subject: grantId })
    },

    async sweep(): Promise<void> {
      await queries.deleteExpired(sql, now())
      await queries.deleteUnusedClients(sql, new Date(clock.now() - UNUSED_CLIENT_LIFETIME_MS))
    },
  }
}

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}

function requireSameResource(form: URLSearchParams, resource: string): void {
  if (form.has('resource') && form.get('resource') !== resource)
    throw new OAuthError('invalid_target', 'The token was granted for another resource.')
}

function requireSubset(scope: string | null, granted: readonly string[]): void {
  if (scope !== null && scope.split(' ').some((wanted) => !granted.includes(wanted)))
    throw new OAuthError('invalid_scope', 'A refresh cannot widen the scope.')
}

/** RFC 6749 §3.1: parameters must not be repeated. */
function requireSingle(parameters: URLSearchParams): void {
  const names = [...parameters.keys()]
  if (new Set(names).size !== names.length) throw new OAuthError('invalid_request', 'A parameter is given twice.')
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
