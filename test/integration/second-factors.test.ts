/** Codes of a generator, recovery codes, step-up and recovery, by a clock that the test moves. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeAt, codeStepAt } from '../../control/people/factors/totp.ts'
import { SESSION_COOKIE } from '../../control/people/access/sessions.ts'
import { organisationRoutes } from '../../control/people/organisations/routes.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { ApiError } from '../../shared/contracts/errors.ts'
import {
  callRoute,
  createAccountsFixture,
  PASSWORD,
  secretOf,
  VISIT,
  type AccountsFixture,
} from '../support/accounts.ts'
import { fromBase32 } from '../support/second-factor.ts'

const STEP_MS = 30_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

let fixture: AccountsFixture
beforeAll(async () => {
  fixture = await createAccountsFixture()
})
afterAll(() => fixture.close())

interface Enrolled {
  readonly actor: Actor
  readonly recovery: readonly string[]
  /** The code of now, or of some steps away. */
  code(steps?: number): string
}

async function enrol(): Promise<Enrolled> {
  const actor = await fixture.newAccount()
  const { secret, uri } = await fixture.factors.begin(actor)
  expect(uri).toContain(`secret=${secret}`)
  const code = (steps = 0): string => codeAt(fromBase32(secret), codeStepAt(fixture.clock.now()) + steps)
  const recovery = await fixture.factors.confirm(actor, code())
  fixture.advance(STEP_MS)
  return { actor, recovery, code }
}

/** A code that is right at none of the steps nearby. */
const wrongCode = ({ code }: Enrolled): string =>
  ['000000', '111111', '222222', '333333', '444444', '555555'].find(
    (wrong) => ![-2, -1, 0, 1, 2].map((steps) => code(steps)).includes(wrong),
  )!

const signIn = ({ actor }: Enrolled, code?: string) =>
  fixture.accounts.signIn({ email: actor.email, password: PASSWORD, code }, VISIT)

const codeOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'done',
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  )

