/** Organisations as the API shows them. */
import { z } from 'zod'
import { described } from '../../ground/http/operations/described.ts'
import type { InvitationRow, MemberRow, MembershipRow, PublicDrop } from './queries.ts'
import { VISIBILITY_POLICIES } from './rules.ts'

const roleSchema = z.enum(['owner', 'admin', 'member'])

const time = (description: string) => described(z.iso.datetime(), description, '2026-11-15T09:00:00.000Z')

export const tenantSchema = z
  .strictObject({
    id: described(z.string(), 'Id of the organisation.', 'org_7c1m4x9d2k'),
    name: described(z.string(), 'Its name.', 'Example Ltd'),
    plan: described(z.string(), 'What is paid for.', 'business'),
    role: described(roleSchema, 'Yours in it.', 'owner'),
    personal: described(z.boolean(), 'The one that came with the account.', false),
    visibility_policy: described(
      z.enum(VISIBILITY_POLICIES),
      'Whether drops may be public: `open`; `private_by_default`: new ones are for named viewers unless a publish says otherwise; `no_public`: always.',
      'open',
    ),
    still_public: described(
      z.array(z.object({ id: z.string(), slug: z.string() })),
      'Under `no_public`: drops that were open to more than named viewers before, and stay so until they are changed.',
      [],
    ).optional(),
  })
  .meta({ id: 'Organisation' })

export const memberSchema = z
  .strictObject({
    user_id: described(z.string(), 'Id of the person.', 'usr_2b8q6v3n1s'),
    email: described(z.string(), 'Their mail address.', 'ada@example.com'),
    role: described(roleSchema, 'What they may do.', 'member'),
    joined_at: time('When they joined.'),
  })
  .meta({ id: 'Member' })

export const invitationSchema = z
  .strictObject({
    id: described(z.string(), 'Id of the invitation.', 'inv_9s3d5f7g1h'),
    email: described(z.string(), 'Whom it was mailed to.', 'ada@example.com'),
    role: described(roleSchema, 'What they will be.', 'member'),
    created_at: time('When it was sent.'),
    expires_at: time('When its link ends.'),
  })
  .meta({ id: 'Invitation' })

export function toTenant(
  { id, name, plan, role, personal, visibilityPolicy }: MembershipRow,
  stillPublic?: readonly PublicDrop[],
): z.output<typeof tenantSchema> {
  const listed = visibilityPolicy === 'no_public' && stillPublic ? { still_public: [...stillPublic] } : {}
  return { id, name, plan, role, personal, visibility_policy: visibilityPolicy, ...listed }
}

export function toMember({ userId, email, role, joinedAt }: MemberRow): z.output<typeof memberSchema> {
  return { user_id: userId, email, role, joined_at: joinedAt.toISOString() }
}

export function toInvitation({
  id,
  email,
  role,
  createdAt,
  expiresAt,
}: InvitationRow): z.output<typeof invitationSchema> {
  return { id, email, role, created_at: createdAt.toISOString(), expires_at: expiresAt.toISOString() }
}
