import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAccess } from '../../control/people/access/access.ts'
import { reachOf } from '../../control/ground/actor.ts'
import { tokenRoutes } from '../../control/people/access/routes.ts'
import { accountRoutes } from '../../control/people/accounts/routes.ts'
import { SESSION_COOKIE, SESSION_IDLE_MS, SESSION_LIFETIME_MS } from '../../control/people/access/sessions.ts'
import { createApiRoutes } from '../../control/ground/http/api.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import type { ApiError } from '../../shared/contracts/errors.ts'
import { ACCOUNT_ALLOWANCES } from '../../control/people/accounts/rules.ts'
import { createThrottle } from '../../control/ground/http/limits/throttle.ts'
import { solveEasily } from '../support/proof-of-work.ts'
import {
  BASE_URL,
  callRoute,
  createAccountsFixture,
  fakeRequest,
  PASSWORD,
  refusal,
  secretOf,
  VISIT,
} from '../support/accounts.ts'

const expiring = async () => []

let fixture: Awaited<ReturnType<typeof createAccountsFixture>>
let routes: ReturnType<typeof accountRoutes>

beforeAll(async () => {
  fixture = await createAccountsFixture()
  routes = [...accountRoutes({ ...fixture, expiring }), ...tokenRoutes(fixture)]
})
afterAll(() => fixture.close())
beforeEach(async () => {
  fixture.hookCalls.length = 0
  await fixture.sql`delete from throttles`
})

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const withSession = (secret: string, headers: Record<string, string> = { origin: BASE_URL }) => ({
  headers,
  cookies: { [SESSION_COOKIE]: secret },
})
const isLive = async (secret: string) =>
  (await fixture.access.sessionActor(fakeRequest(withSession(secret)))) !== undefined