describe('signing in', () => {
  test('the password alone is not enough; with a code it is, in one step or in two', async () => {
    const person = await enrol()
    const refusal = (await signIn(person).catch((error: unknown) => error)) as ApiError
    expect(refusal.code).toBe('second_factor_required')
    const pending = String(refusal.fields['pending'])
    expect(await codeOf(fixture.accounts.continueSignIn({ pending, code: person.code() }, VISIT))).toBe('done')
    fixture.advance(STEP_MS)
    expect(await codeOf(signIn(person, person.code()))).toBe('done')
    expect(await codeOf(fixture.accounts.continueSignIn({ pending: `${pending}x`, code: person.code(1) }, VISIT))).toBe(
      'wrong_credentials',
    )
    fixture.advance(10 * MINUTE_MS)
    expect(await codeOf(fixture.accounts.continueSignIn({ pending, code: person.code() }, VISIT))).toBe(
      'wrong_credentials',
    )
  })

  test.each([
    ['two steps late', -2, 'wrong_code'],
    ['one step late', -1, 'done'],
    ['now', 0, 'done'],
    ['one step early', 1, 'done'],
    ['two steps early', 2, 'wrong_code'],
  ])('a code that is %s', async (_, steps, expected) => {
    const person = await enrol()
    // Far from the code of the enrolment, before which none is taken.
    fixture.advance(10 * STEP_MS)
    expect(await codeOf(signIn(person, person.code(steps)))).toBe(expected)
  })

  test('each code is good once, and none before it', async () => {
    const person = await enrol()
    fixture.advance(5 * STEP_MS)
    const code = person.code()
    expect(await codeOf(signIn(person, code))).toBe('done')
    expect(await codeOf(signIn(person, code))).toBe('wrong_code')
    expect(await codeOf(signIn(person, person.code(-1)))).toBe('wrong_code')
  })

  test('two at the same time with one code: one gets in', async () => {
    const person = await enrol()
    fixture.advance(5 * STEP_MS)
    const code = person.code()
    const outcomes = await Promise.all([codeOf(signIn(person, code)), codeOf(signIn(person, code))])
    expect(outcomes.toSorted()).toEqual(['done', 'wrong_code'])
  })

  test('ten wrong codes from ten networks close this door for a quarter of an hour; sessions stay', async () => {
    const person = await enrol()
    for (let guess = 0; guess < 10; guess++) {
      const circumstances = { ...VISIT, ip: `198.51.100.${guess}` }
      const input = { email: person.actor.email, password: PASSWORD, code: wrongCode(person) }
      expect(await codeOf(fixture.accounts.signIn(input, circumstances))).toBe('wrong_code')
    }
    fixture.advance(STEP_MS)
    expect(await codeOf(signIn(person, person.code()))).toBe('rate_limited')
    expect((await fixture.accounts.listSessions(person.actor)).length).toBeGreaterThan(0)
    fixture.advance(15 * MINUTE_MS)
    expect(await codeOf(signIn(person, person.code()))).toBe('done')
  })

  test('recovery codes: at least eight, each once, however they are typed', async () => {
    const person = await enrol()
    const [first, second] = person.recovery
    expect(person.recovery.length).toBeGreaterThanOrEqual(8)
    expect(await codeOf(signIn(person, first))).toBe('done')
    expect(await codeOf(signIn(person, first))).toBe('wrong_code')
    expect(await codeOf(signIn(person, second!.toUpperCase().replace('-', ' ')))).toBe('done')
    expect((await fixture.factors.stateOf(person.actor.userId)).recoveryCodesLeft).toBe(person.recovery.length - 2)
  })

  test('a reset by mail asks for the code, and a wrong one leaves the link as it is', async () => {
    const person = await enrol()
    await fixture.accounts.requestReset(person.actor.email, VISIT)
    const token = async () =>
      (await fixture.mailsTo(person.actor.email)).find((mail) => mail.template === 'reset')?.token
    await expect.poll(token).toBeDefined()
    const link = (await token())!
    const reset = (code?: string) =>
      codeOf(fixture.accounts.resetPassword({ token: link, password: 'another good one', code }, VISIT))
    expect(await fixture.accounts.asksForCode('reset', link)).toBe(true)
    expect(await reset()).toBe('wrong_code')
    expect(await reset(wrongCode(person))).toBe('wrong_code')
    expect(await reset(person.code())).toBe('done')
  })
})

describe('step-up', () => {
  const sessionOf = async (person: Enrolled): Promise<Actor> => fixture.actorOf(await signIn(person, person.code()))

  test('a session from before has to prove itself; a proof is good for ten minutes', async () => {
    const person = await enrol()
    const before = await fixture.refreshed(person.actor)
    const manage = (actor: Actor) => codeOf(fixture.tokens.create(actor, { name: 'ci', scopes: ['manage'] }))
    expect(await manage(before)).toBe('step_up_required')
    expect(await codeOf(fixture.tokens.create(before, { name: 'ci', scopes: ['publish'] }))).toBe('done')
    expect(await codeOf(fixture.tokens.create(before, { name: 'everything' }))).toBe('step_up_required')
    expect(await codeOf(fixture.accounts.deleteAccount(before, { password: PASSWORD }))).toBe('step_up_required')
    await fixture.factors.prove(before, person.code())
    expect(await manage(await fixture.refreshed(before))).toBe('done')
    fixture.advance(10 * MINUTE_MS)
    expect(await manage(await fixture.refreshed(before))).toBe('step_up_required')
    const fresh = await sessionOf(person)
    expect(await manage(fresh)).toBe('done')
  })

  test('transfers, the removal of members and of a whole organisation ask for it', async () => {
    const person = await enrol()
    const session = await fixture.refreshed(person.actor)
    const { id } = await fixture.organisations.create(session, 'Team')
    expect(await codeOf(fixture.organisations.remove(session, id))).toBe('step_up_required')
    expect(await codeOf(fixture.organisations.transfer(session, id, 'usr_other'))).toBe('step_up_required')
    expect(await codeOf(fixture.organisations.removeMember(session, id, 'usr_other'))).not.toBe('done')
  })

  test('making someone an admin asks for it, by invitation or promotion; a member and a demotion do not', async () => {
    const person = await enrol()
    const session = await fixture.refreshed(person.actor)
    const { organisations } = fixture
    const { id } = await organisations.create(session, 'Team')
    const member = await fixture.newAccount()
    await fixture.sql`insert into memberships (org_id, user_id, role) values (${id}, ${member.userId}, 'member')`
    const invite = (actor: Actor, role: 'admin' | 'member') =>
      codeOf(organisations.invite(actor, id, { email: `${role}@example.org`, role }))
    const change = (actor: Actor, role: 'admin' | 'member') =>
      codeOf(organisations.changeRole(actor, id, member.userId, role))
    expect(await invite(session, 'admin')).toBe('step_up_required')
    expect(await change(session, 'admin')).toBe('step_up_required')
    expect(await fixture.mailsTo('admin@example.org')).toEqual([])
    expect(await invite(session, 'member')).toBe('done')
    await fixture.factors.prove(session, person.code())
    const proved = await fixture.refreshed(session)
    expect([await invite(proved, 'admin'), await change(proved, 'admin')]).toEqual(['done', 'done'])
    expect(await change(session, 'member')).toBe('done')
  })

  test('an account without a second factor is asked for nothing', async () => {
    const actor = await fixture.newAccount()
    expect(await codeOf(fixture.tokens.create(actor, { name: 'ci', scopes: ['manage'] }))).toBe('done')
  })
})

