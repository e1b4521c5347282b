/** Who is calling, and as which organisation. Every service function that belongs to somebody takes one. */
import type { PlanName } from '../../shared/plans.ts'

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