describe('from sign-up to a revoked token', () => {
  test('the whole way', async () => {
    const email = 'Whole.Way@Example.com'
    const signedIn = await fixture.accounts.signUp(
      { email, password: PASSWORD },
      { ...VISIT, anonymousId: 'browser-1' },
    )
    expect(signedIn).toMatchObject({ email: 'whole.way@example.com', emailVerified: false, claimed: 1 })
    expect(signedIn.setCookie).toMatch(
      /^__Host-dropway_session=[\w-]{40,}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=\d+$/,
    )
    const secret = secretOf(signedIn)

    const unverified = await callRoute(routes, 'GET', '/api/v1/me', withSession(secret))
    expect(unverified).toMatchObject({ status: 403, body: { error: 'email_not_verified' } })
    const actor = await fixture.actorOf(signedIn)
    expect(await refusal(fixture.tokens.create(actor, { name: 'too early' }))).toBe('email_not_verified')

    const [mail] = await fixture.mailsTo('whole.way@example.com')
    expect(mail).toMatchObject({ template: 'verify', subject: 'Verify your e-mail address' })
    await fixture.accounts.verifyEmail(mail!.token)
    expect(fixture.hookCalls).toContainEqual(['onVerified', signedIn.userId])
    expect(fixture.hookCalls.at(-1)).toEqual(['propagate', ''])
    // A second click, or a scanner that was there first, does no harm.
    expect(await fixture.accounts.verifyEmail(mail!.token)).toEqual({ email: 'whole.way@example.com' })

    const created = await callRoute(routes, 'POST', '/api/v1/tokens', {
      ...withSession(secret),
      body: { name: 'laptop' },
    })
    expect(created.status).toBe(201)
    expect(created.body.token).toMatch(/^dw_[\w-]{40}$/)
    const me = await callRoute(routes, 'GET', '/api/v1/me', bearer(created.body.token))
    expect(me).toMatchObject({
      status: 200,
      body: {
        user: { email: 'whole.way@example.com', email_verified: true },
        organisation: { name: 'whole.way', plan: 'free' },
        role: 'owner',
        country: 'AT',
        currency: 'eur',
        organisations: [{ name: 'whole.way', role: 'owner', personal: true }],
      },
    })

    const listed = await callRoute(routes, 'GET', '/api/v1/tokens', bearer(created.body.token))
    expect(listed.body).toMatchObject([{ name: 'laptop', hint: created.body.token.slice(-4) }])
    expect(JSON.stringify(listed.body)).not.toContain(created.body.token)

    const params = { id: created.body.id }
    expect((await callRoute(routes, 'DELETE', '/api/v1/tokens/:id', { ...withSession(secret), params })).status).toBe(
      204,
    )
    const refused = await callRoute(routes, 'GET', '/api/v1/me', bearer(created.body.token))
    expect(refused).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
    expect((await callRoute(routes, 'DELETE', '/api/v1/tokens/:id', { ...withSession(secret), params })).status).toBe(
      404,
    )
  })

  test('a token cannot make tokens, and another account cannot revoke it', async () => {
    const [owner, stranger] = [await fixture.newAccount(), await fixture.newAccount()]
    const issued = await fixture.tokens.create(owner, { name: 'ci' })
    const made = await callRoute(routes, 'POST', '/api/v1/tokens', { ...bearer(issued.token), body: { name: 'child' } })
    expect(made).toMatchObject({ status: 403, body: { error: 'forbidden' } })
    expect(await refusal(fixture.tokens.revoke(stranger, issued.id))).toBe('not_found')
    const ofOneDrop = {
      ...owner,
      reach: reachOf(['manage'], ['st_1']),
      via: { kind: 'token', tokenId: 'tok_1' },
    } as const
    expect(await refusal(fixture.tokens.revoke(ofOneDrop, issued.id))).toBe('forbidden')
    expect(await refusal(fixture.tokens.revoke(ofOneDrop, ofOneDrop.via.tokenId))).toBe('not_found')
    expect(await fixture.tokens.list(owner)).toHaveLength(1)
  })

  test('a workflow of a drop does not hear of its owner’s tokens', async () => {
    const owner = await fixture.newAccount()
    const run = { provider: 'github', issuer: '', repository: '', workflow: '', commit: '', actor: '' } as const
    const via = { kind: 'publisher', publisherId: 'pub_1', run } as const
    const workflow = { ...owner, reach: reachOf(['publish'], ['st_1']), via }
    const ofWorkflow = tokenRoutes({ ...fixture, apiRoute: createApiRoutes(async () => workflow) })
    expect((await callRoute(ofWorkflow, 'GET', '/api/v1/tokens', {})).status).toBe(403)
  })

  test('the last use is noted at most once a minute', async () => {
    const owner = await fixture.newAccount()
    const issued = await fixture.tokens.create(owner, { name: 'ci' })
    const lastUse = async () => (await fixture.tokens.list(owner))[0]!.lastUsedAt?.getTime()
    await fixture.access.tokenActor(issued.token, '::1')
    const first = fixture.clock.now()
    await expect.poll(lastUse).toBe(first)
    fixture.advance(MINUTE_MS / 2)
    await fixture.access.tokenActor(issued.token, '::1')
    fixture.advance(MINUTE_MS / 2)
    await fixture.access.tokenActor(issued.token, '::1')
    await expect.poll(lastUse).toBe(first + MINUTE_MS)
  })
})