describe('everything is lost', () => {
  const pendingOf = async (person: Enrolled): Promise<string> =>
    String(((await signIn(person).catch((error: unknown) => error)) as ApiError).fields['pending'])
  const recoveryMails = async (person: Enrolled) =>
    (await fixture.mailsTo(person.actor.email)).filter(({ template }) => template === 'factor_recovery')

  /** What the log says of recoveries that were stopped; the mailbox has heard as often. */
  const stops = async ({ actor }: Enrolled): Promise<string[]> => {
    const entries = await fixture.sql<{ by: string }[]>`
      select detail->>'by' as by from audit_log where subject = ${actor.userId} and action = 'account.recovery_stopped'`
    const mails = await fixture.mailsTo(actor.email)
    expect(mails.filter(({ template }) => template === 'factor_recovery_stopped')).toHaveLength(entries.length)
    return entries.map(({ by }) => by)
  }

  test('a day later the password suffices, and the mailbox has heard of it', async () => {
    const person = await enrol()
    await fixture.accounts.requestRecovery(await pendingOf(person))
    expect(await recoveryMails(person)).toHaveLength(1)
    fixture.advance(24 * HOUR_MS - 1)
    expect(await codeOf(signIn(person))).toBe('second_factor_required')
    fixture.advance(1)
    expect(await codeOf(signIn(person))).toBe('done')
    expect((await fixture.factors.stateOf(person.actor.userId)).hasGenerator).toBe(false)
  })

  test('the mail stops it, once; asking again does not begin the day anew', async () => {
    const person = await enrol()
    const { dueAt } = await fixture.accounts.requestRecovery(await pendingOf(person))
    fixture.advance(HOUR_MS)
    expect((await fixture.accounts.requestRecovery(await pendingOf(person))).dueAt).toEqual(dueAt)
    const [mail] = await recoveryMails(person)
    await fixture.factors.cancelRecovery(mail!.token)
    expect(await codeOf(fixture.factors.cancelRecovery(mail!.token))).toBe('invalid_link')
    expect(await stops(person)).toEqual(['mail'])
    fixture.advance(48 * HOUR_MS)
    expect(await codeOf(signIn(person))).toBe('second_factor_required')
  })

  test('so does a sign-in with a code', async () => {
    const person = await enrol()
    await fixture.accounts.requestRecovery(await pendingOf(person))
    expect(await codeOf(signIn(person, person.code()))).toBe('done')
    expect(await stops(person)).toEqual(['code'])
    fixture.advance(48 * HOUR_MS)
    expect(await codeOf(signIn(person))).toBe('second_factor_required')
  })

  test('a session stops it once it has proved itself, and not before', async () => {
    const person = await enrol()
    const stop = async () => codeOf(fixture.factors.stopRecovery(await fixture.refreshed(person.actor)))
    await fixture.factors.prove(person.actor, person.code())
    await fixture.accounts.requestRecovery(await pendingOf(person))
    fixture.advance(10 * MINUTE_MS)
    expect(await stop()).toBe('step_up_required')
    expect(await stops(person)).toEqual([])
    // As a passkey leaves the session: a code would stop it by itself.
    await fixture.sql`update sessions set proved_at = ${new Date(fixture.clock.now())} where user_id = ${person.actor.userId}`
    expect([await stop(), await stop()]).toEqual(['done', 'done'])
    expect(await stops(person)).toEqual(['session'])
    const [entry] = await fixture.sql<{ ip: string | null }[]>`
      select ip from audit_log where subject = ${person.actor.userId} and action = 'account.recovery_stopped'`
    expect(entry!.ip).toBe(person.actor.ip)
    fixture.advance(48 * HOUR_MS)
    expect(await codeOf(signIn(person))).toBe('second_factor_required')
  })
})

