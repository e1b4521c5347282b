import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Actor, Role } from '../../control/ground/actor.ts'
import { auditRoutes } from '../../control/people/audit/routes.ts'
import { recordAudit } from '../../control/people/audit/audit.ts'
import type { Organisations } from '../../control/people/organisations/organisations.ts'
import { organisationRoutes } from '../../control/people/organisations/routes.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import type { Sql } from '../../control/ground/database/sql.ts'
import { duringTransaction } from '../support/races.ts'
import { callRoute, createAccountsFixture, PASSWORD, refusal, VISIT } from '../support/accounts.ts'

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>
let organisations: Organisations
/** One person per role, who change places between the organisations of the tests. */
let people: Record<Role | 'second' | 'stranger', Actor>

beforeAll(async () => {
  fixture = await createAccountsFixture()
  organisations = fixture.organisations
  people = {
    owner: await fixture.newAccount('owner@example.com'),
    admin: await fixture.newAccount('admin@example.com'),
    member: await fixture.newAccount('member@example.com'),
    second: await fixture.newAccount('second@example.com'),
    stranger: await fixture.newAccount('stranger@example.com'),
  }
})
afterAll(() => fixture.close())
beforeEach(async () => {
  await fixture.sql`update organisations set deleted_at = now() where not personal`
  await fixture.sql`delete from throttles`
  fixture.hookCalls.length = 0
})

async function join(orgId: string, inviter: Actor, guest: Actor, role: 'admin' | 'member'): Promise<void> {
  await organisations.invite(inviter, orgId, { email: guest.email, role })
  fixture.advance(1)
  await organisations.accept(guest, (await fixture.mailsTo(guest.email)).at(-1)!.token)
}

/** An organisation with an owner, an admin, a member, and a second member to act upon. */
async function newOrganisation(): Promise<string> {
  const { id } = await organisations.create(people.owner, 'Acme')
  await join(id, people.owner, people.admin, 'admin')
  await join(id, people.owner, people.member, 'member')
  await join(id, people.owner, people.second, 'member')
  return id
}

describe('what each role may do', () => {
  const deeds: Record<string, (actor: Actor, orgId: string) => Promise<unknown>> = {
    'read the members': (actor, orgId) => organisations.listMembers(actor, orgId),
    switch: (actor, orgId) => organisations.switchTo(actor, orgId),
    rename: (actor, orgId) => organisations.rename(actor, orgId, 'Acme 2'),
    'invite a member': (actor, orgId) =>
      organisations.invite(actor, orgId, { email: 'new@example.com', role: 'member' }),
    'invite an admin': (actor, orgId) =>
      organisations.invite(actor, orgId, { email: 'new@example.com', role: 'admin' }),
    'read the invitations': (actor, orgId) => organisations.listInvitations(actor, orgId),
    'promote a member': (actor, orgId) => organisations.changeRole(actor, orgId, people.second.userId, 'admin'),
    'demote an admin': (actor, orgId) => organisations.changeRole(actor, orgId, people.admin.userId, 'member'),
    'demote the owner': (actor, orgId) => organisations.changeRole(actor, orgId, people.owner.userId, 'member'),
    'remove a member': (actor, orgId) => organisations.removeMember(actor, orgId, people.second.userId),
    'remove the owner': (actor, orgId) => organisations.removeMember(actor, orgId, people.owner.userId),
    leave: (actor, orgId) => organisations.removeMember(actor, orgId, actor.userId),
    transfer: (actor, orgId) => organisations.transfer(actor, orgId, people.second.userId),
    delete: (actor, orgId) => organisations.remove(actor, orgId),
  }
  const yes = 'accepted'
  const no = 'forbidden'
  const matrix: [deed: string, owner: string, admin: string, member: string][] = [
    ['read the members', yes, yes, yes],
    ['switch', yes, yes, yes],
    ['rename', yes, yes, no],
    ['invite a member', yes, yes, no],
    ['invite an admin', yes, no, no],
    ['read the invitations', yes, yes, no],
    ['promote a member', yes, no, no],
    ['demote an admin', yes, no, no],
    ['demote the owner', 'owner_role', 'owner_role', no],
    ['remove a member', yes, yes, no],
    ['remove the owner', 'owner_role', 'owner_role', no],
    ['leave', 'owner_role', yes, yes],
    ['transfer', yes, no, no],
    ['delete', yes, no, no],
  ]

  test.each(matrix)('%s', async (deed, owner, admin, member) => {
    const outcomes: Record<string, string> = {}
    for (const role of ['stranger', 'member', 'admin', 'owner'] as const) {
      const orgId = await newOrganisation()
      outcomes[role] = await refusal(deeds[deed]!(people[role], orgId))
      await fixture.sql`update organisations set deleted_at = now() where id = ${orgId}`
    }
    expect(outcomes).toEqual({ stranger: 'not_found', member, admin, owner })
  })
})

