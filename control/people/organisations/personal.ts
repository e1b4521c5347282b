/** The tenants that come and go with an account. Called by accounts, in its transactions. */
import { before } from '../../../shared/values/before.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import { hashSecret } from '../../../shared/secrets/secrets.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import { hasSecondFactor } from '../access/second-factor.ts'
import type { OrganisationHooks } from './dependencies.ts'
import {
  deleteInvitationsTo,
  findOpenInvitation,
  hasOpenInvitationTo,
  deleteMemberships,
  insertOrganisation,
  listMemberships,
  listOwned,
  lockAsking,
  lockOwned,
  markOrganisationDeleted,
  type OrganisationRow,
} from './queries.ts'

export async function createPersonalOrganisation(
  sql: Sql,
  {
    userId,
    email,
    country,
    currency,
    now,
  }: { userId: string; email: string; country: string; currency: string; now: Date },
): Promise<string> {
  const id = newId('org')
  const name = before(email, '@').slice(0, MAX_NAME_CHARS)
  await insertOrganisation(sql, { id, name, personal: true, country, currency, ownerId: userId, now })
  return id
}

/** Where a new session starts. */
export async function findHomeOrganisation(sql: Sql, userId: string): Promise<string> {
  const [home] = await listMemberships(sql, userId)
  if (!home) throw new Error(`user ${userId} belongs to no organisation`)
  return home.id
}

/** No member joins them, and nothing is published to them, until the transaction ends. */
export async function lockOwnedOrganisations(
  sql: Sql,
  userId: string,
): Promise<(OrganisationRow & { members: number })[]> {
  await lockOwned(sql, userId)
  return listOwned(sql, userId)
}

/** Its drops must have been deleted before, in the same transaction. */
export function closeOrganisation(sql: Sql, orgId: string, now: Date): Promise<void> {
  return markOrganisationDeleted(sql, orgId, now)
}

export function leaveAllOrganisations(sql: Sql, userId: string): Promise<void> {
  return deleteMemberships(sql, userId)
}

/** A person has a factor less: where it was the last, what they opened in organisations that ask for one closes. */
export async function endWithoutFactor(
  tx: RoutingTransaction,
  hooks: Pick<OrganisationHooks, 'onMemberLeft'>,
  userId: string,
  now: Date,
): Promise<void> {
  // Locked before the factors are looked at: of two that are removed at once, the second sees that the first is gone.
  const asking = await lockAsking(tx, userId)
  if (asking.length === 0 || (await hasSecondFactor(tx, userId))) return
  for (const orgId of asking) await hooks.onMemberLeft(tx, userId, orgId, now)
}

/** Was this link mailed to that address, and is it still good? It stays so until the invitation is accepted. */
export async function organisationInvites(
  sql: Sql,
  { token, email, now }: { token: string; email: string; now: Date },
): Promise<boolean> {
  return (await findOpenInvitation(sql, hashSecret(token), now))?.email === email
}

/** Has any organisation invited this address? */
export const isInvited = (sql: Sql, email: string, now: Date): Promise<boolean> => hasOpenInvitationTo(sql, email, now)

/** Forgets who was invited, once that account is gone for good. */
export const eraseInvitationsTo = (sql: Sql, addresses: readonly string[]): Promise<void> =>
  deleteInvitationsTo(sql, addresses)