test('an organisation that asks for it is closed to members without, and open again once they have one', async () => {
  const owner = await enrol()
  const acting = await fixture.refreshed(owner.actor)
  await fixture.factors.prove(acting, owner.code())
  const proved = await fixture.refreshed(acting)
  const { id } = await fixture.organisations.create(proved, 'Careful')
  const member = await fixture.newAccount()
  await fixture.sql`insert into memberships (org_id, user_id, role) values (${id}, ${member.userId}, 'member')`
  await fixture.organisations.switchTo(member, id)
  expect((await fixture.refreshed(member)).orgId).toBe(id)
  const issued = await fixture.tokens.create(await fixture.refreshed(member), { name: 'ci' })
  expect(await codeOf(fixture.organisations.requireSecondFactor(member, id, true))).toBe('forbidden')
  await fixture.organisations.requireSecondFactor(proved, id, true)
  expect((await fixture.refreshed(member)).orgId).toBe(member.orgId)
  expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
  expect(await codeOf(fixture.organisations.switchTo(member, id))).toBe('forbidden')
  expect((await fixture.refreshed(proved)).userId).toBe(proved.userId)
  await fixture.organisations.requireSecondFactor(proved, id, false)
  expect(await fixture.access.tokenActor(issued.token, '::1')).toBeDefined()
})