describe('coming and going', () => {
  test('an invitation works once, for its address only, for seven days, until withdrawn', async () => {
    const { id } = await organisations.create(people.owner, 'Acme')
    const invite = async (email: string) => {
      const invitation = await organisations.invite(people.owner, id, { email, role: 'member' })
      fixture.advance(1)
      return { id: invitation.id, token: (await fixture.mailsTo(email)).at(-1)!.token }
    }
    const first = await invite(people.member.email)
    expect(await organisations.peekInvitation(first.token)).toMatchObject({
      organisation: 'Acme',
      email: people.member.email,
    })
    expect(await refusal(organisations.accept(people.stranger, first.token))).toBe('forbidden')
    expect(await refusal(organisations.accept(people.member, 'nonsense'))).toBe('invalid_link')

    const second = await invite(people.member.email)
    expect(await refusal(organisations.accept(people.member, first.token))).toBe('invalid_link')
    const races = await Promise.all([1, 2].map(() => refusal(organisations.accept(people.member, second.token))))
    expect(races.toSorted()).toEqual(['accepted', 'invalid_link'])
    expect(await refusal(invite(people.member.email))).toBe('already_member')

    const late = await invite(people.admin.email)
    fixture.advance(7 * DAY_MS)
    expect(await refusal(organisations.accept(people.admin, late.token))).toBe('invalid_link')

    const withdrawn = await invite(people.second.email)
    await organisations.revokeInvitation(people.owner, id, withdrawn.id)
    expect(await refusal(organisations.accept(people.second, withdrawn.token))).toBe('invalid_link')
  })

  test('a removed member loses sessions and tokens of the organisation at once, not the account', async () => {
    const { id } = await organisations.create(people.owner, 'Acme')
    const email = 'leaver@example.com'
    const account = await fixture.newAccount(email)
    await join(id, people.owner, account, 'member')
    const signedIn = await fixture.accounts.signIn({ email, password: PASSWORD }, VISIT)
    await organisations.switchTo(await fixture.actorOf(signedIn), id)
    const inside = await fixture.actorOf(signedIn)
    expect(inside).toMatchObject({ orgId: id, role: 'member' })
    const issued = await fixture.tokens.create(inside, { name: 'ci' })
    expect(await refusal(organisations.switchTo({ ...inside, via: { kind: 'token', tokenId: issued.id } }, id))).toBe(
      'forbidden',
    )

    await organisations.removeMember(people.owner, id, account.userId)
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
    expect(await fixture.actorOf(signedIn)).toMatchObject({ orgId: account.orgId, role: 'owner' })
  })

  test('a member leaves without the second factor that the organisation asks for, and removes no one else', async () => {
    const { organisations, apiRoute } = fixture
    const routes = organisationRoutes({ apiRoute, organisations })
    const owner = await fixture.newAccount()
    const { id } = await organisations.create(owner, 'Careful')
    const [member, other] = [await fixture.newAccount(), await fixture.newAccount()]
    for (const { userId } of [member, other])
      await fixture.sql`insert into memberships (org_id, user_id, role) values (${id}, ${userId}, 'admin')`
    const { token } = await fixture.tokens.create(member, { name: 'of the personal organisation' })
    await fixture.sql`update organisations set requires_second_factor = true where id = ${id}`
    const remove = async ({ userId }: Actor): Promise<number> => {
      const request = { headers: { authorization: `Bearer ${token}` }, params: { id, user_id: userId } }
      return (await callRoute(routes, 'DELETE', '/api/v1/organisations/:id/members/:user_id', request)).status
    }
    expect([await remove(other), await remove(member), await remove(member)]).toEqual([404, 204, 404])
    expect((await organisations.list(member)).map((each) => each.id)).toEqual([member.orgId])
  })

  test('ownership moves whole: one owner before, one after, and the drops are told', async () => {
    const id = await newOrganisation()
    await organisations.transfer(people.owner, id, people.member.userId)
    const roles = Object.fromEntries(
      (await organisations.listMembers(people.member, id)).map((member) => [member.email, member.role]),
    )
    expect(roles).toMatchObject({
      'owner@example.com': 'admin',
      'member@example.com': 'owner',
      'admin@example.com': 'admin',
    })
    expect(fixture.hookCalls).toEqual([
      ['onOwnerChanged', id],
      ['propagate', ''],
    ])
    expect(await refusal(organisations.transfer(people.owner, id, people.owner.userId))).toBe('forbidden')
  })

  test('no one joins, or becomes owner, before their address is verified', async () => {
    const { id } = await organisations.create(people.owner, 'Acme')
    const newcomer = await fixture.actorOf(
      await fixture.accounts.signUp({ email: 'fresh@example.com', password: PASSWORD }, VISIT),
    )
    expect(await refusal(join(id, people.owner, newcomer, 'member'))).toBe('email_not_verified')
    await fixture.sql`
      insert into memberships (org_id, user_id, role) values (${id}, ${newcomer.userId}, 'member')`
    expect(await refusal(organisations.transfer(people.owner, id, newcomer.userId))).toBe('owner_not_verified')
    expect(await refusal(organisations.create(newcomer, 'Mine'))).toBe('email_not_verified')
  })

  describe('an organisation has an owner who exists, also when the heir deletes the account', () => {
    async function heritage() {
      const { id } = await organisations.create(people.owner, 'Acme')
      const heir = await fixture.newAccount()
      await join(id, people.owner, heir, 'member')
      const lockMembershipOf = (userId: string) => (sql: Sql) =>
        sql`select from memberships where org_id = ${id} and user_id = ${userId} for update`
      return {
        heir,
        lockMembershipOf,
        transfer: () => refusal(organisations.transfer(people.owner, id, heir.userId)),
        leave: () => refusal(fixture.accounts.deleteAccount(heir, { password: PASSWORD })),
        owners: () => fixture.sql`select user_id from memberships where org_id = ${id} and role = 'owner'`,
      }
    }

    test('a moment later', async () => {
      const { heir, lockMembershipOf, transfer, leave, owners } = await heritage()
      const first = lockMembershipOf(people.owner.userId)
      const outcomes = await duringTransaction(fixture.sql, first, transfer, leave)
      expect(outcomes).toEqual(['accepted', 'organisation_has_members'])
      expect(await owners()).toMatchObject([{ user_id: heir.userId }])
    })

    test('a moment before', async () => {
      const { heir, lockMembershipOf, transfer, leave, owners } = await heritage()
      const outcomes = await duringTransaction(fixture.sql, lockMembershipOf(heir.userId), leave, transfer)
      expect(outcomes).toEqual(['accepted', 'not_found'])
      expect(await owners()).toMatchObject([{ user_id: people.owner.userId }])
    })
  })

  test('no one inherits more free organisations than they could found', async () => {
    const id = await newOrganisation()
    const heir = people.member
    for (const name of ['One', 'Two']) await organisations.create(heir, name)
    expect(await refusal(organisations.transfer(people.owner, id, heir.userId))).toBe('limit_reached')
    await fixture.sql`update organisations set plan = 'plus' where id = ${id}`
    expect(await refusal(organisations.transfer(people.owner, id, heir.userId))).toBe('accepted')
  })

  test('a personal organisation stays with its account', async () => {
    const { owner } = people
    await join(owner.orgId, owner, people.member, 'member')
    expect(await refusal(organisations.remove(owner, owner.orgId))).toBe('personal_organisation')
    expect(await refusal(organisations.transfer(owner, owner.orgId, people.member.userId))).toBe(
      'personal_organisation',
    )
    expect(await refusal(fixture.accounts.deleteAccount(owner, { password: PASSWORD }))).toBe(
      'organisation_has_members',
    )
    await organisations.removeMember(people.member, owner.orgId, people.member.userId)
  })

  test('deleting one ends its memberships and tells the drops', async () => {
    const id = await newOrganisation()
    await organisations.remove(people.owner, id)
    expect(fixture.hookCalls).toEqual([
      ['onOrganisationDeleted', id],
      ['propagate', ''],
    ])
    for (const person of Object.values(people))
      expect((await organisations.list(person)).map((own) => own.id)).not.toContain(id)
  })

  test('free organisations have an end, also when created at once', async () => {
    const outcomes = await Promise.all(
      [1, 2, 3, 4].map((number) => refusal(organisations.create(people.stranger, `Org ${number}`))),
    )
    expect(outcomes.toSorted()).toEqual(['accepted', 'accepted', 'limit_reached', 'limit_reached'])
  })
})

