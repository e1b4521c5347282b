/** API tokens: made by verified accounts only, shown once, kept as a hash, revoked at once. */
import { errors } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { MAX_NAME_CHARS } from '../../../shared/limits.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { API_TOKEN_PREFIX } from './access.ts'
import type { Actor } from '../../ground/actor.ts'
import { countLiveTokens, insertToken, listLiveTokens, revokeLiveToken, type TokenRow } from '../accounts/queries.ts'

/** More than anybody can tell apart; a loop that forgets to revoke must not fill the table. */
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

export async function issueToken(sql: Sql, owner: TokenOwner, name: string, now = new Date()): Promise<IssuedToken> {
  if (!owner.emailVerified) throw errors.emailNotVerified()
  const label = name.trim()
  if (label === '' || label.length > MAX_NAME_CHARS)
    throw errors.invalidRequest(`name: give the token a name of 1 to ${MAX_NAME_CHARS} characters`)
  if ((await countLiveTokens(sql, owner.userId)) >= MAX_TOKENS_PER_USER) {
    throw errors.limitReached(`You have ${MAX_TOKENS_PER_USER} tokens. Revoke one that you no longer need first.`)
  }
  const token = API_TOKEN_PREFIX + randomSecret(30)
  const issued = { id: newId('tok'), name: label, hint: token.slice(-4), createdAt: now }
  await insertToken(sql, { ...issued, tokenHash: hashSecret(token), orgId: owner.orgId, userId: owner.userId })
  return { ...issued, token }
}

export function listTokens(sql: Sql, owner: Pick<Actor, 'userId' | 'orgId'>): Promise<TokenRow[]> {
  return listLiveTokens(sql, owner.orgId, owner.userId)
}

/** Refused from the next request on, on every control: access is never cached. */
export async function revokeToken(
  sql: Sql,
  owner: Pick<Actor, 'userId' | 'orgId'>,
  id: string,
  now = new Date(),
): Promise<{ name: string }> {
  const revoked = await revokeLiveToken(sql, { id, orgId: owner.orgId, userId: owner.userId }, now)
  if (!revoked) throw errors.notFound('token')
  return revoked
}
