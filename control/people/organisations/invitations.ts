/** How people come to belong to an organisation: a link, sent to the address that is invited. */
import { parseEmail } from '../../ground/mail/address.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { newId } from '../../../shared/contracts/ids.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets/secrets.ts'
import { requirePermission, type Actor } from '../../ground/actor.ts'
import { transaction } from '../../ground/database/sql.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { ACCOUNT_PATHS, linkTo } from '../../ground/mail/links.ts'
import { recordAudit } from '../audit/audit.ts'
import type { OrganisationsDependencies } from './dependencies.ts'
import { changeAsMember, requireMembership } from './membership.ts'
import {
  countMembers,
  findMembership,
  findOpenInvitation,
  insertInvitation,
  insertMembership,
  listMemberRows,
  listOpenInvitations,
  lockMembers,
  lockPerson,
  markInvitationAccepted,
  revokeInvitationRow,
  revokeInvitationsOf,
  type InvitationRow,
  type MembershipRow,
} from './queries.ts'
import {
  INVITATION_ALLOWANCES,
  INVITATION_LIFETIME_MS,
  MAX_MEMBERS,
  permissionToManage,
  requireProvedToPromote,
  requireWholeAccount,
  type GivableRole,
} from './rules.ts'

export interface Invitations {
  listInvitations(actor: Actor, orgId: string): Promise<InvitationRow[]>
  invite(actor: Actor, orgId: string, input: { email: string; role: GivableRole }): Promise<InvitationRow>
  revokeInvitation(actor: Actor, orgId: string, invitationId: string): Promise<void>
  /** What a link invites to, for the page behind it; undefined when it does not work any more. */
  peekInvitation(token: string): Promise<InvitationRow | undefined>
  /** By the invited address only: the link was sent to it. */
  accept(actor: Actor, token: string): Promise<MembershipRow>
}

export function createInvitations({
  sql,
  clock,
  baseUrl,
  enqueueMail,
}: Omit<OrganisationsDependencies, 'hooks'>): Invitations {
  const now = (): Date => new Date(clock.now())
  const throttle = createThrottle({ sql, clock, allowances: INVITATION_ALLOWANCES })

  return {
    async listInvitations(actor, orgId) {
      await requireMembership(sql, actor, orgId, 'manage_members')
      return listOpenInvitations(sql, orgId, now())
    },

    async invite(actor, orgId, input) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      await throttle.require('invitationMailPerAccount', actor.userId)
      return changeAsMember(sql, actor, orgId, 'manage_members', async (tx, own) => {
        const email = parseEmail(input.email)
        requirePermission(own.role, permissionToManage(input.role))
        requireProvedToPromote(actor, input.role)
        const members = await listMemberRows(tx, orgId)
        if (members.some((member) => member.email === email))
          throw errors.conflict('already_member', `${email} belongs to this organisation already.`)
        const open = await listOpenInvitations(tx, orgId, now())
        if (members.length + open.length >= MAX_MEMBERS)
          throw errors.limitReached(`An organisation has at most ${MAX_MEMBERS} members and invitations.`)
        await revokeInvitationsOf(tx, orgId, email, now())
        const token = randomSecret()
        const invitation = {
          id: newId('inv'),
          orgId,
          email,
          role: input.role,
          expiresAt: new Date(clock.now() + INVITATION_LIFETIME_MS),
        }
        await insertInvitation(tx, { ...invitation, tokenHash: hashSecret(token), invitedBy: actor.userId, now: now() })
        await enqueueMail(tx, {
          eventKey: `invitation:${invitation.id}`,
          to: email,
          template: 'invitation',
          data: {
            link: linkTo(baseUrl, ACCOUNT_PATHS.invitation, token),
            until: invitation.expiresAt,
            organisation: own.name,
            inviter: actor.email,
            role: input.role,
          },
        })
        await recordAudit(tx, {
          at: now(),
          orgId,
          actor,
          action: 'member.invited',
          subject: email,
          detail: { role: input.role },
        })
        return { ...invitation, organisation: own.name, createdAt: now() }
      })
    },

    revokeInvitation: (actor, orgId, invitationId) =>
      changeAsMember(sql, actor, orgId, 'manage_members', async (tx) => {
        const revoked = await revokeInvitationRow(tx, orgId, invitationId, now())
        if (!revoked) throw errors.notFound('invitation')
        await recordAudit(tx, { at: now(), orgId, actor, action: 'member.invitation_revoked', subject: revoked.email })
      }),

    peekInvitation: (token) => findOpenInvitation(sql, hashSecret(token), now()),

    accept: (actor, token) =>
      transaction(sql, async (tx) => {
        requireWholeAccount(actor)
        if (!actor.emailVerified) throw errors.emailNotVerified()
        if (!(await lockPerson(tx, actor.userId))) throw errors.unauthorized()
        const invitation = await findOpenInvitation(tx, hashSecret(token), now())
        if (!invitation) throw errors.invalidLink('This invitation does not work any more. Ask for a new one.')
        if (invitation.email !== actor.email)
          throw errors.forbidden(`This invitation is for ${invitation.email}. Sign in with that address.`)
        await lockMembers(tx, invitation.orgId)
        if ((await countMembers(tx, invitation.orgId)) >= MAX_MEMBERS)
          throw errors.limitReached(`The organisation has ${MAX_MEMBERS} members already.`)
        await markInvitationAccepted(tx, invitation.id, now())
        await insertMembership(tx, { orgId: invitation.orgId, userId: actor.userId, role: invitation.role, now: now() })
        await recordAudit(tx, {
          at: now(),
          orgId: invitation.orgId,
          actor,
          action: 'member.joined',
          subject: actor.email,
          detail: { role: invitation.role },
        })
        const joined = await findMembership(tx, invitation.orgId, actor.userId)
        if (!joined) throw errors.notFound('organisation')
        return joined
      }),
  }
}
