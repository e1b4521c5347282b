/** Who is calling, and as which organisation. Every service function for a signed-in caller takes one. */
import { errors } from '../../shared/contracts/errors.ts'
import type { PlanName } from './terms/plans.ts'

export type Role = 'owner' | 'admin' | 'member'

export interface Actor {
  readonly userId: string
  readonly email: string
  readonly emailVerified: boolean
  readonly isStaff: boolean
  /** The organisation acted for: a session's current one, a token's own. */
  readonly orgId: string
  readonly role: Role
  readonly plan: PlanName
  readonly via:
    | { readonly kind: 'session'; readonly sessionId: string }
    | { readonly kind: 'token'; readonly tokenId: string }
    | { readonly kind: 'oauth'; readonly grantId: string; readonly scopes: readonly string[] }
  /** For the audit log. */
  readonly ip: string
}

export type Permission =
  | 'publish'
  | 'read_members'
  | 'read_audit_log'
  | 'manage_members'
  | 'manage_admins'
  | 'rename'
  | 'manage_billing'
  | 'transfer'
  | 'delete'

/** What each role may do. Policy is this table; everything else asks it. */
const PERMISSIONS: Readonly<Record<Permission, readonly Role[]>> = {
  publish: ['owner', 'admin', 'member'],
  read_members: ['owner', 'admin', 'member'],
  read_audit_log: ['owner', 'admin'],
  manage_members: ['owner', 'admin'],
  manage_admins: ['owner'],
  rename: ['owner', 'admin'],
  manage_billing: ['owner'],
  transfer: ['owner'],
  delete: ['owner'],
}

export function may(role: Role, permission: Permission): boolean {
  return PERMISSIONS[permission].includes(role)
}

export function requirePermission(role: Role, permission: Permission): void {
  if (!may(role, permission)) {
    throw errors.forbidden(
      `Your role in this organisation is ${role}; this needs ${PERMISSIONS[permission].join(' or ')}.`,
    )
  }
}
