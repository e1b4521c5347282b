/** What calls about the people of an organisation are answered: members, invitations and the tokens they use. */
import { isOwnToken, memberOf, type Acting } from './access.ts'
import { Refusal, refuse, type Expected } from './answers.ts'
import type { World } from './world.ts'

export function listMembers(world: World, acting: Acting, call: { org: number }): Expected {
  const org = memberOf(acting, world.org(call.org))
  return { status: 200, body: [...org.members].map(([user_id, role]) => ({ user_id, role })) }
}

export function changeRole(
  world: World,
  acting: Acting,
  call: { org: number; person: number; role: string },
): Expected {
  const { role } = call
  if (role !== 'admin' && role !== 'member') throw refuse.invalid()
  const org = memberOf(acting, world.org(call.org), ['owner', 'admin'])
  const member = world.person(call.person)
  const before = member && org.members.get(member.id)
  if (!before) throw refuse.notFound()
  if (before === 'owner') throw refuse.conflict('owner_role')
  if ([before, role].includes('admin') && org.members.get(acting.person.id) !== 'owner') throw refuse.forbidden()
  return {
    status: 200,
    body: { user_id: member.id, role },
    learn: () => void org.members.set(member.id, role),
  }
}

export function removeMember(world: World, acting: Acting, call: { org: number; person: number }): Expected {
  const { person } = acting
  const org = memberOf(acting, world.org(call.org))
  const member = world.person(call.person)
  const own = org.members.get(person.id)!
  const role = member && org.members.get(member.id)
  if (!role) throw refuse.notFound()
  const isLeaving = member === person
  if (!isLeaving && own === 'member') throw refuse.forbidden()
  if (role === 'owner') throw refuse.conflict('owner_role')
  if (!isLeaving && role === 'admin' && own !== 'owner') throw refuse.forbidden()
  return {
    status: 204,
    learn: () => {
      org.members.delete(member.id)
      for (const token of world.tokens) if (token.org === org.id && token.person === member.id) token.revoked = true
    },
  }
}

export function listInvitations(world: World, acting: Acting, call: { org: number }): Expected {
  const org = memberOf(acting, world.org(call.org), ['owner', 'admin'])
  const open = world.invitations.filter((each) => each.org === org.id && each.open).toReversed()
  return { status: 200, body: open.map(({ id, email, role }) => ({ id, email, role })) }
}

export function invite(world: World, acting: Acting, call: { org: number; person: number; role: string }): Expected {
  const { role } = call
  if (role !== 'admin' && role !== 'member') throw refuse.invalid()
  const org = memberOf(acting, world.org(call.org), ['owner', 'admin'])
  const email = world.person(call.person)?.email
  if (email === undefined) throw refuse.invalid()
  if (role === 'admin' && org.members.get(acting.person.id) !== 'owner') throw refuse.forbidden()
  const isMember = world.people.some((each) => each.email === email && org.members.has(each.id))
  if (isMember) throw refuse.conflict('already_member')
  return {
    status: 201,
    body: { email, role },
    learn: ({ id, token }: { id: string; token: string }) => {
      for (const each of world.invitations) if (each.org === org.id && each.email === email) each.open = false
      world.invitations.push({ id, org: org.id, email, role, token, open: true })
    },
  }
}

export function withdrawInvitation(world: World, acting: Acting, call: { org: number; invitation: number }): Expected {
  const org = memberOf(acting, world.org(call.org), ['owner', 'admin'])
  const invitation = world.invitation(call.invitation)
  if (!invitation?.open || invitation.org !== org.id) throw refuse.notFound()
  return { status: 204, learn: () => void (invitation.open = false) }
}

export function acceptInvitation(world: World, { person }: Acting, call: { invitation: number }): Expected {
  const invitation = world.invitation(call.invitation)
  if (!invitation?.open) throw new Refusal(400, 'invalid_link')
  if (invitation.email !== person.email) throw refuse.forbidden()
  const org = world.orgs.find(({ id }) => id === invitation.org)!
  return {
    status: 200,
    body: { id: org.id, name: org.name, plan: org.plan, role: invitation.role, personal: org.personal },
    learn: () => {
      invitation.open = false
      org.members.set(person.id, invitation.role)
    },
  }
}

export function listTokens(world: World, acting: Acting): Expected {
  const own = world.tokens.filter((token) => isOwnToken(acting, token)).toReversed()
  return { status: 200, body: own.map(({ id, name }) => ({ id, name })) }
}

export function createToken(world: World, { person, org, via }: Acting, call: { name: string }): Expected {
  const { name } = call
  // What a credential is good for is decided before its body is looked at.
  if (via === 'token') throw refuse.forbidden()
  if (name.trim() === '') throw refuse.invalid()
  return {
    status: 201,
    body: { name },
    learn: ({ id, token }: { id: string; token: string }) =>
      void world.tokens.push({ id, secret: token, person: person.id, org: org.id, name, revoked: false }),
  }
}

export function revokeToken(world: World, acting: Acting, call: { token: number }): Expected {
  const token = world.token(call.token)
  if (!token || !isOwnToken(acting, token)) throw refuse.notFound()
  return { status: 204, learn: () => void (token.revoked = true) }
}