describe('credentials of the REST API', () => {
  let session: string
  beforeAll(async () => {
    const { email } = await fixture.newAccount()
    session = secretOf(await fixture.accounts.signIn({ email, password: PASSWORD }, VISIT))
  })

  test.each([
    ['nothing', {}],
    ['another scheme', { headers: { authorization: 'Basic abc' } }],
    ['an empty token', { headers: { authorization: 'Bearer ' } }],
    ['an unknown token', bearer('dw_unknown')],
    ['an unknown OAuth token', bearer('dwo_unknown')],
    ['a token of someone else', bearer('ghp_unknown')],
    ['an enormous token', bearer(`dw_${'x'.repeat(100_000)}`)],
    ['an unknown session', withSession('unknown')],
  ])('%s answers 401', async (_, request) => {
    expect(await callRoute(routes, 'GET', '/api/v1/me', request)).toMatchObject({
      status: 401,
      body: { error: 'unauthorized' },
    })
  })

  test.each([
    ['our origin', { origin: BASE_URL }, 200],
    ['a fetch of our page', { 'sec-fetch-site': 'same-origin' }, 200],
    ['another origin', { origin: 'https://evil.test' }, 401],
    ["a drop's page", { origin: 'https://drop.dropway.test', 'sec-fetch-site': 'same-site' }, 401],
    ['our origin, but the browser says cross-site', { origin: BASE_URL, 'sec-fetch-site': 'cross-site' }, 401],
    ['an opaque origin', { origin: 'null' }, 401],
    ['no evidence', {}, 401],
  ])('a session with %s', async (_, headers: Record<string, string>, status) => {
    expect((await callRoute(routes, 'GET', '/api/v1/me', withSession(session, headers))).status).toBe(status)
  })

  test('a token ends at its time, and its person hears of it once, a week before', async () => {
    const owner = await fixture.newAccount()
    const day = 86_400
    const long = await fixture.tokens.create(owner, { name: 'Long "CI"', expiresInSeconds: 10 * day })
    await fixture.tokens.create(owner, { name: 'Short', expiresInSeconds: 6 * day })
    const told = async () => (await fixture.mailsTo(owner.email)).filter(({ template }) => template === 'token_ending')
    expect(await fixture.tokens.tellEnding(fixture.clock)).toBe(0)
    fixture.advance(3 * day * 1000)
    expect(await fixture.tokens.tellEnding(fixture.clock)).toBe(1)
    expect(await fixture.tokens.tellEnding(fixture.clock)).toBe(0)
    expect((await told()).map(({ subject }) => subject)).toEqual(['Your API token "Long "CI"" ends soon'])
    fixture.advance(7 * day * 1000 - 1)
    expect(await fixture.access.tokenActor(long.token, '::1')).toBeDefined()
    fixture.advance(1)
    expect(await fixture.access.tokenActor(long.token, '::1')).toBeUndefined()
    expect((await fixture.tokens.list(owner)).map(({ name }) => name)).toEqual([])
  })

  test('an OAuth token counts when it carries the scope of this API', async () => {
    const actor = await fixture.newAccount()
    const oauth = async (token: string) => ({
      ...actor,
      via: { kind: 'oauth' as const, grantId: 'g', scopes: [token.slice(4)] },
    })
    const access = createAccess({ ...fixture, log: silentLog, baseUrl: BASE_URL, oauth })
    const own = accountRoutes({ ...fixture, expiring, apiRoute: createApiRoutes(access.authenticate) })
    expect((await callRoute(own, 'GET', '/api/v1/me', bearer('dwo_cli'))).status).toBe(200)
    expect((await callRoute(own, 'GET', '/api/v1/me', bearer('dwo_mcp'))).status).toBe(401)
  })
})

