/**
 * The authorization server: OAuth 2.1 with PKCE for MCP clients and the command line; the device grant (device.ts) for
 * machines without a browser. Consent makes a grant, and tokens hang on it (tokens.ts).
 */
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { reachOf, type Actor } from '../../ground/actor.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import { createClients, type Client, type Clients, type ClientsDependencies } from './clients.ts'
import { createDeviceGrants, type DeviceGrants } from './device.ts'
import * as queries from './queries.ts'
import {
  accessScopesOf,
  challengePattern,
  decideGrant,
  DEVICE_GRANT,
  GRANT_TYPES,
  isAcceptableRedirect,
  isLoopbackRedirect,
  isRegisteredRedirect,
  OAuthError,
  requireParameters,
  requireSingle,
  UnreachableDocument,
  UntrustedRequest,
  withAnswer,
  type GrantScope,
} from './rules.ts'
import { createTokens, type SignInHooks, type TokenReply } from './tokens.ts'

const CODE_LIFETIME_MS = MINUTE_MS
const TOUCH_INTERVAL_MS = MINUTE_MS

export interface AuthorizationRequest {
  readonly client: Client
  readonly redirectUri: string
  readonly state: string | undefined
  readonly challenge: string
  readonly resource: string
  readonly scopes: readonly GrantScope[]
}

export type CheckedRequest =
  | { request: AuthorizationRequest }
  | { error: OAuthError; clientId: string; redirectUri: string; state: string | undefined }
  /** Nobody registered the client, and it waits on the person's own machine: they may tell it, and no one else does. */
  | { unregistered: OAuthError; redirectUri: string; state: string | undefined }

interface OAuthDependencies extends ClientsDependencies {
  sql: Pool
  clock: Clock
  baseUrl: string
  hooks: SignInHooks
}

export interface OAuth {
  /** RFC 7591. */
  register: Clients['register']
  /** RFC 8628. */
  readonly device: DeviceGrants
  /**
   * Checks an authorization request in two steps (RFC 6749 §4.1.2.1): until client and redirect URI are known to
   * belong together, errors are shown here (UntrustedRequest); after that they go back to the client (OAuthError).
   */
  checkRequest(query: URLSearchParams, ip: string): Promise<CheckedRequest>
  /**
   * May an error lead the browser to the client without a word from the person? Everyone can register a client, so
   * only to a program on the person's own machine, or to a client that the person has let in before (RFC 9700
   * §4.11.2: everything else makes the service a link to wherever a stranger likes).
   */
  isKnownClient(
    actor: Pick<Actor, 'userId'> | undefined,
    client: { clientId: string; redirectUri: string },
  ): Promise<boolean>
  /** The person said yes. Returns where to send the browser. 403 `step_up_required` as `Tokens.grant` says. */
  allow(actor: Actor, request: AuthorizationRequest): Promise<string>
  /** Adds the answer, and who gives it (RFC 9207), to the client's address. */
  redirect(redirectUri: string, answer: Record<string, string | undefined>): string
  /** RFC 6749 §3.2. */
  token(form: URLSearchParams): Promise<TokenReply>
  /** RFC 7009: answers alike whether or not there was such a token; either kind ends the whole grant. */
  revoke(form: URLSearchParams): Promise<void>
  /** Who a bearer token speaks for at one resource; undefined when it is unknown, expired, revoked or for another. */
  actorOf(token: string, resource: string, ip: string): Promise<Actor | undefined>
  /** The connected apps of a person. */
  listGrants(actor: Actor): Promise<queries.GrantEntry[]>
  /** Effective from the next request on: tokens are looked up each time. */
  revokeGrant(actor: Actor, grantId: string): Promise<void>
  /** Ends every connected app of a person, as part of what ended the person's trust in them. */
  endGrantsOf(sql: Sql, userId: string, at: Date): Promise<void>
  sweep(): Promise<void>
}

