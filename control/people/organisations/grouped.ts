/**
 * The organisation in which groups of a sign-in provider have roles. It is made when the first person of such a group
 * comes, and belongs to whoever runs the instance. Called by the provider's capability, in its transactions.
 */
import { newId } from '../../../shared/contracts/ids.ts'
import type { RoutingTransaction } from '../../ground/routing/changes.ts'
import { recordAudit } from '../audit/audit.ts'
import type { OrganisationHooks } from './dependencies.ts'
import {
  deleteMembership,
  findGroupedOrganisation,
  findInstanceOwner,
  findMember,
  insertGroupedOrganisation,
  insertMembership,
  insertOrganisation,
  lockGroupedOrganisations,
  setRole,
} from './queries.ts'
import type { GivableRole } from './rules.ts'

interface GroupMember {
  readonly issuer: string
  /** What the organisation is called when it is made. */
  readonly name: string
  readonly userId: string
  readonly email: string
  /** What their groups give them now; undefined: nothing. */
  readonly role: GivableRole | undefined
  readonly now: Date
}

/** Gives, changes or takes a membership so that it is what the groups say. An owner stays owner. */
export async function followGroups(
  tx: RoutingTransaction,
  member: GroupMember,
  hooks: Pick<OrganisationHooks, 'onMemberLeft'>,
): Promise<void> {
  const { issuer, userId, email, role, now } = member
  await lockGroupedOrganisations(tx)
  const orgId =
    (await findGroupedOrganisation(tx, issuer)) ?? (role === undefined ? undefined : await found(tx, member))
  if (orgId === undefined) return
  const current = await findMember(tx, orgId, userId)
  if (current?.role === 'owner' || current?.role === role) return
  const actor = { userId, email }
  if (role === undefined) {
    await deleteMembership(tx, orgId, userId, now)
    await hooks.onMemberLeft(tx, userId, orgId, now)
    await recordAudit(tx, { at: now, orgId, actor, action: 'member.removed', subject: email, detail: { by: 'groups' } })
  } else if (current) {
    await setRole(tx, orgId, userId, role)
    const detail = { from: current.role, to: role, by: 'groups' }
    await recordAudit(tx, { at: now, orgId, actor, action: 'member.role_changed', subject: email, detail })
  } else {
    await insertMembership(tx, { orgId, userId, role, now })
    await recordAudit(tx, {
      at: now,
      orgId,
      actor,
      action: 'member.joined',
      subject: email,
      detail: { role, by: 'groups' },
    })
  }
}

/** Makes it for whoever runs the instance: the first of its staff, else the first account. */
async function found(tx: RoutingTransaction, { issuer, name, now }: GroupMember): Promise<string | undefined> {
  const owner = await findInstanceOwner(tx)
  if (!owner) return undefined
  const id = newId('org')
  await insertOrganisation(tx, { id, name, personal: false, ...owner, now })
  await insertGroupedOrganisation(tx, issuer, id)
  return id
}