describe('sessions', () => {
  test('signing in ends the session that came along and begins another', async () => {
    const actor = await fixture.newAccount()
    const first = await fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT)
    const second = await fixture.accounts.signIn(
      { email: actor.email, password: PASSWORD },
      { ...VISIT, sessionSecret: secretOf(first), anonymousId: 'browser-2' },
    )
    expect(await isLive(secretOf(first))).toBe(false)
    expect(await isLive(secretOf(second))).toBe(true)
    expect(fixture.hookCalls).toContainEqual(['onSignIn', actor.userId])
    expect(fixture.hookCalls).toContainEqual(['claim', 'browser-2'])
  })

  test('they end when idle, at their absolute end, and at once when revoked', async () => {
    const actor = await fixture.newAccount()
    const signIn = async () =>
      secretOf(await fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT))
    const idle = await signIn()
    fixture.advance(SESSION_IDLE_MS)
    expect(await isLive(idle)).toBe(false)

    const busy = await signIn()
    for (let spent = 0; spent < SESSION_LIFETIME_MS; spent += SESSION_IDLE_MS / 2) {
      expect(await isLive(busy)).toBe(true)
      // The use is noted behind the answer.
      await expect
        .poll(async () => (await fixture.accounts.listSessions(actor))[0]?.lastSeenAt.getTime())
        .toBe(fixture.clock.now())
      fixture.advance(SESSION_IDLE_MS / 2)
    }
    expect(await isLive(busy)).toBe(false)

    const [one, two] = [await signIn(), await signIn()]
    const sessions = await fixture.accounts.listSessions(await fixture.actorOf({ setCookie: `x=${one};` }))
    expect(sessions.map((session) => String(session.current)).toSorted()).toEqual(['false', 'true'])
    await fixture.accounts.revokeSession(actor, sessions.find((session) => !session.current)!.id)
    expect([await isLive(one), await isLive(two)]).toEqual([true, false])
    expect((await fixture.accounts.signOutEverywhere(actor)).ended).toBe(1)
    expect(await isLive(one)).toBe(false)
  })

  test('no one revokes the session of someone else', async () => {
    const [owner, stranger] = [await fixture.newAccount(), await fixture.newAccount()]
    const [session] = await fixture.accounts.listSessions(owner)
    expect(await refusal(fixture.accounts.revokeSession(stranger, session!.id))).toBe('not_found')
  })

  test('signing out clears the cookie', async () => {
    const actor = await fixture.newAccount()
    const secret = secretOf(await fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT))
    expect((await fixture.accounts.signOut(secret)).setCookie).toContain('Max-Age=0')
    expect(await isLive(secret)).toBe(false)
    await fixture.accounts.signOut(undefined)
  })
})

