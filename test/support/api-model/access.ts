/** Who a caller is, and what is theirs. */
import { refuse } from './answers.ts'
import type { Org, Person, Role, Site, Token, World } from './world.ts'

export type Caller =
  | { readonly kind: 'session'; readonly person: number }
  /** A session cookie that someone else's page made the browser send. */
  | { readonly kind: 'foreign page'; readonly person: number }
  | { readonly kind: 'token'; readonly token: number }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'wrong token' }

/** Who a call is made as, once its credentials were found good. */
export interface Acting {
  readonly person: Person
  readonly org: Org
  readonly via: 'session' | 'token'
}

export function actingAs(world: World, caller: Caller, access: 'account' | 'verified'): Acting {
  const acting = credentials(world, caller)
  if (!acting) throw refuse.unauthorized()
  if (access === 'verified' && !acting.person.verified) throw refuse.unverified()
  return acting
}

export function credentials(world: World, caller: Caller): Acting | undefined {
  switch (caller.kind) {
    case 'session': {
      const person = world.people[caller.person % world.people.length]!
      const switched = world.orgs.find(({ id }) => id === person.sessionOrg)!
      // A session whose organisation was left or deleted acts for the person's own again.
      const isThere = !switched.deleted && switched.members.has(person.id)
      return { person, org: isThere ? switched : personalOf(world, person), via: 'session' }
    }
    case 'token': {
      const token = world.tokens[caller.token % world.tokens.length]!
      if (token.revoked) return undefined
      const org = world.orgs.find(({ id }) => id === token.org)!
      return { person: world.people.find(({ id }) => id === token.person)!, org, via: 'token' }
    }
    case 'foreign page':
    case 'nobody':
    case 'wrong token':
      return undefined
    default:
      return caller satisfies never
  }
}

function personalOf(world: World, person: Person): Org {
  return world.orgs.find((org) => org.personal && org.owner === person.id)!
}

export function ownSite({ org }: Acting, site: Site | undefined): Site {
  if (!site || site.deleted || site.org !== org.id) throw refuse.notFound()
  return site
}

export function memberOf(
  { person }: Acting,
  org: Org | undefined,
  roles: readonly Role[] = ['owner', 'admin', 'member'],
): Org {
  const role = org?.deleted ? undefined : org?.members.get(person.id)
  if (!org || !role) throw refuse.notFound()
  if (!roles.includes(role)) throw refuse.forbidden()
  return org
}

export function isOwnToken({ person, org }: Acting, token: Token): boolean {
  return !token.revoked && token.person === person.id && token.org === org.id
}
