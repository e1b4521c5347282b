/**
 * The authorization server: OAuth 2.1 with PKCE for MCP clients and the command line.
 * Consent makes a grant; a code, access tokens and a chain of refresh tokens hang on it. Whatever smells of a copied
 * code or token (second use) ends the grant with everything on it.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, type Clock } from '../../shared/clock.ts'
import { errors } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { hashSecret, randomSecret } from '../../shared/secrets.ts'
import { OAUTH_TOKEN_PREFIX } from '../accounts/access.ts'
import type { Actor } from '../accounts/actor.ts'
import { recordAudit } from '../audit/audit.ts'
import { transaction, type Pool, type Sql } from '../database/sql.ts'
import { createClients, type ClientsDeps } from './clients.ts'
import * as queries from './queries.ts'
import {
  challengePattern,
  decideGrant,
  isRegisteredRedirect,
  isVerified,
  OAuthError,
  requireParameters,
  requireSameResource,
  requireSingle,
  requireSubset,
  UntrustedRequest,
  withAnswer,
  type Scope,
} from './rules.ts'

const CODE_LIFETIME_MS = MINUTE_MS
const ACCESS_LIFETIME_MS = HOUR_MS
const REFRESH_LIFETIME_MS = 60 * DAY_MS
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

interface OAuthDeps extends ClientsDeps {
  sql: Pool
  clock: Clock
  baseUrl: string
}

export type OAuth = ReturnType<typeof createOAuth>

export function createOAuth({ sql, clock, baseUrl, limiter, fetchDocument }: OAuthDeps) {
  const clients = createClients({ sql, clock, limiter, fetchDocument })
  const now = (): Date => new Date(clock.now())

  /** Access tokens given out before stay good for their hour: requests under way must not fail by a refresh. */
  async function issue(db: Sql, grant: queries.GrantRow): Promise<TokenReply> {
    const access = `${OAUTH_TOKEN_PREFIX}${randomSecret()}`
    const refresh = `dwr_${randomSecret()}`
    await queries.touchClient(db, grant.client_id, now())
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
    /** RFC 7591. */
    register: clients.register,

    /**
     * Checks an authorization request in two steps (RFC 6749 §4.1.2.1): until client and redirect URI are known to
     * belong together, errors are shown here (UntrustedRequest); after that they go back to the client (OAuthError).
     */
    async checkRequest(
      query: URLSearchParams,
      ip: string,
    ): Promise<
      { request: AuthorizationRequest } | { error: OAuthError; redirectUri: string; state: string | undefined }
    > {
      const client = await clients.find(query.get('client_id') ?? '', ip)
      if (!client)
        throw new UntrustedRequest('This client is not registered, or its registration has expired. Connect it again.')
      const redirectUri =
        query.get('redirect_uri') ?? (client.redirect_uris.length === 1 ? client.redirect_uris[0]! : '')
      if (!isRegisteredRedirect(redirectUri, client.redirect_uris))
        throw new UntrustedRequest('The address to return to is not registered for this client.')
      const state = query.get('state') ?? undefined
      try {
        requireSingle(query)
        requireParameters(query, ['response_type'])
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
        id: newId('grt', clock.now()),
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
    redirect: (redirectUri: string, answer: Record<string, string | undefined>): string =>
      withAnswer(redirectUri, { ...answer, iss: baseUrl }),

    async token(form: URLSearchParams): Promise<TokenReply> {
      requireSingle(form)
      requireParameters(form, ['grant_type', 'client_id'])
      // RFC 6749 §5.2; a client that hears it registers anew.
      if (!(await clients.mayExist(form.get('client_id')!)))
        throw new OAuthError('invalid_client', 'This client is not registered, or its registration has expired.', 401)
      switch (form.get('grant_type')) {
        case 'authorization_code':
          requireParameters(form, ['code', 'code_verifier'])
          return exchangeCode(form)
        case 'refresh_token':
          requireParameters(form, ['refresh_token'])
          return refresh(form)
        default:
          throw new OAuthError('unsupported_grant_type', 'Use authorization_code or refresh_token.')
      }
    },

    /** RFC 7009: answers alike whether or not there was such a token; either kind ends the whole grant. */
    async revoke(form: URLSearchParams): Promise<void> {
      requireSingle(form)
      requireParameters(form, ['token', 'client_id'])
      const token = await queries.findToken(sql, hashSecret(form.get('token')!))
      if (!token) return
      if (token.client_id !== form.get('client_id')) throw invalidGrant('The token was issued to another client.')
      await queries.revokeGrant(sql, token.id, now())
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

    /** Effective from the next request on: tokens are looked up each time. */
    async revokeGrant(actor: Actor, grantId: string): Promise<void> {
      await transaction(sql, async (db) => {
        const revoked = await queries.revokeOwnGrant(db, actor.userId, grantId, now())
        if (!revoked) throw errors.notFound('connected app')
        await recordAudit(db, { orgId: revoked.org_id, actor, action: 'oauth.revoked', subject: revoked.client_name })
      })
    },

    async sweep(): Promise<void> {
      await queries.deleteExpired(sql, now())
      await clients.sweep()
    },
  }
}

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}