describe('links in mails', () => {
  test('a reset sets the password, ends sessions, tokens and apps, verifies the mailbox, works once', async () => {
    const email = 'reset@example.com'
    const before = await fixture.accounts.signUp({ email, password: PASSWORD }, VISIT)
    await fixture.accounts.requestReset(` ${email.toUpperCase()} `, VISIT)
    await expect.poll(() => fixture.mailsTo(email)).toHaveLength(2)
    const { token } = (await fixture.mailsTo(email)).find((mail) => mail.template === 'reset')!
    const owner = { ...(await fixture.actorOf(before)), emailVerified: true }
    const issued = await fixture.tokens.create(owner, { name: 'ci' })
    expect(await fixture.accounts.isLinkValid('reset', token)).toBe(true)
    expect(await fixture.accounts.isLinkValid('verify', token)).toBe(false)

    const after = await fixture.accounts.resetPassword({ token, password: 'another long one' }, VISIT)
    expect(after.emailVerified).toBe(true)
    expect(fixture.hookCalls).toContainEqual(['onVerified', after.userId])
    expect([await isLive(secretOf(before)), await isLive(secretOf(after))]).toEqual([false, true])
    expect(await refusal(fixture.accounts.resetPassword({ token, password: 'yet another one' }, VISIT))).toBe(
      'invalid_link',
    )
    expect(await refusal(fixture.accounts.signIn({ email, password: PASSWORD }, VISIT))).toBe('wrong_credentials')
    await fixture.accounts.signIn({ email, password: 'another long one' }, VISIT)
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
    expect(fixture.hookCalls).toContainEqual(['endConnectedApps', after.userId])
    const told = (await fixture.mailsTo(email)).at(-1)!
    expect([told.template, told.text]).toEqual([
      'password_changed',
      expect.stringContaining('API tokens and connected apps were ended too'),
    ])
  })

  test('of two people who race for a link one gets it', async () => {
    const { email } = await fixture.newAccount()
    await fixture.accounts.requestReset(email, VISIT)
    await expect.poll(() => fixture.mailsTo(email)).toHaveLength(2)
    const { token } = (await fixture.mailsTo(email))[1]!
    const outcomes = await Promise.all(
      ['first password', 'second password'].map((password) =>
        refusal(fixture.accounts.resetPassword({ token, password }, VISIT)),
      ),
    )
    expect(outcomes.toSorted()).toEqual(['accepted', 'invalid_link'])
  })

  test('they end: verify after three days, reset after an hour, an older reset with the next', async () => {
    const email = 'late@example.com'
    const signedIn = await fixture.accounts.signUp({ email, password: PASSWORD }, VISIT)
    const resetTokens = async () =>
      (await fixture.mailsTo(email)).filter((mail) => mail.template === 'reset').map((mail) => mail.token)
    await fixture.accounts.requestReset(email, VISIT)
    await expect.poll(resetTokens).toHaveLength(1)
    fixture.advance(1)
    await fixture.accounts.requestReset(email, VISIT)
    await expect.poll(resetTokens).toHaveLength(2)
    const [older, newer] = await resetTokens()
    expect(await fixture.accounts.isLinkValid('reset', older!)).toBe(false)
    expect(await fixture.accounts.isLinkValid('reset', newer!)).toBe(true)
    fixture.advance(HOUR_MS)
    expect(await refusal(fixture.accounts.resetPassword({ token: newer!, password: 'another long one' }, VISIT))).toBe(
      'invalid_link',
    )

    fixture.advance(3 * DAY_MS)
    const [verify] = await fixture.mailsTo(email)
    expect(await refusal(fixture.accounts.verifyEmail(verify!.token))).toBe('invalid_link')
    expect(await refusal(fixture.accounts.verifyEmail('nonsense'))).toBe('invalid_link')
    await fixture.accounts.resendVerification(await fixture.actorOf(signedIn))
    await fixture.accounts.verifyEmail((await fixture.mailsTo(email)).at(-1)!.token)
  })

  test('an address changes when its new mailbox says so, and the old one is told', async () => {
    const actor = await fixture.newAccount()
    const newEmail = 'moved@example.com'
    expect(await refusal(fixture.accounts.requestEmailChange(actor, { newEmail, password: 'wrong password' }))).toBe(
      'wrong_credentials',
    )
    await fixture.accounts.requestEmailChange(actor, { newEmail, password: PASSWORD })
    const [mail] = await fixture.mailsTo(newEmail)
    await fixture.accounts.confirmEmailChange(mail!.token)
    await fixture.accounts.signIn({ email: newEmail, password: PASSWORD }, VISIT)
    expect(await refusal(fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT))).toBe(
      'wrong_credentials',
    )
    expect((await fixture.mailsTo(actor.email)).at(-1)?.text).toContain(newEmail)
    expect(await refusal(fixture.accounts.confirmEmailChange(mail!.token))).toBe('invalid_link')
  })

  test('an address that someone has gets no link, and the answer does not tell', async () => {
    const [actor, other] = [await fixture.newAccount(), await fixture.newAccount()]
    await fixture.accounts.requestEmailChange(actor, { newEmail: other.email, password: PASSWORD })
    expect((await fixture.mailsTo(other.email)).map((mail) => mail.template)).toEqual(['verify'])
  })
})

test('what has run out is swept away, and nothing else', async () => {
  const actor = await fixture.newAccount()
  const count = async () => {
    const [row] = await fixture.sql`
      select (select count(*)::int from sessions where user_id = ${actor.userId}) as sessions,
        (select count(*)::int from account_links where user_id = ${actor.userId}) as links,
        (select count(*)::int from throttles) as throttles`
    return [row!['sessions'], row!['links'], row!['throttles']]
  }
  await fixture.accounts.sweep()
  expect(await count()).toEqual([1, 1, 2])
  fixture.advance(SESSION_IDLE_MS)
  await fixture.accounts.sweep()
  expect(await count()).toEqual([0, 1, 0])
  fixture.advance(60 * DAY_MS)
  await fixture.accounts.sweep()
  expect(await count()).toEqual([0, 0, 0])
})