describe('every route that names an organisation which asks for a second factor', () => {
  /** What each takes besides the organisation; the routes are counted against it. */
  const bodies: Record<string, object | undefined> = {
    'PATCH /api/v1/organisations/:id': { name: 'Renamed' },
    'DELETE /api/v1/organisations/:id': undefined,
    'POST /api/v1/organisations/:id/switch': undefined,
    'POST /api/v1/organisations/:id/transfer': { user_id: 'usr_other' },
    'GET /api/v1/organisations/:id/members': undefined,
    'PATCH /api/v1/organisations/:id/members/:user_id': { role: 'admin' },
    'DELETE /api/v1/organisations/:id/members/:user_id': undefined,
    'GET /api/v1/organisations/:id/invitations': undefined,
    'POST /api/v1/organisations/:id/invitations': { email: 'guest@example.com' },
    'DELETE /api/v1/organisations/:id/invitations/:invitation_id': undefined,
  }
  const SWITCH = 'POST /api/v1/organisations/:id/switch'

  test('is closed to its owner without one, by session and by token, and switching says why', async () => {
    const { organisations, apiRoute } = fixture
    const routes = organisationRoutes({ apiRoute, organisations })
    const named = routes.map(({ method, path }) => `${method} ${path}`).filter((name) => name.includes('/:id'))
    expect(named.toSorted()).toEqual(Object.keys(bodies).toSorted())

    const owner = await fixture.newAccount()
    const { id } = await organisations.create(owner, 'Careful')
    const { token } = await fixture.tokens.create(owner, { name: 'of the personal organisation' })
    await fixture.sql`update organisations set requires_second_factor = true where id = ${id}`
    const signedIn = await fixture.accounts.signIn({ email: owner.email, password: PASSWORD }, VISIT)
    const credentials = {
      session: { cookies: { [SESSION_COOKIE]: secretOf(signedIn) }, headers: { 'sec-fetch-site': 'same-origin' } },
      token: { headers: { authorization: `Bearer ${token}` } },
    }
    const params = { id, user_id: 'usr_other', invitation_id: 'inv_other' }
    for (const [kind, credential] of Object.entries(credentials))
      for (const name of named) {
        const [method = '', pattern = ''] = name.split(' ')
        const { status } = await callRoute(routes, method, pattern, { ...credential, params, body: bodies[name] })
        expect([kind, name, status]).toEqual([kind, name, name === SWITCH ? 403 : 404])
      }

    // The same token finds all of it once its person has a factor.
    const { secret } = await fixture.factors.begin(owner)
    await fixture.factors.confirm(owner, codeAt(fromBase32(secret), codeStepAt(fixture.clock.now())))
    const members = 'GET /api/v1/organisations/:id/members'.split(' ')
    expect((await callRoute(routes, members[0]!, members[1]!, { ...credentials.token, params })).status).toBe(200)
  })

  test('an invitation to it is accepted without one', async () => {
    const { organisations } = fixture
    const [owner, guest] = [await fixture.newAccount(), await fixture.newAccount()]
    const { id } = await organisations.create(owner, 'Careful')
    await organisations.invite(owner, id, { email: guest.email, role: 'member' })
    await fixture.sql`update organisations set requires_second_factor = true where id = ${id}`
    const { token } = (await fixture.mailsTo(guest.email)).at(-1)!
    expect(await organisations.accept(guest, token)).toMatchObject({ id, role: 'member' })
    expect(await codeOf(organisations.listMembers(guest, id))).toBe('not_found')
  })
})

test('a browser that the account has not seen is told of, the same one again is not', async () => {
  const actor = await fixture.newAccount()
  const from = (userAgent: string) =>
    fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, { ...VISIT, userAgent })
  const told = async () =>
    (await fixture.mailsTo(actor.email)).filter(({ template }) => template === 'new_device').length
  const before = await told()
  await from('Mozilla/5.0 (X11; Linux) Firefox/140.0')
  const first = await told()
  await from('Mozilla/5.0 (X11; Linux) Firefox/141.0')
  expect(await told()).toBe(first)
  await from('Mozilla/5.0 (Windows NT 10.0) Chrome/150.0 Safari/537.36')
  expect(await told()).toBe(first + 1)
  expect(first - before).toBeLessThanOrEqual(1)
})

test('the operator ends every way in; the mailbox is the way back', async () => {
  const actor = await fixture.newAccount()
  const issued = await fixture.tokens.create(actor, { name: 'ci' })
  expect(await fixture.accounts.endAccess(actor.email)).toMatchObject({ userId: actor.userId, tokens: 1 })
  expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
  expect(await fixture.accounts.listSessions(actor)).toEqual([])
  expect(await codeOf(fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT))).toBe(
    'wrong_credentials',
  )
  expect((await fixture.mailsTo(actor.email)).map(({ template }) => template)).toContain('reset')
  expect(await fixture.accounts.endAccess('nobody@example.com')).toBeUndefined()
})

