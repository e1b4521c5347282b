/**
 * Grants and the tokens that hang on them. A grant is one consent; a code or a device code begins its chain of refresh
 * tokens, and every refresh goes one step along it. The step is derived from what was presented (a keyed hash), so the
 * chain never forks: a client that presents the same again soon hears the same successor. That keeps two
 * processes of one client, and a client whose answer was lost, signed in; a copy is noticed all the same, because of
 * two holders of one token one is late. Whatever smells of a copy ends the grant with everything on it.
 */
import { DAY_MS, HOUR_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { OAUTH_TOKEN_PREFIX } from '../../people/access/access.ts'
import { reachOf, requireProvedToGive, type Actor } from '../../ground/actor.ts'
import type { AccountHooks } from '../../people/accounts/contract.ts'
import { recordAudit } from '../../people/audit/audit.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import * as queries from './queries.ts'
import { accessScopesOf, isVerified, OAuthError, requireSameResource, requireSubset } from './rules.ts'

const ACCESS_LIFETIME_MS = HOUR_MS
const REFRESH_LIFETIME_MS = 60 * DAY_MS
/** How long the same token may come again: a client that gave up on an answer has asked again by then. */
export const REPEAT_GRACE_MS = 30 * SECOND_MS

export interface TokenReply {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly refresh_token: string
  readonly scope: string
}

/** Allowing an app is a sign-in, and restarts clocks as any other. The edges are told after the commit. */
export type SignInHooks = Pick<AccountHooks, 'onSignIn' | 'propagate'>

/** What a person said yes to. */
interface Allowed {
  readonly client_id: string
  readonly client_name: string
  readonly scopes: readonly string[]
  readonly resource: string
}

export interface Tokens {
  /**
   * The person said yes, which is a sign-in: a grant without tokens yet, in the caller's transaction. What reaches as far as
   * `manage` asks for the second factor (403 `step_up_required`).
   */
  grant(tx: RoutingTransaction, actor: Actor, allowed: Allowed): Promise<queries.GrantRow>
  /** Access and refresh token that follow on `presented`: a code, a device code or a refresh token. */
  issue(tx: Sql, grant: queries.GrantRow, presented: string): Promise<TokenReply>
  /**
   * The answer again, with an access token of its own, while the grace lasts and nothing followed on it yet;
   * undefined when that is over, and the caller ends the grant.
   */
  repeat(tx: Sql, grant: queries.GrantRow, presented: string, usedAt: Date): Promise<TokenReply | undefined>
  /** In a transaction of its own: the refusal that follows must not undo it. */
  end(grantId: string): Promise<void>
  exchangeCode(form: URLSearchParams): Promise<TokenReply>
  refresh(form: URLSearchParams): Promise<TokenReply>
}

export function createTokens({
  sql,
  clock,
  secrets,
  hooks,
}: {
  sql: Pool
  clock: Clock
  secrets: Pick<Secrets, 'sign'>
  hooks: SignInHooks
}): Tokens {
  const now = (): Date => new Date(clock.now())
  const successorOf = (presented: string): string => `dwr_${secrets.sign('oauth-refresh', presented)}`

  /** Access tokens given out before stay good for their hour: requests under way must not fail by a refresh. */
  async function reply(tx: Sql, grant: queries.GrantRow, refreshToken: string): Promise<TokenReply> {
    const access = `${OAUTH_TOKEN_PREFIX}${randomSecret()}`
    await queries.touchClient(tx, grant.client_id, now())
    await queries.insertToken(tx, {
      hash: hashSecret(access),
      grant_id: grant.id,
      kind: 'access',
      expires_at: new Date(clock.now() + ACCESS_LIFETIME_MS),
    })
    return {
      access_token: access,
      token_type: 'Bearer',
      expires_in: ACCESS_LIFETIME_MS / 1000,
      refresh_token: refreshToken,
      scope: grant.scopes.join(' '),
    }
  }

  async function issue(tx: Sql, grant: queries.GrantRow, presented: string): Promise<TokenReply> {
    const refreshToken = successorOf(presented)
    await queries.insertToken(tx, {
      hash: hashSecret(refreshToken),
      grant_id: grant.id,
      kind: 'refresh',
      expires_at: new Date(clock.now() + REFRESH_LIFETIME_MS),
    })
    return reply(tx, grant, refreshToken)
  }

  async function repeat(
    tx: Sql,
    grant: queries.GrantRow,
    presented: string,
    usedAt: Date,
  ): Promise<TokenReply | undefined> {
    if (clock.now() - usedAt.getTime() > REPEAT_GRACE_MS) return undefined
    const refreshToken = successorOf(presented)
    const successor = await queries.lockToken(tx, hashSecret(refreshToken))
    return successor && !successor.used_at && !successor.revoked_at ? reply(tx, grant, refreshToken) : undefined
  }

  async function end(grantId: string): Promise<void> {
    await queries.revokeGrant(sql, grantId, now())
  }

  return {
    issue,
    repeat,
    end,

    async grant(tx, actor, allowed) {
      requireProvedToGive(actor, reachOf(accessScopesOf(allowed.scopes)))
      const grant = newGrant(actor, allowed, clock.now())
      await queries.insertGrant(tx, grant)
      await hooks.onSignIn(tx, actor.userId, now())
      await recordAudit(tx, {
        at: now(),
        orgId: actor.orgId,
        actor,
        action: 'oauth.allowed',
        subject: allowed.client_name,
        detail: { scopes: allowed.scopes },
      })
      return { ...grant, last_used_at: null, revoked_at: null }
    },

    async exchangeCode(form) {
      const presented = form.get('code') ?? ''
      const hash = hashSecret(presented)
      const outcome = await transaction(sql, async (tx) => {
        const code = await queries.lockCode(tx, hash)
        if (!code || code.client_id !== form.get('client_id'))
          throw invalidGrant('The code is unknown, or it belongs to another client.')
        if (code.used_at) return { reused: code.id }
        requireGoodCode(code, form, clock.now())
        await queries.markCodeUsed(tx, hash, now())
        return { reply: await issue(tx, code, presented) }
      })
      if (outcome.reply) return outcome.reply
      await end(outcome.reused)
      throw invalidGrant('The code was used before. Everything that came from it has been revoked.')
    },

    async refresh(form) {
      const presented = form.get('refresh_token') ?? ''
      const hash = hashSecret(presented)
      const outcome = await transaction(sql, async (tx) => {
        const token = await queries.lockToken(tx, hash)
        if (!token || token.kind !== 'refresh' || token.client_id !== form.get('client_id'))
          throw invalidGrant('The refresh token is unknown, or it belongs to another client.')
        requireGoodToken(token, form, clock.now())
        if (token.used_at) {
          const repeated = await repeat(tx, token, presented, token.used_at)
          return repeated ? { reply: repeated } : { reused: token.id }
        }
        await queries.markTokenUsed(tx, hash, now())
        return { reply: await issue(tx, token, presented) }
      })
      if (outcome.reply) return outcome.reply
      await end(outcome.reused)
      throw invalidGrant('The refresh token was used before. Everything that came from it has been revoked.')
    },
  }
}

function newGrant(actor: Actor, allowed: Allowed, nowMs: number) {
  return {
    id: newId('grt', nowMs),
    client_id: allowed.client_id,
    client_name: allowed.client_name,
    user_id: actor.userId,
    org_id: actor.orgId,
    scopes: [...allowed.scopes],
    resource: allowed.resource,
    created_at: new Date(nowMs),
  }
}

/** Throws unless the code is still good and the form proves that it comes from who asked for it. */
function requireGoodCode(code: Found<typeof queries.lockCode>, form: URLSearchParams, nowMs: number): void {
  if (code.revoked_at || code.expires_at.getTime() <= nowMs) throw invalidGrant('The code has expired. Start again.')
  // OAuth 2.1 no longer asks for it here; what is given must still be right.
  if (form.has('redirect_uri') && code.redirect_uri !== form.get('redirect_uri'))
    throw invalidGrant('redirect_uri differs from the one of the authorization request.')
  if (!isVerified(form.get('code_verifier') ?? '', code.challenge))
    throw invalidGrant('code_verifier does not match the challenge.')
  requireSameResource(form, code.resource)
}

/** Throws unless the refresh token is still good, for what the form asks. */
function requireGoodToken(token: Found<typeof queries.lockToken>, form: URLSearchParams, nowMs: number): void {
  if (token.revoked_at || token.expires_at.getTime() <= nowMs)
    throw invalidGrant('The refresh token has expired or was revoked. Sign in again.')
  requireSameResource(form, token.resource)
  requireSubset(form.get('scope'), token.scopes)
}

/** A row that was found. */
type Found<Query extends (...all: never[]) => Promise<unknown>> = NonNullable<Awaited<ReturnType<Query>>>

function invalidGrant(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}