describe('the account itself', () => {
  test('a new password ends the other sessions and keeps this one under a new secret', async () => {
    const actor = await fixture.newAccount()
    const [here, there] = [
      secretOf(await fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT)),
      secretOf(await fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT)),
    ]
    const issued = await fixture.tokens.create(actor, { name: 'ci' })
    const change = { currentPassword: PASSWORD, newPassword: 'a better password', endTokensAndApps: false }
    const changed = await fixture.accounts.changePassword(actor, change, { ...VISIT, sessionSecret: here })
    expect([await isLive(here), await isLive(there), await isLive(secretOf(changed))]).toEqual([false, false, true])
    expect(await refusal(fixture.accounts.changePassword(actor, change, VISIT))).toBe('wrong_credentials')
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeDefined()
    expect(fixture.hookCalls).not.toContainEqual(['endConnectedApps', actor.userId])
    expect((await fixture.mailsTo(actor.email)).at(-1)!.text).toContain('API tokens and connected apps still work')
  })

  test('a new password ends tokens and connected apps too when its owner wants that', async () => {
    const actor = await fixture.newAccount()
    const issued = await fixture.tokens.create(actor, { name: 'ci' })
    const change = { currentPassword: PASSWORD, newPassword: 'a better password', endTokensAndApps: true }
    await fixture.accounts.changePassword(actor, change, VISIT)
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
    expect(fixture.hookCalls).toContainEqual(['endConnectedApps', actor.userId])
  })

  test('deleting it takes everything along, and the address is free again', async () => {
    const actor = await fixture.newAccount()
    const issued = await fixture.tokens.create(actor, { name: 'ci' })
    expect(await refusal(fixture.accounts.deleteAccount(actor, { password: 'wrong password' }))).toBe(
      'wrong_credentials',
    )
    await fixture.accounts.deleteAccount(actor, { password: PASSWORD })
    expect(fixture.hookCalls).toContainEqual(['onOrganisationDeleted', actor.orgId])
    expect(await fixture.access.tokenActor(issued.token, '::1')).toBeUndefined()
    expect(await fixture.accounts.listSessions(actor)).toEqual([])
    expect(await refusal(fixture.accounts.signIn({ email: actor.email, password: PASSWORD }, VISIT))).toBe(
      'wrong_credentials',
    )
    const again = await fixture.accounts.signUp({ email: actor.email, password: PASSWORD }, VISIT)
    expect(again.userId).not.toBe(actor.userId)
  })

  test('an e-mail has one account, whatever its case, even when two sign up at once', async () => {
    const attempts = ['twice@example.com', 'TWICE@example.com', ' Twice@Example.com'].map((email) =>
      refusal(fixture.accounts.signUp({ email, password: PASSWORD }, VISIT)),
    )
    expect(await Promise.all(attempts)).toEqual(['accepted', 'accepted', 'accepted'])
    const mails = (await fixture.mailsTo('twice@example.com')).map(({ template }) => template)
    expect(mails.toSorted()).toEqual(['sign_up_again', 'sign_up_again', 'verify'])
    const rows = await fixture.sql`select from users where lower(email) = 'twice@example.com'`
    expect(rows).toHaveLength(1)
    expect(await refusal(fixture.accounts.createAccount({ email: 'twice@example.com', verified: true }))).toBe(
      'email_taken',
    )
  })

  test.each([
    ['the proxy', { geoCountry: 'gb' }, { country: 'FR' }, ['GB', 'gbp']],
    ['the form', { geoCountry: 'XX' }, { country: 'FR' }, ['FR', 'eur']],
    ['the language', {}, {}, ['AT', 'eur']],
    ['nothing', { acceptLanguage: 'de' }, {}, ['US', 'usd']],
  ])('country and currency by %s', async (source, visit, form, expected) => {
    const email = `${source.replace(' ', '-')}@example.org`
    const { orgId } = await fixture.accounts.signUp({ email, password: PASSWORD, ...form }, { ...VISIT, ...visit })
    const [row] = await fixture.sql`select country, currency from organisations where id = ${orgId}`
    expect([row!['country'], row!['currency']]).toEqual(expected)
  })

  test("the operator's account needs no browser", async () => {
    const created = await fixture.accounts.createAccount({ email: 'ops@example.com', verified: true })
    const issued = await fixture.tokens.createFor({ ...created, emailVerified: true }, { name: 'admin' })
    expect(await fixture.access.tokenActor(issued.token, '::1')).toMatchObject({
      email: 'ops@example.com',
      emailVerified: true,
    })
  })
})

