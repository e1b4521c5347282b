/**
 * Organisations: tenants that own drops and plans. Everyone has a personal one; further ones are shared.
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
import { changeRoutes, type RouteChanges, type RoutingTransaction } from '../../ground/routing/changes.ts'
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
  /** Removes a member; oneself: leaves. */
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
  onOrganisationDeleted(tx: RoutingTransaction, orgId: string, now: Date): Promise<void>
  /** Serving depends on the owner's mailbox and last sign-in, and the bill follows the owner: what there is to pay. */
  onOwnerChanged(tx: RoutingTransaction, orgId: string, now: Date): Promise<{ bill: Bill | undefined }>
  /** After the commit: tells the edges. */
  propagate(changes: RouteChanges): Promise<unknown>
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

  async function membership(sql: Sql, actor: Actor, orgId: string, permission?: Permission): Promise<MembershipRow> {
    const found = await findMembership(sql, orgId, actor.userId)
    if (!found || !mayReach(actor, orgId)) throw errors.notFound('organisation')
    if (permission) requirePermission(found.role, permission)
    return found
  }

  /** One change of an organisation at a time, judged by the roles as they are then, and recorded. */
  function change<Result>(
    actor: Actor,
    orgId: string,
    permission: Permission | undefined,
    work: (tx: Sql, own: MembershipRow) => Promise<Result>,
  ): Promise<Result> {
    return transaction(sql, async (tx) => {
      await lockMembers(tx, orgId)
      return work(tx, await membership(tx, actor, orgId, permission))
    })
  }

  /** As `change`, for what visitors notice: the edges are told after the commit. */
  async function changeServed(
    actor: Actor,
    orgId: string,
    permission: Permission,
    work: (tx: RoutingTransaction, own: MembershipRow) => Promise<void>,
  ): Promise<void> {
    const { changes } = await changeRoutes(sql, async (tx) => {
      await lockMembers(tx, orgId)
      await work(tx, await membership(tx, actor, orgId, permission))
    })
    await hooks.propagate(changes)
  }

  const record = (
    tx: Sql,
    actor: Actor,
    orgId: string,
    action: AuditAction,
    subject: string,
    detail = {},
  ): Promise<void> => recordAudit(tx, { at: now(), orgId, actor, action, subject, detail })

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
  ): Promise<void> {
    const eventKey = `transferred:${id}:${now().toISOString()}`
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

  return {
    list: async (actor) => (await listMemberships(sql, actor.userId)).filter(({ id }) => mayReach(actor, id)),

    async create(actor, text) {
      requireWholeAccount(actor)
      if (!actor.emailVerified) throw errors.emailNotVerified()
      const name = parseName(text)
      return transaction(sql, async (tx) => {
        if (!(await lockPerson(tx, actor.userId))) throw errors.unauthorized()
        const owned = await listOwned(tx, actor.userId)
        if (hasAllFree(owned)) {
          throw errors.limitReached(
            `You own ${MAX_FREE_ORGANISATIONS} organisations on the free plan. Upgrade or delete one first.`,
          )
        }
        const { country, currency } = owned.find((organisation) => organisation.personal)!
        const id = newId('org')
        await insertOrganisation(tx, {
          id,
          name,
          personal: false,
          country,
          currency,
          ownerId: actor.userId,
          now: now(),
        })
        await record(tx, actor, id, 'organisation.created', id, { name })
        return membership(tx, actor, id)
      })
    },

    rename: (actor, orgId, text) =>
      change(actor, orgId, 'rename', async (tx, own) => {
        const name = parseName(text)
        await setName(tx, orgId, name)
        await record(tx, actor, orgId, 'organisation.renamed', orgId, { from: own.name, to: name })
        return { ...own, name }
      }),

    remove: (actor, orgId) =>
      changeServed(actor, orgId, 'delete', async (tx, own) => {
        if (own.personal)
          throw errors.conflict(
            'personal_organisation',
            'This is your personal organisation. It is deleted with your account.',
          )
        await record(tx, actor, orgId, 'organisation.deleted', orgId, { name: own.name })
        await hooks.onOrganisationDeleted(tx, orgId, now())
        await markOrganisationDeleted(tx, orgId, now())
      }),

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
      change(actor, orgId, 'manage_members', async (tx, own) => {
        const member = await otherMember(tx, orgId, userId)
        if (member.role === 'owner')
          throw errors.conflict('owner_role', 'The owner stays owner until ownership is transferred.')
        requirePermission(own.role, permissionToManage(member.role))
        requirePermission(own.role, permissionToManage(role))
        await setRole(tx, orgId, userId, role)
        await record(tx, actor, orgId, 'member.role_changed', member.email, { from: member.role, to: role })
        return { userId, email: member.email, role, joinedAt: member.joinedAt }
      }),

    removeMember: (actor, orgId, userId) =>
      change(actor, orgId, undefined, async (tx, own) => {
        const isLeaving = userId === actor.userId
        const member = await otherMember(tx, orgId, userId)
        if (!isLeaving) requirePermission(own.role, 'manage_members')
        if (member.role === 'owner')
          throw errors.conflict(
            'owner_role',
            'The owner cannot leave. Transfer ownership first, or delete the organisation.',
          )
        if (!isLeaving) requirePermission(own.role, permissionToManage(member.role))
        await deleteMembership(tx, orgId, userId, now())
        await record(tx, actor, orgId, isLeaving ? 'member.left' : 'member.removed', member.email)
      }),

    transfer: (actor, orgId, toUserId) =>
      changeServed(actor, orgId, 'transfer', async (tx, own) => {
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
        await record(tx, actor, orgId, 'organisation.transferred', heir.email)
        const { bill } = await hooks.onOwnerChanged(tx, orgId, now())
        await tellOwners(tx, own, { from: actor.email, to: heir.email, bill })
      }),

    async listInvitations(actor, orgId) {
      await membership(sql, actor, orgId, 'manage_members')
      return listOpenInvitations(sql, orgId, now())
    },

    async invite(actor, orgId, input) {
      if (!actor.emailVerified) throw errors.emailNotVerified()
      await throttle.require('invitationMailPerAccount', actor.userId)
      return change(actor, orgId, 'manage_members', async (tx, own) => {
        const email = parseEmail(input.email)
        requirePermission(own.role, permissionToManage(input.role))
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
        await record(tx, actor, orgId, 'member.invited', email, { role: input.role })
        return { ...invitation, organisation: own.name, createdAt: now() }
      })
    },

    revokeInvitation: (actor, orgId, invitationId) =>
      change(actor, orgId, 'manage_members', async (tx) => {
        const revoked = await revokeInvitationRow(tx, orgId, invitationId, now())
        if (!revoked) throw errors.notFound('invitation')
        await record(tx, actor, orgId, 'member.invitation_revoked', revoked.email)
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
        await record(tx, actor, invitation.orgId, 'member.joined', actor.email, { role: invitation.role })
        return membership(tx, actor, invitation.orgId)
      }),
  }
}
