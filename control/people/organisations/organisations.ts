/**
 * Organisations: tenants that own drops and plans. Everybody has a personal one; further ones are shared.
 * An organisation that the caller does not belong to answers like a missing one; so does, for a connected app, every
 * one but that which it was allowed to act for.
 */
import { parseEmail } from '../../ground/mail/address.ts'
import type { Clock } from '../../../shared/clock.ts'
import { errors } from '../../../shared/errors.ts'
import { newId } from '../../../shared/ids.ts'
import { hashSecret, randomSecret } from '../../../shared/secrets.ts'
import { ACCOUNT_PATHS, linkTo } from '../../ground/mail/links.ts'
import { type Actor, requirePermission, type Permission } from '../../ground/actor.ts'
import { createThrottle } from '../../ground/http/limits/throttle.ts'
import { recordAudit, type AuditAction } from '../audit/audit.ts'
import { transaction, type Pool, type Sql } from '../../ground/database/sql.ts'
import type { EnqueueMail } from '../../ground/mail/mail.ts'
import type { Bill } from '../../ground/mail/templates.ts'
import {
  countMembers,
  deleteMembership,
  findMember,
  findMembership,
  findOpenInvitation,
  insertInvitation,
  insertMembership,
  insertOrganisation,
  listMemberRows,
  listMemberships,
  listOpenInvitations,
  listOwned,
  lockMembers,
  lockPerson,
  markInvitationAccepted,
  markOrganisationDeleted,
  revokeInvitationRow,
  revokeInvitationsOf,
  setName,
  setOwner,
  setRole,
  setSessionOrganisation,
  type InvitationRow,
  type MemberRow,
  type MembershipRow,
} from './queries.ts'
import {
  INVITATION_LIFETIME_MS,
  hasAllFree,
  MAX_FREE_ORGANISATIONS,
  MAX_MEMBERS,
  parseName,
  permissionToManage,
  mayReach,
  requireWholeAccount,
  type GivableRole,
  ALLOWANCES,
} from './rules.ts'

export interface Organisations {
  list(actor: Actor): Promise<MembershipRow[]>
  create(actor: Actor, name: string): Promise<MembershipRow>
  rename(actor: Actor, orgId: string, name: string): Promise<MembershipRow>
  /** Its drops are gone at once. A personal organisation goes with its account only. */
  remove(actor: Actor, orgId: string): Promise<void>
  /** Makes it the one that the session acts for. */
  switchTo(actor: Actor, orgId: string): Promise<MembershipRow>

  listMembers(actor: Actor, orgId: string): Promise<MemberRow[]>
  changeRole(actor: Actor, orgId: string, userId: string, role: GivableRole): Promise<MemberRow>
  /** Removes somebody; oneself: leaves. */
  removeMember(actor: Actor, orgId: string, userId: string): Promise<void>
  /** The former owner stays as admin. */
  transfer(actor: Actor, orgId: string, toUserId: string): Promise<void>

  listInvitations(actor: Actor, orgId: string): Promise<InvitationRow[]>
  invite(actor: Actor, orgId: string, input: { email: string; role: GivableRole }): Promise<InvitationRow>
  revokeInvitation(actor: Actor, orgId: string, invitationId: string): Promise<void>
  /** What a link invites to, for the page behind it; undefined when it does not work any more. */
  peekInvitation(token: string): Promise<InvitationRow | undefined>
  /** By the invited address only: the link was sent to it. */
  accept(actor: Actor, token: string): Promise<MembershipRow>
}

export interface OrganisationHooks {
  /** Deletes the organisation's drops, domains and subscription. */
  onOrganisationDeleted(sql: Sql, orgId: string, now: Date): Promise<void>
  /** Serving depends on the owner's mailbox and last sign-in, and the bill follows the owner: what there is to pay. */
  onOwnerChanged(sql: Sql, orgId: string, now: Date): Promise<{ bill: Bill | undefined }>
  /** After the commit: tells the edges. */
  propagate(): Promise<unknown>
}

export interface OrganisationsDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly baseUrl: string
  readonly enqueueMail: EnqueueMail
  readonly hooks: OrganisationHooks
}

