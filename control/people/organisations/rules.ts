/** Roles and what each may do. Policy is this table; everything else asks it. */
import type { Allowance } from '../../ground/http/limits/throttle.ts'
import { requireProved, type Actor, type Role, type Permission } from '../../ground/actor.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { MAX_NAME_CHARS } from '../../../shared/contracts/limits.ts'
import type { PlanName } from '../../ground/terms/plans.ts'

/** A connected app was allowed to act for one organisation; a session and an API token act for the whole account. */
export function mayReach({ via, orgId }: Pick<Actor, 'via' | 'orgId'>, wantedOrgId: string): boolean {
  return via.kind !== 'oauth' || orgId === wantedOrgId
}

export function requireWholeAccount({ via }: Pick<Actor, 'via'>): void {
  if (via.kind === 'oauth')
    throw errors.forbidden('A connected app acts for one organisation only. Do this in the dashboard.')
}

/** Who may see the drops of an organisation, before each says so itself; the first is the default. */
export const VISIBILITY_POLICIES = ['open', 'private_by_default', 'no_public'] as const
export type VisibilityPolicy = (typeof VISIBILITY_POLICIES)[number]

/** Roles that can be given away. Ownership is one person's and moves by transfer only. */
export const GIVABLE_ROLES = ['admin', 'member'] as const
export type GivableRole = (typeof GIVABLE_ROLES)[number]

/** Who may invite, promote, demote or remove a member of that role. */
export function permissionToManage(role: Role): Permission {
  return role === 'member' ? 'manage_members' : 'manage_admins'
}

/** An admin lets others in: a session that was left open must not make one, who would stay when it ends. */
export function requireProvedToPromote(actor: Pick<Actor, 'via'>, role: GivableRole): void {
  if (role === 'admin') requireProved(actor)
}

export const INVITATION_LIFETIME_MS = 7 * DAY_MS

/** Each comes with the drops of the free plan; without an end they would be a way round its cap. */
export const MAX_FREE_ORGANISATIONS = 3

/** Nothing more for them, founded or inherited, before one is paid for or deleted. */
export function hasAllFree(owned: readonly { readonly plan: PlanName }[]): boolean {
  return owned.filter(({ plan }) => plan === 'free').length >= MAX_FREE_ORGANISATIONS
}

/** Mails to strangers. */
export const INVITATION_ALLOWANCES = {
  invitationMailPerAccount: { limit: 50, windowMs: DAY_MS },
} as const satisfies Record<string, Allowance>

/** Invitations are mails to strangers: their number is bounded. */
export const MAX_MEMBERS = 100

export function parseName(text: string): string {
  const name = text.trim().replace(/\s+/g, ' ')
  if (name === '' || name.length > MAX_NAME_CHARS || /\p{Cc}/u.test(name)) {
    throw errors.invalidRequest(`name: use 1 to ${MAX_NAME_CHARS} characters`)
  }
  // It stands in mails to strangers: an invitation must not carry an advertisement.
  if (/:\/\/|www\./i.test(name)) throw errors.invalidRequest('name: leave web addresses out of it')
  return name
}