describe('throttling', () => {
  /** `guess` tells the code of what came of it; `solved` answers the challenge that came last, `bits` says how hard it was. */
  function guesser(email: string) {
    let asked: { challenge: string; bits: number } | undefined
    return {
      solved: () => solveEasily(fixture.secrets, asked!.challenge),
      bits: () => asked!.bits,
      async guess(ip: string, password: string, given?: string): Promise<string> {
        try {
          await fixture.accounts.signIn({ email, password, proof: given }, { ...VISIT, ip })
          return 'accepted'
        } catch (error) {
          const { code, fields } = error as ApiError
          if (code === 'proof_required') asked = fields as unknown as { challenge: string; bits: number }
          return code
        }
      },
    }
  }

  test.each(['known', 'unknown'])(
    'many wrong passwords for a %s e-mail cost work, and lock no one out',
    async (kind) => {
      const { email } = kind === 'known' ? await fixture.newAccount() : { email: 'nobody@example.com' }
      const { guess, solved, bits } = guesser(email)
      const right = kind === 'known' ? 'accepted' : 'wrong_credentials'
      const codes: string[] = []
      for (let attempt = 0; attempt < 12; attempt++) codes.push(await guess('198.51.100.1', 'wrong password'))
      expect(codes).toEqual([...Array(10).fill('wrong_credentials'), 'proof_required', 'proof_required'])
      expect(await guess('198.51.100.1', PASSWORD)).toBe('proof_required')
      expect(bits()).toBe(19)
      const proof = solved()
      // One answer is good for one guess, and for this account alone.
      expect(await guess('198.51.100.1', 'wrong password', proof)).toBe('wrong_credentials')
      expect(await guess('198.51.100.1', PASSWORD, proof)).toBe('proof_required')
      expect(await guess('198.51.100.1', PASSWORD, 'nonsense')).toBe('proof_required')
      expect(await guess('198.51.100.2', PASSWORD)).toBe(right)
      expect(await guess('198.51.100.1', PASSWORD, solved())).toBe(right)
      fixture.advance(15 * MINUTE_MS)
      expect(await guess('198.51.100.1', PASSWORD)).toBe(right)
    },
  )

  test('guesses from a hundred networks do not keep the owner out', async () => {
    const { email } = await fixture.newAccount()
    const { guess, solved, bits } = guesser(email)
    const throttle = createThrottle({ ...fixture, allowances: ACCOUNT_ALLOWANCES })
    for (let guesses = 0; guesses < ACCOUNT_ALLOWANCES.signInPerAccount.limit; guesses++)
      await throttle.use('signInPerAccount', email)
    expect(await guess('198.51.100.9', PASSWORD)).toBe('proof_required')
    expect(bits()).toBe(19)
    expect(await guess('198.51.100.9', PASSWORD, solved())).toBe('accepted')
  })

  test('a success wipes the slate', async () => {
    const { email } = await fixture.newAccount()
    const tryWith = (password: string) => refusal(fixture.accounts.signIn({ email, password }, VISIT))
    for (let attempt = 0; attempt < 9; attempt++) await tryWith('wrong password')
    expect(await tryWith(PASSWORD)).toBe('accepted')
    for (let attempt = 0; attempt < 2; attempt++) expect(await tryWith('wrong password')).toBe('wrong_credentials')
  })

  test('reset mails stop silently, verification mails with 429', async () => {
    const email = 'flood@example.com'
    const signedIn = await fixture.accounts.signUp({ email, password: PASSWORD }, VISIT)
    const count = async (template: string) =>
      (await fixture.mailsTo(email)).filter((mail) => mail.template === template).length
    for (let request = 0; request < 8; request++) await fixture.accounts.requestReset(email, VISIT)
    await expect.poll(() => count('reset')).toBe(5)
    const actor = await fixture.actorOf(signedIn)
    const codes: string[] = []
    for (let request = 0; request < 6; request++) codes.push(await refusal(fixture.accounts.resendVerification(actor)))
    expect(codes.at(-1)).toBe('rate_limited')
    expect(await count('verify')).toBe(6)
    expect(await count('reset')).toBe(5)
  })
})
