/** Those who belong to an organisation: roles, leaving, and who owns it. */
import { errors } from '../../../shared/contracts/errors.ts'
import { requirePermission, requireProved, type Actor } from '../../ground/actor.ts'
import type { Sql } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Bill } from '../../ground/mail/letters/templates.ts'
import { changeRoutes } from '../../ground/routing/changes.ts'
import { recordAudit } from '../audit/audit.ts'
import type { OrganisationsDependencies } from './dependencies.ts'
import { changeAsMember, lockAsMember, lockToLeave, requireMembership } from './membership.ts'
import {
  deleteMembership,
  findMember,
  listMemberRows,
  listOwned,
  lockPerson,
  setOwner,
  setRole,
  type MemberRow,
  type MembershipRow,
} from './queries.ts'
import {
  hasAllFree,
  MAX_FREE_ORGANISATIONS,
  permissionToManage,
  requireProvedToPromote,
  type GivableRole,
} from './rules.ts'

export interface Members {
  listMembers(actor: Actor, orgId: string): Promise<MemberRow[]>
  changeRole(actor: Actor, orgId: string, userId: string, role: GivableRole): Promise<MemberRow>
  /** Removes a member; oneself: leaves, also without the second factor that the organisation asks for. */
  removeMember(actor: Actor, orgId: string, userId: string): Promise<void>
  /** The former owner stays as admin. */
  transfer(actor: Actor, orgId: string, toUserId: string): Promise<void>
}

export function createMembers({ sql, clock, baseUrl, enqueueMail, hooks }: OrganisationsDependencies): Members {
  const now = (): Date => new Date(clock.now())

  return {
    async listMembers(actor, orgId) {
      await requireMembership(sql, actor, orgId, 'read_members')
      return listMemberRows(sql, orgId)
    },

    changeRole: (actor, orgId, userId, role) =>
      changeAsMember(sql, actor, orgId, 'manage_members', async (tx, own) => {
        const member = await otherMember(tx, orgId, userId)
        if (member.role === 'owner')
          throw errors.conflict('owner_role', 'The owner stays owner until ownership is transferred.')
        requirePermission(own.role, permissionToManage(member.role))
        requirePermission(own.role, permissionToManage(role))
        requireProvedToPromote(actor, role)
        await setRole(tx, orgId, userId, role)
        await recordAudit(tx, {
          at: now(),
          orgId,
          actor,
          action: 'member.role_changed',
          subject: member.email,
          detail: { from: member.role, to: role },
        })
        return { userId, email: member.email, role, joinedAt: member.joinedAt }
      }),

    async removeMember(actor, orgId, userId) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const isLeaving = userId === actor.userId
        const own = isLeaving ? await lockToLeave(tx, actor, orgId) : await lockAsMember(tx, actor, orgId)
        const member = await otherMember(tx, orgId, userId)
        if (!isLeaving) requirePermission(own.role, 'manage_members')
        if (!isLeaving) requireProved(actor)
        if (member.role === 'owner')
          throw errors.conflict(
            'owner_role',
            'The owner cannot leave. Transfer ownership first, or delete the organisation.',
          )
        if (!isLeaving) requirePermission(own.role, permissionToManage(member.role))
        await hooks.onMemberLeft(tx, userId, orgId, now())
        await deleteMembership(tx, orgId, userId, now())
        await recordAudit(tx, {
          at: now(),
          orgId,
          actor,
          action: isLeaving ? 'member.left' : 'member.removed',
          subject: member.email,
        })
      })
      await hooks.propagate(changes)
    },

    async transfer(actor, orgId, toUserId) {
      const { changes } = await changeRoutes(sql, async (tx) => {
        const own = await lockAsMember(tx, actor, orgId, 'transfer')
        requireProved(actor)
        if (own.personal)
          throw errors.conflict('personal_organisation', 'A personal organisation cannot be transferred.')
        if (toUserId === actor.userId) return
        // A member who deletes the account at this moment inherits nothing.
        if (!(await lockPerson(tx, toUserId))) throw errors.notFound('member')
        const heir = await otherMember(tx, orgId, toUserId)
        // The drops of an unverified owner answer 503.
        if (!heir.verified)
          throw errors.conflict('owner_not_verified', 'The new owner has to verify the e-mail address first.')
        if (own.plan === 'free' && hasAllFree(await listOwned(tx, heir.userId)))
          throw errors.limitReached(
            `${heir.email} owns ${MAX_FREE_ORGANISATIONS} organisations on the free plan already. Upgrade this one first.`,
          )
        // There is one owner at any time: first down, then up.
        await setRole(tx, orgId, actor.userId, 'admin')
        await setRole(tx, orgId, heir.userId, 'owner')
        await setOwner(tx, orgId, heir.userId)
        await recordAudit(tx, { at: now(), orgId, actor, action: 'organisation.transferred', subject: heir.email })
        const { bill } = await hooks.onOwnerChanged(tx, orgId, now())
        await tellOwners(tx, own, { from: actor.email, to: heir.email, bill }, { enqueueMail, baseUrl, at: now() })
      })
      await hooks.propagate(changes)
    },
  }
}

async function otherMember(tx: Sql, orgId: string, userId: string): Promise<MemberRow & { verified: boolean }> {
  const member = await findMember(tx, orgId, userId)
  if (!member) throw errors.notFound('member')
  return member
}

/** Each transfer is told once; there and back again is two. */
async function tellOwners(
  tx: Sql,
  { id, name: organisation }: MembershipRow,
  { from, to, bill }: { from: string; to: string; bill: Bill | undefined },
  { enqueueMail, baseUrl, at }: { enqueueMail: EnqueueMail; baseUrl: string; at: Date },
): Promise<void> {
  const eventKey = `transferred:${id}:${at.toISOString()}`
  const data = { organisation, bill, billingLink: `${baseUrl}/account/plan` }
  await enqueueMail(tx, {
    eventKey: `${eventKey}:to`,
    to,
    template: 'organisation_received',
    data: { ...data, from, organisationLink: `${baseUrl}/account/organisation` },
  })
  await enqueueMail(tx, {
    eventKey: `${eventKey}:from`,
    to: from,
    template: 'organisation_handed_over',
    data: { organisation, bill, to },
  })
}
