/** SQL of organisations: tenants, memberships, invitations. */
import { firstPlan, type PlanName } from '../../ground/terms/plans.ts'
import type { Role } from '../../ground/actor.ts'
import { VIEWERS_ONLY } from '../../../shared/contracts/admission.ts'
import { one, type Sql } from '../../ground/database/sql.ts'
import { hasFactorOf } from '../access/second-factor.ts'
import type { VisibilityPolicy } from './rules.ts'

export interface OrganisationRow {
  readonly id: string
  readonly name: string
  readonly plan: PlanName
  readonly personal: boolean
  readonly country: string
  readonly currency: string
  readonly ownerId: string
  readonly visibilityPolicy: VisibilityPolicy
  readonly requiresSecondFactor: boolean
}

/** Its members need a second factor from now on, or no longer. */
export async function setSecondFactorRequired(sql: Sql, orgId: string, isRequired: boolean): Promise<void> {
  await sql`update organisations set requires_second_factor = ${isRequired} where id = ${orgId}`
}

/** Its members who have no second factor. */
export async function listWithoutFactor(sql: Sql, orgId: string): Promise<string[]> {
  const rows = await sql<{ userId: string }[]>`
    select m.user_id as "userId" from memberships m
    where m.org_id = ${orgId} and not ${hasFactorOf(sql, 'm.user_id')} order by m.user_id`
  return rows.map(({ userId }) => userId)
}

/** Those of a person's organisations that ask for a second factor. All of theirs are locked: none begins to meanwhile. */
export async function lockAsking(sql: Sql, userId: string): Promise<string[]> {
  await sql`
    select id from organisations where id in (select org_id from memberships where user_id = ${userId})
    order by id for no key update`
  const rows = await sql<{ id: string }[]>`
    select o.id from memberships m join organisations o on o.id = m.org_id
    where m.user_id = ${userId} and o.requires_second_factor and o.deleted_at is null order by o.id`
  return rows.map(({ id }) => id)
}

export interface MembershipRow extends OrganisationRow {
  readonly role: Role
}

const organisationColumns = (sql: Sql) =>
  sql`o.id, o.name, o.plan, o.personal, o.country, o.currency, o.owner_id as "ownerId", o.visibility_policy as "visibilityPolicy",
  o.requires_second_factor as "requiresSecondFactor"`

export async function insertOrganisation(
  sql: Sql,
  organisation: {
    id: string
    name: string
    personal: boolean
    country: string
    currency: string
    ownerId: string
    now: Date
  },
): Promise<void> {
  await sql`
    insert into organisations (id, plan, name, personal, country, currency, owner_id, created_at)
    values (${organisation.id}, ${firstPlan()}, ${organisation.name}, ${organisation.personal}, ${organisation.country}, ${organisation.currency},
      ${organisation.ownerId}, ${organisation.now})`
  await insertMembership(sql, {
    orgId: organisation.id,
    userId: organisation.ownerId,
    role: 'owner',
    now: organisation.now,
  })
}

export async function insertMembership(
  sql: Sql,
  membership: { orgId: string; userId: string; role: Role; now: Date },
): Promise<boolean> {
  const rows = await sql`
    insert into memberships (org_id, user_id, role, created_at)
    values (${membership.orgId}, ${membership.userId}, ${membership.role}, ${membership.now})
    on conflict do nothing returning user_id`
  return rows.length === 1
}

/** What the user can switch between, the personal one first. */
export async function listMemberships(sql: Sql, userId: string): Promise<MembershipRow[]> {
  return sql<MembershipRow[]>`
    select ${organisationColumns(sql)}, m.role from memberships m join organisations o on o.id = m.org_id
    where m.user_id = ${userId} and o.deleted_at is null order by o.personal desc, o.created_at, o.id`
}

/** Nothing for a user who does not belong to it: it is as absent as a missing one. */
export async function findMembership(sql: Sql, orgId: string, userId: string): Promise<MembershipRow | undefined> {
  const [row] = await sql<MembershipRow[]>`
    select ${organisationColumns(sql)}, m.role from memberships m join organisations o on o.id = m.org_id
    where m.user_id = ${userId} and o.id = ${orgId} and o.deleted_at is null`
  return row
}

/** Orders the changes of who belongs to it. */
export async function lockMembers(sql: Sql, orgId: string): Promise<void> {
  await sql`select id from organisations where id = ${orgId} for no key update`
}

/** Orders what one person creates and joins. False when the account was deleted meanwhile. */
export async function lockPerson(sql: Sql, userId: string): Promise<boolean> {
  const rows = await sql`select id from users where id = ${userId} and deleted_at is null for no key update`
  return rows.length === 1
}

