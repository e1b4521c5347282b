/** API tokens: made by verified accounts only, shown once, kept as a hash, revoked at once. */
import { DAY_MS, SECOND_MS, type Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { reachOf, requireProvedToGive, type Actor, type Scope } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import { recordAudit, type AuditActor } from '../audit/audit.ts'
import { API_TOKEN_PREFIX } from './access.ts'
import {
  countLiveTokens,
  countSitesOf,
  insertToken,
  listLiveTokens,
  revokeAllTokens,
  revokeLiveToken,
  takeEndingToken,
  type TokenRow,
} from './queries.ts'

/** More than a person can tell apart; a loop that forgets to revoke must not fill the table. */
const MAX_TOKENS_PER_USER = 100

/** Ten years of 365 days: what is meant to last longer has no end at all. */
export const MAX_TOKEN_LIFETIME_SECONDS = (10 * 365 * DAY_MS) / SECOND_MS
/** A token for more drops than this is one for all of them. */
export const MAX_TOKEN_SITES = 100
/** Time enough to make another and put it where the old one is. */
const END_NOTICE_MS = 7 * DAY_MS

/** What a token is to be good for. What is left out is not limited. */
export interface TokenWish {
  readonly name: string
  readonly scopes?: readonly Scope[] | undefined
  /** Ids of drops: the token acts on these alone, and makes none. */
  readonly sites?: readonly string[] | undefined
  readonly expiresInSeconds?: number | undefined
}

/** A token as its person sees it. */
export type TokenEntry = TokenRow

export interface IssuedToken extends TokenEntry {
  /** Shown once, never stored. */
  readonly token: string
}

type TokenOwner = Pick<Actor, 'userId' | 'orgId' | 'emailVerified'>

/** Every way in makes and revokes tokens here: each is one transaction with its entry in the audit log. */
export interface Tokens {
  list(owner: Pick<Actor, 'userId' | 'orgId'>): Promise<TokenRow[]>
  /** In the dashboard only: a leaked token must not be able to outlive its revocation by making another. */
  create(actor: Actor, wish: TokenWish): Promise<IssuedToken>
  /** For the operator's command. */
  createFor(owner: TokenOwner, wish: TokenWish): Promise<IssuedToken>
  /**
   * Refused from the next request on, on every control: access is never cached. A token that is for some drops revokes
   * itself alone, because the others are not of its drops.
   */
  revoke(actor: Actor, id: string): Promise<void>
  /** Tells people whose tokens end within a week, each once; resolves how many. A move of the lifecycle, by its clock. */
  tellEnding(clock: Clock): Promise<number>
}

export interface TokensDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  readonly enqueueMail: EnqueueMail
}

export function createTokens({ sql, clock, baseUrl, enqueueMail }: TokensDependencies): Tokens {
  const issue = (owner: TokenOwner, actor: AuditActor, wish: TokenWish): Promise<IssuedToken> =>
    transaction(sql, async (tx) => {
      const issued = await insertIssued(tx, owner, wish, new Date(clock.now()))
      await recordAudit(tx, {
        at: issued.createdAt,
        orgId: owner.orgId,
        actor,
        action: 'token.created',
        subject: issued.id,
        detail: {
          name: issued.name,
          ...(issued.scopes === null ? {} : { scopes: issued.scopes }),
          ...(issued.sites === null ? {} : { sites: issued.sites }),
        },
      })
      return issued
    })

  const tellNext = (at: Date): Promise<boolean> =>
    transaction(sql, async (tx) => {
      const ending = await takeEndingToken(tx, { now: at, leadMs: END_NOTICE_MS })
      if (!ending) return false
      await enqueueMail(tx, {
        eventKey: `token_ending:${ending.id}`,
        to: ending.email,
        template: 'token_ending',
        data: { name: ending.name, at: ending.expiresAt, link: `${baseUrl}/account/tokens` },
      })
      return true
    })

  return {
    list: ({ orgId, userId }) => listLiveTokens(sql, { orgId, userId, now: new Date(clock.now()) }),

    async create(actor, wish) {
      if (actor.via.kind !== 'session') throw errors.forbidden('Tokens are created in the dashboard, not with a token.')
      requireProvedToGive(actor, reachOf(wish.scopes ?? null))
      return issue(actor, actor, wish)
    },

    createFor: (owner, wish) => issue(owner, { system: 'operator' }, wish),

    revoke: (actor, id) =>
      transaction(sql, async (tx) => {
        const { orgId, userId, reach, via } = actor
        if (reach.sites !== undefined && !(via.kind === 'token' && via.tokenId === id))
          throw errors.forbidden('This token is for some drops. It revokes itself, and no other.')
        const at = new Date(clock.now())
        const revoked = await revokeLiveToken(tx, { id, orgId, userId }, at)
        if (!revoked) throw errors.notFound('token')
        await recordAudit(tx, {
          at,
          orgId,
          actor,
          action: 'token.revoked',
          subject: id,
          detail: { name: revoked.name },
        })
      }),

    async tellEnding(by) {
      let told = 0
      while (await tellNext(new Date(by.now()))) told++
      return told
    },
  }
}

async function insertIssued(tx: Sql, owner: TokenOwner, wish: TokenWish, now: Date): Promise<IssuedToken> {
  if (!owner.emailVerified) throw errors.emailNotVerified()
  const label = wish.name.trim()
  if (label === '' || label.length > MAX_NAME_CHARS)
    throw errors.invalidRequest(`name: give the token a name of 1 to ${MAX_NAME_CHARS} characters`)
  const sites = wish.sites === undefined ? null : [...new Set(wish.sites)]
  if (sites !== null && (await countSitesOf(tx, owner.orgId, sites)) < sites.length) throw errors.notFound()
  if ((await countLiveTokens(tx, owner.userId, now)) >= MAX_TOKENS_PER_USER) {
    throw errors.limitReached(`You have ${MAX_TOKENS_PER_USER} tokens. Revoke one that you no longer need first.`)
  }
  const token = API_TOKEN_PREFIX + randomSecret(30)
  const { expiresInSeconds } = wish
  const issued = {
    id: newId('tok'),
    name: label,
    hint: token.slice(-4),
    createdAt: now,
    expiresAt: expiresInSeconds === undefined ? null : new Date(now.getTime() + expiresInSeconds * SECOND_MS),
    scopes: wish.scopes ?? null,
    sites,
  }
  await insertToken(tx, { ...issued, tokenHash: hashSecret(token), orgId: owner.orgId, userId: owner.userId })
  return { ...issued, lastUsedAt: null, lastUsedFamily: null, token }
}

/** Every token of the person, in every organisation; in the transaction of what ends them. Resolves how many. */
export const revokeTokensOf = (tx: Sql, userId: string, now: Date): Promise<number> => revokeAllTokens(tx, userId, now)