test('a connected app reaches the organisation that it was allowed for, and no other', async () => {
  const [allowed, other] = [await newOrganisation(), (await organisations.create(people.owner, 'Other')).id]
  const app: Actor = { ...people.owner, orgId: allowed, via: { kind: 'oauth', grantId: 'grt', scopes: ['cli'] } }
  expect((await organisations.list(app)).map(({ id }) => id)).toEqual([allowed])
  expect(await refusal(organisations.rename(app, allowed, 'Acme 2'))).toBe('accepted')
  const deeds = [
    organisations.rename(app, other, 'Mine'),
    organisations.remove(app, other),
    organisations.listMembers(app, other),
    organisations.removeMember(app, people.owner.orgId, app.userId),
    organisations.transfer(app, other, people.member.userId),
    organisations.invite(app, other, { email: 'friend@example.com', role: 'admin' }),
    organisations.listInvitations(app, other),
  ]
  expect(new Set(await Promise.all(deeds.map(refusal)))).toEqual(new Set(['not_found']))
  expect(await refusal(organisations.create(app, 'Another'))).toBe('forbidden')
  expect(await refusal(organisations.accept(app, 'a token'))).toBe('forbidden')

  const token: Actor = { ...app, via: { kind: 'token', tokenId: 'tok' } }
  expect(await refusal(organisations.rename(token, other, 'Mine'))).toBe('accepted')
})