export function createOrganisations({
  sql,
  clock,
  baseUrl,
  enqueueMail,
  hooks,
}: OrganisationsDependencies): Organisations {
  const now = (): Date => new Date(clock.now())
  const throttle = createThrottle({ sql, clock, allowances: ALLOWANCES })

  async function membership(db: Sql, actor: Actor, orgId: string, permission?: Permission): Promise<MembershipRow> {
    const found = await findMembership(db, orgId, actor.userId)
    if (!found || !mayReach(actor, orgId)) throw errors.notFound('organisation')
    if (permission) requirePermission(found.role, permission)
    return found
  }

  /** One change of an organisation at a time, judged by the roles as they are then, and recorded. */
  function change<Result>(
    actor: Actor,
    orgId: string,
    permission: Permission | undefined,
    work: (db: Sql, own: MembershipRow) => Promise<Result>,
  ): Promise<Result> {
    return transaction(sql, async (db) => {
      await lockMembers(db, orgId)
      return work(db, await membership(db, actor, orgId, permission))
    })
  }

  const record = (
    db: Sql,
    actor: Actor,
    orgId: string,
    action: AuditAction,
    subject: string,
    detail = {},
  ): Promise<void> => recordAudit(db, { at: now(), orgId, actor, action, subject, detail })

  async function otherMember(db: Sql, orgId: string, userId: string): Promise<MemberRow & { verified: boolean }> {
    const member = await findMember(db, orgId, userId)
    if (!member) throw errors.notFound('member')
    return member
  }

  /** Each transfer is told once; there and back again is two. */
  async function tellOwners(
    db: Sql,
    { id, name: organisation }: MembershipRow,
    { from, to, bill }: { from: string; to: string; bill: Bill | undefined },
  ): Promise<void> {
    const eventKey = `transferred:${id}:${now().toISOString()}`
    const data = { organisation, bill, billingLink: `${baseUrl}/account/plan` }
    await enqueueMail(db, {
      eventKey: `${eventKey}:to`,
      to,
      template: 'organisation_received',
      data: { ...data, from, organisationLink: `${baseUrl}/account/organisation` },
    })
    await enqueueMail(db, {
      eventKey: `${eventKey}:from`,
      to: from,
      template: 'organisation_handed_over',
      data: { organisation, bill, to },
    })
  }

  return {
    list: async (actor) => (await listMemberships(sql, actor.userId)).filter(({ id }) => mayReach(actor, id)),

    async create(actor, text) {
      requireWholeAccount(actor)
      if (!actor.emailVerified) throw errors.emailNotVerified()
      const name = parseName(text)
      return transaction(sql, async (db) => {
        if (!(await lockPerson(db, actor.userId))) throw errors.unauthorized()
        const owned = await listOwned(db, actor.userId)
        if (hasAllFree(owned)) {
          throw errors.limitReached(
            `You own ${MAX_FREE_ORGANISATIONS} organisations on the free plan. Upgrade or delete one first.`,
          )
        }
        const { country, currency } = owned.find((organisation) => organisation.personal)!
        const id = newId('org')
        await insertOrganisation(db, {
          id,
          name,
          personal: false,
          country,
          currency,
          ownerId: actor.userId,
          now: now(),
        })
        await record(db, actor, id, 'organisation.created', id, { name })
        return membership(db, actor, id)
      })
    },

    rename: (actor, orgId, text) =>
      change(actor, orgId, 'rename', async (db, own) => {
        const name = parseName(text)
        await setName(db, orgId, name)
        await record(db, actor, orgId, 'organisation.renamed', orgId, { from: own.name, to: name })
        return { ...own, name }
      }),

    async remove(actor, orgId) {
      await change(actor, orgId, 'delete', async (db, own) => {
        if (own.personal)
          throw errors.conflict(
            'personal_organisation',
            'This is your personal organisation. It is deleted with your account.',
          )
        await record(db, actor, orgId, 'organisation.deleted', orgId, { name: own.name })
        await hooks.onOrganisationDeleted(db, orgId, now())
        await markOrganisationDeleted(db, orgId, now())
      })
      await hooks.propagate()
    },

    async switchTo(actor, orgId) {
      if (actor.via.kind !== 'session')
        throw errors.forbidden('A token belongs to one organisation. Only a dashboard session can switch.')
      const target = await membership(sql, actor, orgId)
      await setSessionOrganisation(sql, actor.via.sessionId, orgId)
      return target
    },

    async listMembers(actor, orgId) {
      await membership(sql, actor, orgId, 'read_members')
      return listMemberRows(sql, orgId)
    },

    changeRole: (actor, orgId, userId, role) =>
      change(actor, orgId, 'manage_members', async (db, own) => {
        const member = await otherMember(db, orgId, userId)
        if (member.role === 'owner')
          throw errors.conflict('owner_role', 'The owner stays owner until ownership is transferred.')
        requirePermission(own.role, permissionToManage(member.role))
        requirePermission(own.role, permissionToManage(role))
        await setRole(db, orgId, userId, role)
        await record(db, actor, orgId, 'member.role_changed', member.email, { from: member.role, to: role })
        return { userId, email: member.email, role, joinedAt: member.joinedAt }
      }),

    removeMember: (actor, orgId, userId) =>
      change(actor, orgId, undefined, async (db, own) => {
        const isLeaving = userId === actor.userId
        const member = await otherMember(db, orgId, userId)
        if (!isLeaving) requirePermission(own.role, 'manage_members')
        if (member.role === 'owner')
          throw errors.conflict(
            'owner_role',
            'The owner cannot leave. Transfer ownership first, or delete the organisation.',
          )
        if (!isLeaving) requirePermission(own.role, permissionToManage(member.role))
        await deleteMembership(db, orgId, userId, now())
        await record(db, actor, orgId, isLeaving ? 'member.left' : 'member.removed', member.email)
      }),

    async transfer(actor, orgId, toUserId) {
      await change(actor, orgId, 'transfer', async (db, own) => {
        if (own.personal)
          throw errors.conflict('personal_organisation', 'A personal organisation cannot be transferred.')
        if (toUserId === actor.userId) return
        // Whoever deletes the account at this moment inherits nothing.
        if (!(await lockPerson(db, toUserId))) throw errors.notFound('member')
        const heir = await otherMember(db, orgId, toUserId)
        // The drops of an unverified owner answer 503.
        if (!heir.verified)
          throw errors.conflict('owner_not_verified', 'The new owner has to verify the e-mail address first.')
        if (own.plan === 'free' && hasAllFree(await listOwned(db, heir.userId)))
          throw errors.limitReached(
            `${heir.email} owns ${MAX_FREE_ORGANISATIONS} organisations on the free plan already. Upgrade this one first.`,
          )
        // There is one owner at any time: first down, then up.
        await setRole(db, orgId, actor.userId, 'admin')
        await setRole(db, orgId, heir.userId, 'owner')
        await setOwner(db, orgId, heir.userId)
        await record(db, actor, orgId, 'organisation.transferred', heir.email)
        const { bill } = await hooks.onOwnerChanged(db, orgId, now())
        await tellOwners(db, own, { from: actor.email, to: heir.email, bill })
      })
      await hooks.propagate()
    },

    async listInvitations(actor, orgId) {
      await membership(sql, actor, orgId, 'manage_members')
      return listOpenInvitations(sql, orgId, now())
    },

    async invite(actor, orgId, input) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      await throttle.require('invitationMailPerAccount', actor.userId)
      return change(actor, orgId, 'manage_members', async (db, own) => {
        const email = parseEmail(input.email)
        requirePermission(own.role, permissionToManage(input.role))
        const members = await listMemberRows(db, orgId)
        if (members.some((member) => member.email === email))
          throw errors.conflict('already_member', `${email} belongs to this organisation already.`)
        const open = await listOpenInvitations(db, orgId, now())
        if (members.length + open.length >= MAX_MEMBERS)
          throw errors.limitReached(`An organisation has at most ${MAX_MEMBERS} members and invitations.`)
        await revokeInvitationsOf(db, orgId, email, now())
        const token = randomSecret()
        const invitation = {
          id: newId('inv'),
          orgId,
          email,
          role: input.role,
          expiresAt: new Date(clock.now() + INVITATION_LIFETIME_MS),
        }
        await insertInvitation(db, { ...invitation, tokenHash: hashSecret(token), invitedBy: actor.userId, now: now() })
        await enqueueMail(db, {
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
        await record(db, actor, orgId, 'member.invited', email, { role: input.role })
        return { ...invitation, organisation: own.name, createdAt: now() }
      })
    },

    revokeInvitation: (actor, orgId, invitationId) =>
      change(actor, orgId, 'manage_members', async (db) => {
        const revoked = await revokeInvitationRow(db, orgId, invitationId, now())
        if (!revoked) throw errors.notFound('invitation')
        await record(db, actor, orgId, 'member.invitation_revoked', revoked.email)
      }),

    peekInvitation: (token) => findOpenInvitation(sql, hashSecret(token), now()),

    accept: (actor, token) =>
      transaction(sql, async (db) => {
        requireWholeAccount(actor)
        if (!actor.emailVerified) throw errors.emailNotVerified()
        if (!(await lockPerson(db, actor.userId))) throw errors.unauthorized()
        const invitation = await findOpenInvitation(db, hashSecret(token), now())
        if (!invitation) throw errors.invalidLink('This invitation does not work any more. Ask for a new one.')
        if (invitation.email !== actor.email)
          throw errors.forbidden(`This invitation is for ${invitation.email}. Sign in with that address.`)
        await lockMembers(db, invitation.orgId)
        if ((await countMembers(db, invitation.orgId)) >= MAX_MEMBERS)
          throw errors.limitReached(`The organisation has ${MAX_MEMBERS} members already.`)
        await markInvitationAccepted(db, invitation.id, now())
        await insertMembership(db, { orgId: invitation.orgId, userId: actor.userId, role: invitation.role, now: now() })
        await record(db, actor, invitation.orgId, 'member.joined', actor.email, { role: invitation.role })
        return membership(db, actor, invitation.orgId)
      }),
  }
}