describe('a passkey is a second factor too', () => {
  /** As registration leaves it; the browser tests make real ones. */
  const addPasskey = ({ userId }: Actor) => fixture.sql`
    insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
    values (${`key-${userId}`}, ${userId}, 'Key', ${Buffer.from('key')}, 0, '{}', now())`
  /** As showing it leaves the session. */
  const show = async ({ via }: Actor): Promise<void> => {
    if (via.kind !== 'session') throw new Error('not a session')
    await fixture.sql`update sessions set proved_at = ${new Date(fixture.clock.now())} where id = ${via.sessionId}`
  }
  const needsProof = async (actor: Actor): Promise<boolean> => {
    const { via } = await fixture.refreshed(actor)
    return via.kind === 'session' && via.needsProof
  }

  test('step-up asks for it, unless the person has just signed in', async () => {
    const actor = await fixture.newAccount()
    await addPasskey(actor)
    expect(await needsProof(actor)).toBe(false)
    fixture.advance(10 * MINUTE_MS)
    expect(await needsProof(actor)).toBe(true)
    expect(await codeOf(fixture.factors.prove(await fixture.refreshed(actor), '000000'))).toBe('wrong_code')
    await show(actor)
    expect(await needsProof(actor)).toBe(false)
    fixture.advance(10 * MINUTE_MS)
    expect(await needsProof(actor)).toBe(true)
  })

  test('a session that has to show it enrols no generator of its own, and sees none that was begun', async () => {
    const actor = await fixture.newAccount()
    // Begun while there was no passkey, by whoever holds this session.
    const { secret } = await fixture.factors.begin(actor)
    const code = () => codeAt(fromBase32(secret), codeStepAt(fixture.clock.now()))
    await addPasskey(actor)
    fixture.advance(10 * MINUTE_MS)
    const leftOpen = await fixture.refreshed(actor)
    expect(await fixture.factors.begun(leftOpen)).toBeUndefined()
    expect(await codeOf(fixture.factors.confirm(leftOpen, code()))).toBe('step_up_required')
    expect(await codeOf(fixture.factors.begin(leftOpen))).toBe('step_up_required')
    expect(await codeOf(fixture.factors.prove(leftOpen, code()))).toBe('wrong_code')
    await show(leftOpen)
    const proved = await fixture.refreshed(leftOpen)
    expect(await fixture.factors.begun(proved)).toMatchObject({ secret })
    expect(await codeOf(fixture.factors.confirm(proved, code()))).toBe('done')
  })

  test('the password alone enrols no generator where an organisation asks for the passkey', async () => {
    const member = await fixture.newAccount()
    const { id } = await fixture.organisations.create(member, 'Careful')
    await addPasskey(member)
    await fixture.sql`update organisations set requires_second_factor = true where id = ${id}`
    const withPassword = await fixture.actorOf(
      await fixture.accounts.signIn({ email: member.email, password: PASSWORD }, VISIT),
    )
    expect(await codeOf(fixture.factors.begin(withPassword))).toBe('step_up_required')
  })

  test('an organisation that asks for one opens to sessions that have shown it, and to tokens', async () => {
    const owner = await fixture.newAccount()
    const { id } = await fixture.organisations.create(owner, 'Careful')
    const refusal = () => codeOf(fixture.organisations.requireSecondFactor(owner, id, true))
    expect(await refusal()).toBe('forbidden')
    await addPasskey(owner)
    // The password alone opened this session.
    expect(await refusal()).toBe('step_up_required')
    await show(owner)
    expect(await refusal()).toBe('done')

    const member = await fixture.newAccount()
    await fixture.sql`insert into memberships (org_id, user_id, role) values (${id}, ${member.userId}, 'member')`
    const enter = () => codeOf(fixture.organisations.switchTo(member, id))
    expect(await enter()).toBe('forbidden')
    await addPasskey(member)
    expect(await needsProof(member)).toBe(true)
    expect(await enter()).toBe('step_up_required')
    await show(member)
    expect(await enter()).toBe('done')
    const acting = await fixture.refreshed(member)
    expect(acting.orgId).toBe(id)
    const issued = await fixture.tokens.create(acting, { name: 'ci' })
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeDefined()

    await fixture.passkeys.remove(acting, `key-${member.userId}`)
    expect((await fixture.refreshed(member)).orgId).toBe(member.orgId)
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
  })

  test('lost ones go after a day of mails, at the next sign-in with the password', async () => {
    const actor = await fixture.newAccount()
    await addPasskey(actor)
    await fixture.factors.requestRecovery(actor, 'session')
    const again = () => fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT)
    fixture.advance(23 * HOUR_MS)
    await again()
    expect(await fixture.passkeys.list(actor.userId)).toHaveLength(1)
    fixture.advance(HOUR_MS)
    await again()
    expect(await fixture.passkeys.list(actor.userId)).toEqual([])
    expect((await fixture.mailsTo(actor.email)).map(({ template }) => template)).toContain('second_factor_changed')
  })
})