describe('by API', () => {
  test('create, invite, list, read the audit log page by page', async () => {
    const routes = [...organisationRoutes(fixture), ...auditRoutes(fixture)]
    const issued = await fixture.tokens.create(people.owner, { name: 'api' })
    const call = (method: string, pattern: string, request: Parameters<typeof callRoute>[3] = {}) =>
      callRoute(routes, method, pattern, { ...request, headers: { authorization: `Bearer ${issued.token}` } })

    const created = await call('POST', '/api/v1/organisations', { body: { name: '  Äcme   GmbH ' } })
    expect(created).toMatchObject({
      status: 201,
      body: { name: 'Äcme GmbH', plan: 'free', role: 'owner', personal: false },
    })
    const params = { id: created.body.id }
    const invited = await call('POST', '/api/v1/organisations/:id/invitations', {
      params,
      body: { email: 'X@Example.com' },
    })
    expect(invited).toMatchObject({ status: 201, body: { email: 'x@example.com', role: 'member' } })
    expect((await fixture.mailsTo('x@example.com'))[0]).toMatchObject({ subject: 'Join Äcme GmbH on Dropway' })
    expect(
      (
        await call('POST', '/api/v1/organisations/:id/invitations', {
          params,
          body: { email: 'a@b.cd', role: 'owner' },
        })
      ).status,
    ).toBe(400)
    expect((await call('POST', '/api/v1/organisations', { body: { name: 'x', extra: 1 } })).status).toBe(400)
    expect((await call('GET', '/api/v1/organisations/:id/members', { params: { id: 'org_none' } })).status).toBe(404)
    expect((await call('GET', '/api/v1/organisations/:id/members', { params })).body).toMatchObject([
      { email: people.owner.email, role: 'owner' },
    ])

    for (let index = 0; index < 5; index++) {
      await recordAudit(fixture.sql, {
        at: new Date(fixture.clock.now()),
        orgId: people.owner.orgId,
        actor: { system: 'lifecycle' },
        action: 'site.removed',
        subject: `st_${index}`,
      })
    }
    const first = await call('GET', '/api/v1/audit-log', { path: '/?limit=3' })
    expect(first.body.entries.map((entry: { subject: string }) => entry.subject)).toEqual(['st_4', 'st_3', 'st_2'])
    const next = await call('GET', '/api/v1/audit-log', { path: `/?limit=200&before=${first.body.next}` })
    expect(next.body.entries.slice(0, 2).map((entry: { subject: string }) => entry.subject)).toEqual(['st_1', 'st_0'])
    expect(next.body.entries.at(-1)).toMatchObject({
      action: 'account.created',
      actor: people.owner.email,
      ip: VISIT.ip,
    })
    expect(next.body.next).toBeNull()
  })
})