export function createOAuth(deps: OAuthDependencies): OAuth {
  const { sql, clock, secrets, baseUrl, limiter, hooks } = deps
  const clients = createClients(deps)
  const tokens = createTokens({ sql, clock, secrets, hooks })
  const device = createDeviceGrants({ sql, clock, secrets, baseUrl, limiter, clients, tokens, hooks })
  const now = (): Date => new Date(clock.now())
  const redirect: OAuth['redirect'] = (redirectUri, answer) => withAnswer(redirectUri, { ...answer, iss: baseUrl })

  return {
    register: clients.register,
    device,
    redirect,

    async checkRequest(query, ip) {
      const client = await clients.find(query.get('client_id') ?? '', ip).catch(orUnreachable)
      if (!client || client instanceof UnreachableDocument) return unknownClient(query, client?.message)
      const [only = '', ...others] = client.redirect_uris
      const redirectUri = query.get('redirect_uri') ?? (others.length === 0 ? only : '')
      if (!isRegisteredRedirect(redirectUri, client.redirect_uris))
        throw new UntrustedRequest('The address to return to is not registered for this client.')
      const state = query.get('state') ?? undefined
      try {
        return { request: { client, redirectUri, state, ...wishOf(query, baseUrl) } }
      } catch (error) {
        if (error instanceof OAuthError) return { error, clientId: client.id, redirectUri, state }
        throw error
      }
    },

    isKnownClient: async (actor, { clientId, redirectUri }) =>
      isLoopbackRedirect(redirectUri) || (actor !== undefined && queries.hasLiveGrant(sql, actor.userId, clientId)),

    async allow(actor, request) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      const code = randomSecret()
      const { changes } = await changeRoutes(sql, async (tx) => {
        const { client, scopes, resource } = request
        const grant = await tokens.grant(tx, actor, {
          client_id: client.id,
          client_name: client.name,
          scopes,
          resource,
        })
        await queries.insertCode(tx, {
          hash: hashSecret(code),
          grant_id: grant.id,
          redirect_uri: request.redirectUri,
          challenge: request.challenge,
          expires_at: new Date(clock.now() + CODE_LIFETIME_MS),
        })
      })
      await hooks.propagate(changes)
      return redirect(request.redirectUri, { code, state: request.state })
    },

    async token(form) {
      requireSingle(form)
      const { client_id: clientId } = requireParameters(form, ['grant_type', 'client_id'])
      // RFC 6749 §5.2; a client that hears it registers anew.
      if (!(await clients.mayExist(clientId)))
        throw new OAuthError('invalid_client', 'This client is not registered, or its registration has expired.', 401)
      switch (form.get('grant_type')) {
        case 'authorization_code':
          requireParameters(form, ['code', 'code_verifier'])
          return tokens.exchangeCode(form)
        case 'refresh_token':
          requireParameters(form, ['refresh_token'])
          return tokens.refresh(form)
        case DEVICE_GRANT:
          requireParameters(form, ['device_code'])
          return device.poll(form)
        default:
          throw new OAuthError('unsupported_grant_type', `Use ${GRANT_TYPES.join(', ')}.`)
      }
    },

    async revoke(form) {
      requireSingle(form)
      const given = requireParameters(form, ['token', 'client_id'])
      const token = await queries.findToken(sql, hashSecret(given.token))
      if (!token) return
      if (token.client_id !== given.client_id) throw invalidGrant('The token was issued to another client.')
      await queries.revokeGrant(sql, token.id, now())
    },

    async actorOf(token, resource, ip) {
      const found = await queries.findTokenIdentity(sql, hashSecret(token), now())
      if (!found || found.resource !== resource) return undefined
      const { grantId, scopes, resource: _, lastUsedAt, ...identity } = found
      if (!lastUsedAt || clock.now() - lastUsedAt.getTime() > TOUCH_INTERVAL_MS)
        await queries.touchGrant(sql, grantId, now())
      return { ...identity, reach: reachOf(accessScopesOf(scopes)), via: { kind: 'oauth', grantId, scopes }, ip }
    },

    listGrants: (actor) => queries.listGrants(sql, actor.userId),

    async revokeGrant(actor, grantId) {
      await transaction(sql, async (tx) => {
        const revoked = await queries.revokeOwnGrant(tx, actor.userId, grantId, now())
        if (!revoked) throw errors.notFound('connected app')
        await recordAudit(tx, {
          at: now(),
          orgId: revoked.org_id,
          actor,
          action: 'oauth.revoked',
          subject: revoked.client_name,
        })
      })
    },

    endGrantsOf: queries.revokeGrantsOf,

    async sweep() {
      await queries.deleteExpired(sql, now())
      await clients.sweep()
    },
  }
}

/** What an authorization request asks for; throws what its client has to hear. */
function wishOf(query: URLSearchParams, baseUrl: string) {
  requireSingle(query)
  requireParameters(query, ['response_type'])
  if (query.get('response_type') !== 'code')
    throw new OAuthError('unsupported_response_type', 'Use response_type=code.')
  const challenge = query.get('code_challenge') ?? ''
  if (query.get('code_challenge_method') !== 'S256' || !challengePattern.test(challenge))
    throw new OAuthError('invalid_request', 'PKCE with code_challenge_method=S256 is required.')
  const asked = { scope: query.get('scope') ?? undefined, resource: query.get('resource') ?? undefined }
  return { challenge, ...decideGrant(asked, baseUrl) }
}

/**
 * The address of an unknown client is a stranger's word, so the browser never goes there by itself (RFC 6749 §4.1.2.1):
 * the person reads here what is wrong. A program on their own machine waits for an answer, which they can send it.
 */
function unknownClient(query: URLSearchParams, reason?: string): CheckedRequest {
  const error = new OAuthError(
    'invalid_client',
    reason ?? 'This client is not registered, or its registration has expired. Remove it there and connect it again.',
  )
  const redirectUri = query.get('redirect_uri') ?? ''
  if (!isAcceptableRedirect(redirectUri) || !isLoopbackRedirect(redirectUri)) throw new UntrustedRequest(error.message)
  return { unregistered: error, redirectUri, state: query.get('state') ?? undefined }
}

/** A document that cannot be read makes its client unknown; everything else that is wrong with it is refused. */
function orUnreachable(error: unknown): UnreachableDocument {
  if (error instanceof UnreachableDocument) return error
  throw error
}

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}
