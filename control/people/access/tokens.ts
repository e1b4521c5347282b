/** API tokens: made by verified accounts only, shown once, kept as a hash, revoked at once. */
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import type { Actor } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { recordAudit, type AuditActor } from '../audit/audit.ts'
import { API_TOKEN_PREFIX } from './access.ts'
import {
  countLiveTokens,
  insertToken,
  listLiveTokens,
  revokeAllTokens,
  revokeLiveToken,
  type TokenRow,
} from './queries.ts'

/** More than a person can tell apart; a loop that forgets to revoke must not fill the table. */
const MAX_TOKENS_PER_USER = 100

export interface IssuedToken {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly createdAt: Date
  /** Shown once, never stored. */
  readonly token: string
}

type TokenOwner = Pick<Actor, 'userId' | 'orgId' | 'emailVerified'>

/** Every way in makes and revokes tokens here: each is one transaction with its entry in the audit log. */
export interface Tokens {
  list(owner: Pick<Actor, 'userId' | 'orgId'>): Promise<TokenRow[]>
  /** In the dashboard only: a leaked token must not be able to outlive its revocation by making another. */
  create(actor: Actor, name: string): Promise<IssuedToken>
  /** For the operator's command. */
  createFor(owner: TokenOwner, name: string): Promise<IssuedToken>
  /** Refused from the next request on, on every control: access is never cached. */
  revoke(actor: Actor, id: string): Promise<void>
}

export interface TokensDependencies {
  readonly sql: Pool
  readonly clock: Clock
}

export function createTokens({ sql, clock }: TokensDependencies): Tokens {
  const issue = (owner: TokenOwner, actor: AuditActor, name: string): Promise<IssuedToken> =>
    transaction(sql, async (tx) => {
      const issued = await insertIssued(tx, owner, name, new Date(clock.now()))
      await recordAudit(tx, {
        at: issued.createdAt,
        orgId: owner.orgId,
        actor,
        action: 'token.created',
        subject: issued.id,
        detail: { name: issued.name },
      })
      return issued
    })

  return {
    list: ({ orgId, userId }) => listLiveTokens(sql, orgId, userId),

    async create(actor, name) {
      if (actor.via.kind !== 'session') throw errors.forbidden('Tokens are created in the dashboard, not with a token.')
      return issue(actor, actor, name)
    },

    createFor: (owner, name) => issue(owner, { system: 'operator' }, name),

    revoke: (actor, id) =>
      transaction(sql, async (tx) => {
        const { orgId, userId } = actor
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
  }
}

async function insertIssued(tx: Sql, owner: TokenOwner, name: string, now: Date): Promise<IssuedToken> {
  if (!owner.emailVerified) throw errors.emailNotVerified()
  const label = name.trim()
  if (label === '' || label.length > MAX_NAME_CHARS)
    throw errors.invalidRequest(`name: give the token a name of 1 to ${MAX_NAME_CHARS} characters`)
  if ((await countLiveTokens(tx, owner.userId)) >= MAX_TOKENS_PER_USER) {
    throw errors.limitReached(`You have ${MAX_TOKENS_PER_USER} tokens. Revoke one that you no longer need first.`)
  }
  const token = API_TOKEN_PREFIX + randomSecret(30)
  const issued = { id: newId('tok'), name: label, hint: token.slice(-4), createdAt: now }
  await insertToken(tx, { ...issued, tokenHash: hashSecret(token), orgId: owner.orgId, userId: owner.userId })
  return { ...issued, token }
}

/** Every token of the person, in every organisation; in the transaction of what ends them. Resolves how many. */
export const revokeTokensOf = (tx: Sql, userId: string, now: Date): Promise<number> => revokeAllTokens(tx, userId, now)
