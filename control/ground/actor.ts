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
  /** How much of what the person may do this credential is good for. */
  readonly reach: Reach
  readonly via:
    /** `needsProof`: the account has a second factor, and this session has not shown it within the last ten minutes. */
    | { readonly kind: 'session'; readonly sessionId: string; readonly needsProof: boolean }
    | { readonly kind: 'token'; readonly tokenId: string }
    | { readonly kind: 'oauth'; readonly grantId: string; readonly scopes: readonly string[] }
    /** A workflow that the drop trusts; the person is the owner of the organisation, who did nothing. */
    | { readonly kind: 'publisher'; readonly publisherId: string; readonly run: WorkflowRun }
  /** For the audit log. */
  readonly ip: string
}

/** What a credential can be limited to, the narrowest first; each holds those before it. */
export const SCOPES = ['read', 'publish', 'manage'] as const
export type Scope = (typeof SCOPES)[number]

export interface Reach {
  /** `everything`: sessions, and credentials that name no scope. They reach people and billing too. */
  readonly scope: Scope | 'everything'
  /** The drops that it acts on; undefined for all of the organisation, and for new ones. */
  readonly sites: readonly string[] | undefined
  /** The one preview of the drop that it publishes to, and all that it does; undefined for what is not limited so. */
  readonly preview?: string | undefined
}

/** What each scope is good for. */
const SCOPES_WITHIN: Readonly<Record<Reach['scope'], readonly Scope[]>> = {
  read: ['read'],
  publish: ['read', 'publish'],
  manage: ['read', 'publish', 'manage'],
  everything: SCOPES,
}

export const EVERYTHING: Reach = { scope: 'everything', sites: undefined }

/** What an operation asks of a credential. Every operation of the API names one, and the document repeats it. */
export type CredentialNeed =
  /** No credential at all. */
  | 'nothing'
  | Scope
  /** Reads about people or billing: any scope will do, and the dashboard has pages for it. */
  | 'read-people'
  /** Changes people or billing: no scope covers it. */
  | 'people'
  /** The dashboard's own session alone. */
  | 'session'

/**
 * Policy: what each need takes. A credential for one preview may be in the hands of whoever proposes a change: it is good
 * for what publishing to a preview takes (`isOfPreview`), and for nothing else.
 */
export function suffices(actor: Pick<Actor, 'reach' | 'via'>, need: CredentialNeed, isOfPreview = false): boolean {
  const { scope, sites, preview } = actor.reach
  if (preview !== undefined && !isOfPreview) return need === 'nothing'
  switch (need) {
    case 'nothing':
      return true
    case 'session':
      return actor.via.kind === 'session'
    case 'people':
      return scope === 'everything' && sites === undefined
    case 'read-people':
      // A workflow is no person of the organisation.
      return actor.via.kind !== 'publisher'
    default:
      return SCOPES_WITHIN[scope].includes(need)
  }
}

/** The widest of the scopes that were given, everything where none were asked for; a list of none is the narrowest. */
export function reachOf(scopes: readonly Scope[] | null, sites?: readonly string[] | null): Reach {
  const scope = scopes === null ? 'everything' : SCOPES.findLast((each) => scopes.includes(each))
  return { scope: scope ?? 'read', sites: sites ?? undefined }
}

/** Does the credential act on this drop at all? */
export function reaches({ sites }: Reach, siteId: string): boolean {
  return sites === undefined || sites.includes(siteId)
}

/** Throws unless a credential for one preview is used for that one. */
export function requirePreview({ reach }: Pick<Actor, 'reach'>, preview: string | undefined): void {
  if (reach.preview !== undefined && reach.preview !== preview)
    throw errors.forbidden(`This token is for the preview ${reach.preview}, and for nothing else.`)
}

/** What a forge said about the run that publishes; empty where it said nothing. */
export interface WorkflowRun {
  readonly provider: 'github' | 'gitlab' | 'forgejo' | 'oidc'
  readonly issuer: string
  readonly repository: string
  readonly workflow: string
  readonly commit: string
  /** Who started it, by the name they have at the forge. */
  readonly actor: string
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

/** Has shown a second factor within the last ten minutes, or is of an account that has none. */
export function isProved({ via }: Pick<Actor, 'via'>): boolean {
  return via.kind !== 'session' || !via.needsProof
}

/** What cannot be undone asks for the second factor again, where the account has one: an open browser is not enough. */
export function requireProved(actor: Pick<Actor, 'via'>): void {
  if (!isProved(actor)) throw errors.stepUpRequired()
}

/** A credential that reaches furthest asks for it too: a session that was left open must not become one that lasts. */
export function requireProvedToGive(actor: Pick<Actor, 'via'>, { scope }: Pick<Reach, 'scope'>): void {
  if (scope === 'everything' || scope === 'manage') requireProved(actor)
}

export function requirePermission(role: Role, permission: Permission): void {
  if (!may(role, permission)) {
    throw errors.forbidden(
      `Your role in this organisation is ${role}; this needs ${PERMISSIONS[permission].join(' or ')}.`,
    )
  }
}
