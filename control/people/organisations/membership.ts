/** Who may change an organisation: its members, one at a time, by the roles that they have then. */
import { errors } from '../../../shared/contracts/errors.ts'
import { requirePermission, type Actor, type Permission } from '../../ground/actor.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import { hasSecondFactor, showsSecondFactor } from '../access/second-factor.ts'
import { findMembership, lockMembers, type MembershipRow } from './queries.ts'
import { mayReach } from './rules.ts'

/** An organisation that the caller does not belong to answers like a missing one, and so does one that is closed to them. */
export async function requireMembership(
  sql: Sql,
  actor: Actor,
  orgId: string,
  permission?: Permission,
): Promise<MembershipRow> {
  const found = await findMembership(sql, orgId, actor.userId)
  if (!found || !mayReach(actor, orgId) || (await isClosedTo(sql, actor, found))) throw errors.notFound('organisation')
  if (permission) requirePermission(found.role, permission)
  return found
}

/** An organisation that asks for a second factor is to a caller without one as if they had left it. */
async function isClosedTo(
  sql: Sql,
  { userId, via }: Actor,
  { requiresSecondFactor }: Pick<MembershipRow, 'requiresSecondFactor'>,
): Promise<boolean> {
  if (!requiresSecondFactor) return false
  return !(via.kind === 'session' ? await showsSecondFactor(sql, via.sessionId) : await hasSecondFactor(sql, userId))
}

/** One change of an organisation at a time, judged by the roles as they are then. */
export async function lockAsMember(
  tx: Sql,
  actor: Actor,
  orgId: string,
  permission?: Permission,
): Promise<MembershipRow> {
  await lockMembers(tx, orgId)
  return requireMembership(tx, actor, orgId, permission)
}

/** As `lockAsMember`, for who leaves: the way out is open without the second factor that the organisation asks for. */
export async function lockToLeave(tx: Sql, actor: Actor, orgId: string): Promise<MembershipRow> {
  await lockMembers(tx, orgId)
  const found = await findMembership(tx, orgId, actor.userId)
  if (!found || !mayReach(actor, orgId)) throw errors.notFound('organisation')
  return found
}

export function changeAsMember<Result>(
  sql: Pool,
  actor: Actor,
  orgId: string,
  permission: Permission | undefined,
  work: (tx: Sql, own: MembershipRow) => Promise<Result>,
): Promise<Result> {
  return transaction(sql, async (tx) => work(tx, await lockAsMember(tx, actor, orgId, permission)))
}
