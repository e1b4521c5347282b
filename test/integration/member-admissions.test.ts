/** What a member has opened at the edges ends with the password, the membership or the factor that it was opened by. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endMemberAdmissions, memberSubject, noteAdmission } from '../../control/drops/viewers/lists.ts'
import { findVisited } from '../../control/drops/visiting/queries.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { codeAt, codeStepAt } from '../../control/people/factors/totp.ts'
import { admits, openAdmission, type Admission } from '../../shared/contracts/admission.ts'
import type { VisitAnswer } from '../../shared/contracts/visit-desk.ts'
import { DAY_MS } from '../../shared/running/clock.ts'
import { PASSWORD, VISIT } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { duringTransaction } from '../support/races.ts'
import { fromBase32 } from '../support/second-factor.ts'

let world: ComposedServices
const NOW = Date.UTC(2026, 2, 1, 12)
let nextSlug = 0

beforeAll(async () => {
  world = await composeServices({}, { now: () => NOW })
})
afterAll(() => world?.close())

interface Shared {
  readonly owner: Actor
  readonly member: Actor
  readonly id: string
  readonly slug: string
}

/** A drop that only its viewers and the members of its organisation see. */
async function share(): Promise<Shared> {
  const owner = await world.newTeam(await world.newActor(), 'business')
  const { site } = await world.publishPage(owner, 'Plan', `members-${nextSlug++}`)
  await world.services.sites.patch(owner, site.id, { access_mode: 'viewers' })
  const person = await world.newActor()
  await world.sql`
    insert into memberships (org_id, user_id, role, created_at)
    values (${owner.orgId}, ${person.userId}, 'member', ${new Date(NOW)})`
  return { owner, member: { ...person, orgId: owner.orgId, role: 'member' }, id: site.id, slug: site.slug }
}

/** The secret of the link by which a member comes in. */
const linkOf = async (drop: Shared, actor: Actor): Promise<string> =>
  (await world.services.visitDesk.memberLink(actor, drop)).split('/').at(-1)!

const answerTo = ({ id, slug }: Shared, kind: 'enter' | 'guest', token: string): Promise<VisitAnswer> =>
  world.services.visitDesk.answer({ kind, site_id: id, host: `${slug}.localhost`, token }, '203.0.113.8')

function admitted(answer: VisitAnswer): Admission {
  if (answer.kind !== 'admitted') throw new Error(`Not let in: ${JSON.stringify(answer)}`)
  return openAdmission(world.services.secrets, answer.admission)!
}

const enter = async (drop: Shared, actor: Actor): Promise<Admission> =>
  admitted(await answerTo(drop, 'enter', await linkOf(drop, actor)))

const isIn = async ({ slug }: Shared, admission: Admission): Promise<boolean> =>
  admits(await world.routeOf(slug), admission, NOW)

const resetToken = async ({ email }: Actor): Promise<string | undefined> =>
  /reset\?token=([\w-]+)/.exec((await world.mailsTo(email)).map(({ text }) => text).join('\n'))?.[1]

const NEW_PASSWORDS: Readonly<Record<string, (actor: Actor) => Promise<unknown>>> = {
  'the operator ends every way in': ({ email }) => world.services.accounts.endAccess(email),
  'a new one is chosen by mail': async (actor) => {
    const { accounts } = world.services
    await accounts.requestReset(actor.email, VISIT)
    await expect.poll(() => resetToken(actor)).toBeDefined()
    await accounts.resetPassword({ token: (await resetToken(actor))!, password: 'another good one' }, VISIT)
  },
  'a new one is chosen while signed in': (actor) =>
    world.services.accounts.changePassword(
      actor,
      { currentPassword: PASSWORD, newPassword: 'another good one', endTokensAndApps: false },
      VISIT,
    ),
}

describe('a password', () => {
  test.each(Object.entries(NEW_PASSWORDS))('%s: what was opened by the former one ends', async (_, replace) => {
    const drop = await share()
    const { member, owner } = drop
    const before = await enter(drop, member)
    const unused = await linkOf(drop, member)
    const { url } = await world.services.viewerSharing.addLink(owner, drop.id, {})
    const guest = admitted(await answerTo(drop, 'guest', url!.split('/').at(-1)!))
    const other = await enter(drop, owner)
    await replace(member)
    expect(await isIn(drop, before)).toBe(false)
    expect(await answerTo(drop, 'enter', unused)).toMatchObject({ kind: 'refused' })
    // The person comes in again at once, and others never notice.
    expect(await isIn(drop, await enter(drop, member))).toBe(true)
    expect([await isIn(drop, guest), await isIn(drop, other)]).toEqual([true, true])
  })
})

