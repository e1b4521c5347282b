/** Organisations as the API shows them. */
import { z } from 'zod'
import type { InvitationRow, MemberRow, MembershipRow } from './queries.ts'

const roleSchema = z.enum(['owner', 'admin', 'member'])

export const tenantSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  plan: z.string(),
  role: roleSchema,
  personal: z.boolean(),
})

export const memberSchema = z.strictObject({
  user_id: z.string(),
  email: z.string(),
  role: roleSchema,
  joined_at: z.iso.datetime(),
})

export const invitationSchema = z.strictObject({
  id: z.string(),
  email: z.string(),
  role: roleSchema,
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
})

export function toTenant({ id, name, plan, role, personal }: MembershipRow): z.output<typeof tenantSchema> {
  return { id, name, plan, role, personal }
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
