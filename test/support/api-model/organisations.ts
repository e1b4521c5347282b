/** What calls about a person's organisations are answered: which there are, what they use, whose they are. */
import { plans } from '../../../control/ground/terms/plans.ts'
import { MAX_UPLOADS_UNDER_WAY } from '../../../control/drops/sites/uploads/under-way.ts'
import { memberOf, type Acting } from './access.ts'
import { refuse, type Expected } from './answers.ts'
import { removeSite } from './drops.ts'
import type { Org, Person, World } from './world.ts'

const MAX_FREE_ORGANISATIONS = 3

export function readMe(world: World, { person, org }: Acting): Expected {
  return {
    status: 200,
    body: {
      user: { id: person.id, email: person.email, email_verified: true },
      organisation: { id: org.id, name: org.name, plan: org.plan },
      role: org.members.get(person.id),
      organisations: organisationsOf(world, person),
    },
  }
}

export function readUsage(world: World, { org }: Acting): Expected {
  const plan = plans[org.plan]
  const underWay = world.underWay(org)
  return {
    status: 200,
    body: {
      plan: org.plan,
      drops: { used: world.activeCount(org), limit: plan.activeDrops },
      storage_bytes: { used: world.storedBytes(org) + underWay.bytes, limit: plan.storageBytes },
      uploads_under_way: { used: underWay.uploads, limit: MAX_UPLOADS_UNDER_WAY, bytes: underWay.bytes },
      versions_per_drop: { limit: plan.versionsKept },
      paused_drops: world.sitesOf(org).filter((site) => site.paused).length,
    },
  }
}

export function listOrganisations(world: World, { person }: Acting): Expected {
  return { status: 200, body: organisationsOf(world, person) }
}

export function createOrganisation(world: World, { person }: Acting, call: { name: string }): Expected {
  const { name } = call
  requireName(name)
  if (hasAllFree(world, person.id)) throw refuse.limit()
  return {
    status: 201,
    body: { name, plan: 'free', role: 'owner', personal: false },
    learn: ({ id }: { id: string }) =>
      void world.orgs.push({
        id,
        name,
        personal: false,
        plan: 'free',
        owner: person.id,
        members: new Map([[person.id, 'owner']]),
        deleted: false,
      }),
  }
}

export function renameOrganisation(world: World, acting: Acting, call: { org: number; name: string }): Expected {
  const org = memberOf(acting, world.org(call.org), ['owner', 'admin'])
  requireName(call.name)
  return { status: 200, body: { id: org.id, name: call.name }, learn: () => void (org.name = call.name) }
}

export function deleteOrganisation(world: World, acting: Acting, call: { org: number }): Expected {
  const org = memberOf(acting, world.org(call.org), ['owner'])
  if (org.personal) throw refuse.conflict('personal_organisation')
  return {
    status: 204,
    learn: () => {
      for (const site of world.sitesOf(org)) removeSite(world, site)
      for (const token of world.tokens) if (token.org === org.id) token.revoked = true
      for (const invitation of world.invitations) if (invitation.org === org.id) invitation.open = false
      org.deleted = true
    },
  }
}

export function switchOrganisation(world: World, acting: Acting, call: { org: number }): Expected {
  const { person, via } = acting
  if (via === 'token') throw refuse.forbidden()
  const org = memberOf(acting, world.org(call.org))
  return { status: 200, body: { id: org.id }, learn: () => void (person.sessionOrg = org.id) }
}

export function transfer(world: World, acting: Acting, call: { org: number; person: number }): Expected {
  const { person } = acting
  const org = memberOf(acting, world.org(call.org), ['owner'])
  const heir = world.person(call.person)
  if (org.personal) throw refuse.conflict('personal_organisation')
  if (heir === person) return { status: 204 }
  if (!heir || !org.members.has(heir.id)) throw refuse.notFound()
  if (org.plan === 'free' && hasAllFree(world, heir.id)) throw refuse.limit()
  return {
    status: 204,
    learn: () => {
      org.members.set(person.id, 'admin')
      org.members.set(heir.id, 'owner')
      org.owner = heir.id
    },
  }
}

function organisationsOf(world: World, person: Person): object[] {
  const own = world.orgs.filter((org) => !org.deleted && org.members.has(person.id))
  return own.toSorted((a, b) => Number(b.personal) - Number(a.personal)).map((org) => tenant(org, person))
}

function tenant(org: Org, person: Person): object {
  return { id: org.id, name: org.name, plan: org.plan, role: org.members.get(person.id), personal: org.personal }
}

function hasAllFree(world: World, personId: string): boolean {
  const owned = world.orgs.filter((org) => !org.deleted && org.owner === personId && org.plan === 'free')
  return owned.length >= MAX_FREE_ORGANISATIONS
}

function requireName(name: string): void {
  if (name.trim() === '' || name.includes('://')) throw refuse.invalid()
}
