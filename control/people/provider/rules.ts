/** Decisions about what a provider of OpenID Connect says: who it is, which role they have, whether they are still welcome. */
import { z } from 'zod'
import type { GroupRole } from '../../ground/terms/provider.ts'

/** A person as the provider vouches for them. */
export interface ProvedPerson {
  /** The provider's own, which never changes. */
  readonly subject: string
  readonly email: string
  readonly groups: readonly string[]
  /** The provider's session, where it names one. */
  readonly sid: string | undefined
}

/** More groups than any person has; a longer list is cut. */
const MAX_GROUPS = 1000

const claimsSchema = z.looseObject({
  sub: z.string().min(1).max(255),
  email: z.string().max(400).optional(),
  // A text is not the boolean that the specification asks for, and what is unclear is not verified.
  email_verified: z.unknown().optional(),
  groups: z.unknown().optional(),
  sid: z.string().max(255).optional(),
})

export type Person =
  | { readonly kind: 'person'; readonly person: ProvedPerson }
  | { readonly kind: 'refused'; readonly why: string }

/** Who it is, from the claims of an ID token and, where it lacks some, of the userinfo endpoint. */
export function personOf(idToken: unknown, userInfo?: unknown): Person {
  const merged = { ...(userInfo as object | undefined), ...(idToken as object) }
  const claims = claimsSchema.safeParse(merged).data
  if (!claims) return { kind: 'refused', why: 'It did not say who you are.' }
  if (claims.email === undefined || claims.email === '')
    return { kind: 'refused', why: 'It did not tell your e-mail address.' }
  if (claims.email_verified !== true)
    return { kind: 'refused', why: 'It has not verified your e-mail address. Verify it there first.' }
  const { sub: subject, email, sid } = claims
  return { kind: 'person', person: { subject, email, groups: groupsOf(claims.groups), sid } }
}

/** A list of names, or one name. */
export function groupsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return [claim]
  return Array.isArray(claim) ? claim.filter((group) => typeof group === 'string').slice(0, MAX_GROUPS) : []
}

/** The highest of the roles that their groups have; undefined: none of them has one. */
export function roleOfGroups(groups: readonly string[], roles: ReadonlyMap<string, GroupRole>): GroupRole | undefined {
  const found = new Set(groups.map((group) => roles.get(group)))
  return found.has('admin') ? 'admin' : found.has('member') ? 'member' : undefined
}

/** What lets us ask the provider again; kept sealed. */
export interface ProviderGrant {
  readonly refreshToken: string | undefined
  readonly accessToken: string
  /** When the access token ends; null where the provider does not say. */
  readonly accessEndsAt: number | null
  /**
   * The refresh token is one for offline access, which outlives the session in which it was given (OpenID Connect
   * Back-Channel Logout 1.0 §2.7). Everything else may end with that session. Absent in grants of earlier releases.
   */
  readonly isOffline?: boolean
}

/** Did the provider give offline access? Without a `scope` in its answer it gave what was asked for (RFC 6749 §5.1). */
export function givesOffline(
  answer: { readonly refresh_token?: string; readonly scope?: string },
  asked: readonly string[],
): boolean {
  return answer.refresh_token !== undefined && (answer.scope?.split(' ') ?? asked).includes('offline_access')
}

export type HowToCheck = 'refresh' | 'userinfo' | 'trust' | 'run_out'

/**
 * How a person is asked after:
 * 1. With a refresh token: it is used, which fails for whoever was removed.
 * 2. With an access token that still works: who it belongs to. One whose end nobody knows is used where nothing else is.
 * 3. The provider tells us itself when a session ends; nobody is asked after. After a logout there is no grant at all.
 * 4. Otherwise there is nothing to ask with, and they sign in again.
 */
export function howToCheck(
  { refreshToken, accessEndsAt }: ProviderGrant,
  now: number,
  tellsOfLogouts: boolean,
): HowToCheck {
  if (refreshToken !== undefined) return 'refresh'
  if (accessEndsAt === null ? !tellsOfLogouts : accessEndsAt > now) return 'userinfo'
  return tellsOfLogouts ? 'trust' : 'run_out'
}

/** OpenID Connect Back-Channel Logout 1.0 §2.6, beyond the signature, issuer, audience and times. */
export function logoutOf(claims: Readonly<Record<string, unknown>>): { subject?: string; sid?: string } | undefined {
  const { events, sub, sid, nonce } = claims
  const isLogout =
    typeof events === 'object' &&
    events !== null &&
    Object.hasOwn(events, 'http://schemas.openid.net/event/backchannel-logout')
  if (!isLogout || nonce !== undefined) return undefined
  const subject = typeof sub === 'string' && sub !== '' ? { subject: sub } : {}
  const session = typeof sid === 'string' && sid !== '' ? { sid } : {}
  const named = { ...subject, ...session }
  return Object.keys(named).length > 0 ? named : undefined
}
