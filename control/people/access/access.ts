/**
 * Who is calling. In this order, and the first that is present decides:
 *   1. `Authorization: Bearer dw_…`   an API token
 *   2. `Authorization: Bearer dwo_…`  an OAuth access token (handed to control/doors/oauth)
 *   3. `Authorization: Bearer dwp_…`  what a workflow's token was exchanged for (control/drops/publishers)
 *   4. the session cookie             only when our own pages sent the request
 * Nothing is cached: a revoked token or session is refused from the next request on, on every control.
 */
import { isIPv6 } from 'node:net'
import { errors } from '../../../shared/contracts/errors.ts'
import type { Log } from '../../../shared/running/log.ts'
import { MINUTE_MS, type Clock } from '../../../shared/running/clock.ts'
import { hashSecret } from '../../../shared/secrets/secrets.ts'
import { noteOrganisation } from '../../ground/database/call.ts'
import type { Pool } from '../../ground/database/sql.ts'
import type { Authenticate } from '../../ground/http/api.ts'
import type { Request } from '../../ground/http/route.ts'
import { EVERYTHING, reachOf, type Actor } from '../../ground/actor.ts'
import { bearerTokenOf } from './bearer.ts'
import { findSessionIdentity, findTokenIdentity, touchSession, touchToken } from './queries.ts'
import { isSameOrigin } from './same-origin.ts'
import { aliveAt, SESSION_COOKIE } from './sessions.ts'

export const API_TOKEN_PREFIX = 'dw_'
export const OAUTH_TOKEN_PREFIX = 'dwo_'
export const PUBLISHER_TOKEN_PREFIX = 'dwp_'

/** "Last used" is for people; a write per call would help no one. */
const TOUCH_INTERVAL_MS = MINUTE_MS

/** Our credentials are short; whatever is longer is not hashed. */
const MAX_CREDENTIAL_CHARS = 256

export interface AccessDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly log: Log
  readonly baseUrl: string
  /** Resolves an OAuth access token; undefined when it is unknown, expired or revoked. */
  readonly oauth?: (token: string, request: Request) => Promise<Actor | undefined>
  /** Resolves what a workflow's token was exchanged for. */
  readonly publisher?: (token: string, request: Request) => Promise<Actor | undefined>
}

export interface Access {
  /** For the REST API: throws 401 for wrong credentials, undefined without any. */
  readonly authenticate: Authenticate
  /** For dashboard pages: the session's actor, wherever the visitor came from (forms check CSRF themselves). */
  sessionActor(request: Request): Promise<Actor | undefined>
  /** For callers that carry an API token elsewhere than in a REST request. */
  tokenActor(token: string, ip: string): Promise<Actor | undefined>
}

/** What is not narrowed to a scope must name this resource as a whole. */
function isForAll({ via }: Actor): boolean {
  return via.kind === 'oauth' && via.scopes.includes('cli')
}

export function createAccess({ sql, clock, log, baseUrl, oauth, publisher }: AccessDependencies): Access {
  const isStale = (at: Date | null): boolean => at === null || clock.now() - at.getTime() >= TOUCH_INTERVAL_MS
  const inBackground = (work: Promise<void>): void => {
    work.catch((error: unknown) => log.warn({ err: error }, 'could not note when a credential was last used'))
  }

  async function tokenActor(token: string, ip: string): Promise<Actor | undefined> {
    if (token.length > MAX_CREDENTIAL_CHARS) return undefined
    const now = new Date(clock.now())
    const found = await findTokenIdentity(sql, hashSecret(token), now)
    if (!found) return undefined
    const { tokenId, lastUsedAt, scopes, sites, ...identity } = found
    if (isStale(lastUsedAt)) inBackground(touchToken(sql, tokenId, { now, family: isIPv6(ip) ? 'IPv6' : 'IPv4' }))
    noteOrganisation(identity.orgId)
    return { ...identity, reach: reachOf(scopes, sites), via: { kind: 'token', tokenId }, ip }
  }

  async function sessionActor(request: Request): Promise<Actor | undefined> {
    const cookie = request.cookie(SESSION_COOKIE)
    if (cookie === undefined || cookie === '' || cookie.length > MAX_CREDENTIAL_CHARS) return undefined
    const alive = aliveAt(new Date(clock.now()))
    const found = await findSessionIdentity(sql, hashSecret(cookie), alive)
    if (!found) return undefined
    const { sessionId, lastSeenAt, needsProof, ...identity } = found
    if (isStale(lastSeenAt)) inBackground(touchSession(sql, sessionId, alive.now))
    noteOrganisation(identity.orgId)
    return { ...identity, reach: EVERYTHING, via: { kind: 'session', sessionId, needsProof }, ip: request.ip }
  }

  /** A token for `/mcp` is no credential here: its audience is another resource. */
  async function oauthActor(token: string, request: Request): Promise<Actor | undefined> {
    const actor = token.length > MAX_CREDENTIAL_CHARS ? undefined : await oauth?.(token, request)
    if (!actor || (actor.reach.scope === 'everything' && !isForAll(actor))) return undefined
    noteOrganisation(actor.orgId)
    return actor
  }

  async function publisherActor(token: string, request: Request): Promise<Actor | undefined> {
    const actor = token.length > MAX_CREDENTIAL_CHARS ? undefined : await publisher?.(token, request)
    if (actor) noteOrganisation(actor.orgId)
    return actor
  }

  async function actorOfToken(token: string, request: Request): Promise<Actor | undefined> {
    if (token.startsWith(OAUTH_TOKEN_PREFIX)) return oauthActor(token, request)
    if (token.startsWith(PUBLISHER_TOKEN_PREFIX)) return publisherActor(token, request)
    return token.startsWith(API_TOKEN_PREFIX) ? tokenActor(token, request.ip) : undefined
  }

  async function bearerActor(header: string, request: Request): Promise<Actor> {
    const actor = await actorOfToken(bearerTokenOf(header) ?? '', request)
    if (!actor)
      throw errors.unauthorized('This token is not valid for this address, or it was revoked.', {
        'www-authenticate': 'Bearer error="invalid_token"',
      })
    return actor
  }

  async function authenticate(request: Request): Promise<Actor | undefined> {
    const header = request.header('authorization')
    if (header !== undefined) return bearerActor(header, request)
    if (!request.cookie(SESSION_COOKIE)) return undefined
    if (!isSameOrigin(request, baseUrl))
      throw errors.unauthorized('A dashboard session may call the API from the dashboard only. Use an API token.')
    const actor = await sessionActor(request)
    if (!actor) throw errors.unauthorized('This session has ended. Sign in again.')
    return actor
  }

  return { authenticate, sessionActor, tokenActor }
}