describe('a membership that ends', () => {
  const until = new Date(NOW + DAY_MS)

  test('takes an admission with it that is being given at this moment', async () => {
    const drop = await share()
    const { owner, member, id } = drop
    const subject = (await memberSubject(world.sql, id, member.userId))!
    await duringTransaction(
      world.services.sql,
      async (held) => {
        await findVisited(held, id, 'locked')
        expect(await noteAdmission(held, id, subject, until)).toBe(true)
      },
      () => world.services.organisations.removeMember(owner, owner.orgId, member.userId),
    )
    expect((await world.routeOf(drop.slug)).viewers?.ended).toEqual([[subject, until.getTime()]])
  })

  test('is waited for by those who are about to come in', async () => {
    const drop = await share()
    const { owner, member } = drop
    const token = await linkOf(drop, member)
    const [answer] = await duringTransaction(
      world.services.sql,
      async (held) => {
        const { userId } = member
        await endMemberAdmissions(held, { userId, orgId: owner.orgId, now: new Date(NOW) })
        await held`delete from memberships where user_id = ${userId} and org_id = ${owner.orgId}`
      },
      () => answerTo(drop, 'enter', token),
    )
    expect(answer).toMatchObject({ kind: 'refused' })
  })
})

describe('an organisation that asks for a second factor', () => {
  const addPasskey = ({ userId }: Actor) => world.sql`
    insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
    values (${`key-${userId}`}, ${userId}, 'Key', ${Buffer.from('key')}, 0, '{}', now())`
  /** The same person at the dashboard, who has just proved that it is them. */
  const atDashboard = (actor: Actor): Actor => ({
    ...actor,
    via: { kind: 'session', sessionId: 'ses_none', needsProof: false },
  })

  async function enrol(actor: Actor): Promise<void> {
    const { secret } = await world.services.factors.begin(atDashboard(actor))
    await world.services.factors.confirm(atDashboard(actor), codeAt(fromBase32(secret), codeStepAt(NOW)))
  }

  /** Two members who are in: the owner has a factor, and the other has none. */
  async function shareWithOwner(): Promise<Shared & { of: Record<'owner' | 'member', Admission>; unused: string }> {
    const drop = await share()
    await addPasskey(drop.owner)
    const of = { owner: await enter(drop, drop.owner), member: await enter(drop, drop.member) }
    return { ...drop, of, unused: await linkOf(drop, drop.member) }
  }

  const ask = ({ owner }: Shared, isRequired: boolean) =>
    world.services.organisations.requireSecondFactor(owner, owner.orgId, isRequired)

  test('closes its drops to members without one, and opens them with it, or when it asks no more', async () => {
    const drop = await shareWithOwner()
    const { of, member } = drop
    await ask(drop, true)
    expect([await isIn(drop, of.owner), await isIn(drop, of.member)]).toEqual([true, false])
    expect(await answerTo(drop, 'enter', drop.unused)).toMatchObject({ kind: 'refused' })
    await enrol(member)
    expect(await isIn(drop, of.member)).toBe(true)
    await world.services.factors.remove(atDashboard(member))
    expect(await isIn(drop, of.member)).toBe(false)
    await ask(drop, false)
    expect([await isIn(drop, of.owner), await isIn(drop, of.member)]).toEqual([true, true])
  })

  test('closes them with the last factor that is removed, and not before', async () => {
    const drop = await shareWithOwner()
    const { of, member } = drop
    await ask(drop, true)
    await enrol(member)
    await addPasskey(member)
    await world.services.factors.remove(atDashboard(member))
    expect(await isIn(drop, of.member)).toBe(true)
    await world.services.passkeys.remove(atDashboard(member), `key-${member.userId}`)
    expect(await isIn(drop, of.member)).toBe(false)
  })

  test('closes them when a lost factor is given up', async () => {
    const drop = await shareWithOwner()
    const { of, member } = drop
    await ask(drop, true)
    await enrol(member)
    await world.services.factors.requestRecovery(member, 'password')
    await world.sql`update factor_recoveries set due_at = ${new Date(NOW)} where user_id = ${member.userId}`
    expect(await isIn(drop, of.member)).toBe(true)
    await world.services.accounts.signIn({ email: member.email, password: PASSWORD }, VISIT)
    expect(await isIn(drop, of.member)).toBe(false)
  })

  test('sees that one is removed at the moment in which it begins to ask', async () => {
    const drop = await shareWithOwner()
    const { of, member, owner } = drop
    await enrol(member)
    await duringTransaction(
      world.services.sql,
      (held) => held`update organisations set requires_second_factor = true where id = ${owner.orgId}`,
      () => world.services.factors.remove(atDashboard(member)),
    )
    expect(await isIn(drop, of.member)).toBe(false)
  })

  test('leaves those out who were removed at the provider, when it asks no more', async () => {
    const drop = await shareWithOwner()
    const { of, member } = drop
    await ask(drop, true)
    await world.sql`
      insert into provider_identities (id, issuer, subject, user_id, created_at, checked_at, lapsed_at)
      values (${`pid-${member.userId}`}, 'https://id.example.com', ${member.userId}, ${member.userId}, now(), now(), now())`
    await ask(drop, false)
    expect(await isIn(drop, of.member)).toBe(false)
  })
})