/** As `lockMembers`, for all that one person owns. */
export async function lockOwned(sql: Sql, userId: string): Promise<void> {
  await sql`select id from organisations where owner_id = ${userId} order by id for no key update`
}

export async function listOwned(sql: Sql, userId: string): Promise<(OrganisationRow & { members: number })[]> {
  return sql<(OrganisationRow & { members: number })[]>`
    select ${organisationColumns(sql)}, (select count(*)::int from memberships m where m.org_id = o.id) as members
    from organisations o where o.owner_id = ${userId} and o.deleted_at is null order by o.created_at, o.id`
}

export interface MemberRow {
  readonly userId: string
  readonly email: string
  readonly role: Role
  readonly joinedAt: Date
}

export async function listMemberRows(sql: Sql, orgId: string): Promise<MemberRow[]> {
  return sql<MemberRow[]>`
    select u.id as "userId", coalesce(u.typed_email, u.email) as email, m.role, m.created_at as "joinedAt"
    from memberships m join users u on u.id = m.user_id
    where m.org_id = ${orgId} order by m.created_at, u.id`
}

export async function findMember(
  sql: Sql,
  orgId: string,
  userId: string,
): Promise<(MemberRow & { verified: boolean }) | undefined> {
  const [row] = await sql<(MemberRow & { verified: boolean })[]>`
    select u.id as "userId", coalesce(u.typed_email, u.email) as email, m.role, m.created_at as "joinedAt", u.email_verified_at is not null as verified
    from memberships m join users u on u.id = m.user_id where m.org_id = ${orgId} and m.user_id = ${userId}`
  return row
}

export async function countMembers(sql: Sql, orgId: string): Promise<number> {
  return one(await sql<{ count: number }[]>`select count(*)::int as count from memberships where org_id = ${orgId}`)
    .count
}

export async function setRole(sql: Sql, orgId: string, userId: string, role: Role): Promise<void> {
  await sql`update memberships set role = ${role} where org_id = ${orgId} and user_id = ${userId}`
}

export async function setOwner(sql: Sql, orgId: string, userId: string): Promise<void> {
  await sql`update organisations set owner_id = ${userId} where id = ${orgId}`
}

export async function setName(sql: Sql, orgId: string, name: string): Promise<void> {
  await sql`update organisations set name = ${name} where id = ${orgId}`
}

export async function setPolicy(sql: Sql, orgId: string, policy: VisibilityPolicy): Promise<void> {
  await sql`update organisations set visibility_policy = ${policy} where id = ${orgId}`
}

export interface PublicDrop {
  readonly id: string
  readonly slug: string
}

/** Published, and open to more than named viewers. */
export async function listPublicDrops(sql: Sql, orgId: string): Promise<PublicDrop[]> {
  return sql<PublicDrop[]>`
    select id, slug from sites
    where org_id = ${orgId} and deleted_at is null and live_version_id is not null
      and password_hash is distinct from ${VIEWERS_ONLY} order by slug`
}

/** The member's tokens and connected apps for this organisation end with the membership, also should it begin anew. */
export async function deleteMembership(sql: Sql, orgId: string, userId: string, now: Date): Promise<void> {
  await sql`delete from memberships where org_id = ${orgId} and user_id = ${userId}`
  await sql`update api_tokens set revoked_at = ${now} where org_id = ${orgId} and user_id = ${userId} and revoked_at is null`
  await sql`update oauth_grants set revoked_at = ${now} where org_id = ${orgId} and user_id = ${userId} and revoked_at is null`
}

export async function deleteMemberships(sql: Sql, userId: string): Promise<void> {
  await sql`delete from memberships where user_id = ${userId}`
}

/** The row stays: tombstones of its drops and the audit log refer to it. */
export async function markOrganisationDeleted(sql: Sql, orgId: string, now: Date): Promise<void> {
  await sql`update organisations set deleted_at = ${now} where id = ${orgId}`
  await sql`delete from memberships where org_id = ${orgId}`
  await sql`update api_tokens set revoked_at = ${now} where org_id = ${orgId} and revoked_at is null`
  await sql`update invitations set revoked_at = ${now} where org_id = ${orgId} and accepted_at is null and revoked_at is null`
}

export async function setSessionOrganisation(sql: Sql, sessionId: string, orgId: string): Promise<void> {
  await sql`update sessions set org_id = ${orgId} where id = ${sessionId}`
}

export interface InvitationRow {
  readonly id: string
  readonly orgId: string
  readonly organisation: string
  readonly email: string
  readonly role: 'admin' | 'member'
  readonly createdAt: Date
  readonly expiresAt: Date
}

const invitationColumns = (sql: Sql) => sql`
  i.id, i.org_id as "orgId", o.name as organisation, i.email, i.role, i.created_at as "createdAt", i.expires_at as "expiresAt"`

export async function insertInvitation(
  sql: Sql,
  invitation: {
    id: string
    tokenHash: string
    orgId: string
    email: string
    role: string
    invitedBy: string
    now: Date
    expiresAt: Date
  },
): Promise<void> {
  await sql`
    insert into invitations (id, token_hash, org_id, email, role, invited_by, created_at, expires_at)
    values (${invitation.id}, ${invitation.tokenHash}, ${invitation.orgId}, ${invitation.email}, ${invitation.role},
      ${invitation.invitedBy}, ${invitation.now}, ${invitation.expiresAt})`
}

/** An earlier invitation of the same address gives way to a new one. */
export async function revokeInvitationsOf(sql: Sql, orgId: string, email: string, now: Date): Promise<void> {
  await sql`
    update invitations set revoked_at = ${now}
    where org_id = ${orgId} and lower(email) = ${email} and accepted_at is null and revoked_at is null`
}

export async function listOpenInvitations(sql: Sql, orgId: string, now: Date): Promise<InvitationRow[]> {
  return sql<InvitationRow[]>`
    select ${invitationColumns(sql)} from invitations i join organisations o on o.id = i.org_id
    where i.org_id = ${orgId} and i.accepted_at is null and i.revoked_at is null and i.expires_at > ${now}
    order by i.created_at desc, i.id desc`
}

export async function findOpenInvitation(sql: Sql, tokenHash: string, now: Date): Promise<InvitationRow | undefined> {
  const [row] = await sql<InvitationRow[]>`
    select ${invitationColumns(sql)} from invitations i join organisations o on o.id = i.org_id
    where i.token_hash = ${tokenHash} and i.accepted_at is null and i.revoked_at is null and i.expires_at > ${now}
      and o.deleted_at is null
    for update of i`
  return row
}

export async function hasOpenInvitationTo(sql: Sql, email: string, now: Date): Promise<boolean> {
  const rows = await sql`
    select 1 from invitations i join organisations o on o.id = i.org_id
    where lower(i.email) = ${email} and i.accepted_at is null and i.revoked_at is null and i.expires_at > ${now}
      and o.deleted_at is null limit 1`
  return rows.length > 0
}

export async function markInvitationAccepted(sql: Sql, invitationId: string, now: Date): Promise<void> {
  await sql`update invitations set accepted_at = ${now} where id = ${invitationId}`
}

export async function revokeInvitationRow(
  sql: Sql,
  orgId: string,
  invitationId: string,
  now: Date,
): Promise<{ email: string } | undefined> {
  const [row] = await sql<{ email: string }[]>`
    update invitations set revoked_at = ${now}
    where id = ${invitationId} and org_id = ${orgId} and accepted_at is null and revoked_at is null returning email`
  return row
}

export async function deleteInvitationsTo(sql: Sql, addresses: readonly string[]): Promise<void> {
  await sql`delete from invitations where lower(email) = any(${addresses as string[]})`
}

/** One change of the organisation of groups at a time: two people may be the first. */
export async function lockGroupedOrganisations(sql: Sql): Promise<void> {
  await sql`lock table provider_organisations in share row exclusive mode`
}

export async function findGroupedOrganisation(sql: Sql, issuer: string): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`
    select o.id from provider_organisations p join organisations o on o.id = p.org_id
    where p.issuer = ${issuer} and o.deleted_at is null`
  return row?.id
}

export async function insertGroupedOrganisation(sql: Sql, issuer: string, orgId: string): Promise<void> {
  await sql`
    insert into provider_organisations (issuer, org_id) values (${issuer}, ${orgId})
    on conflict (issuer) do update set org_id = excluded.org_id`
}

/** Who runs the instance, with what their own organisation says about money. */
export async function findInstanceOwner(
  sql: Sql,
): Promise<{ ownerId: string; country: string; currency: string } | undefined> {
  const [row] = await sql<{ ownerId: string; country: string; currency: string }[]>`
    select u.id as "ownerId", o.country, o.currency from users u
    join organisations o on o.owner_id = u.id and o.personal and o.deleted_at is null
    where u.deleted_at is null and u.email_verified_at is not null
    order by u.is_staff desc, u.created_at, u.id limit 1`
  return row
}
