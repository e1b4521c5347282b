/** Signing in with OpenID Connect, against a provider of our own writing that can lie, and against `oidc-provider`. */
import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { allRoutes } from '../../control/composition/routes.ts'
import { createDashboard } from '../../control/doors/dashboard/dashboard.ts'
import { noteAdmission, subjectOf } from '../../control/drops/viewers/lists.ts'
import { createHttpServer } from '../../control/ground/http/server/server.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { PASSWORD } from '../support/accounts.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { newKey, signToken, startOpenIdStandIn, type Lies, type OpenIdStandIn } from '../support/openid-stand-in.ts'

const BASE_URL = 'https://localhost:8443'
const ADA = { sub: 'ada', email: 'ada@example.com', email_verified: true, groups: ['staff'] }
let people = 0
/** Somebody whom nobody has seen here yet. */
const somebody = () => {
  const name = `person-${++people}`
  return { ...ADA, sub: name, email: `${name}@example.org` }
}

interface Instance extends ComposedServices {
  readonly url: string
  close(): Promise<void>
}

const open: { close(): Promise<void> }[] = []
/** For those that need no settings of their own: each brings its own people. */
let shared: { provider: OpenIdStandIn; instance: Instance }
beforeAll(async () => {
  const provider = await startOpenIdStandIn()
  shared = { provider, instance: await openInstance(provider) }
  open.splice(0)
})
afterAll(async () => {
  await shared.instance.close()
  await shared.provider.stop()
})
afterEach(() => shared.provider.lie({}))
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

async function openInstance(provider: OpenIdStandIn, env: Record<string, string> = {}): Promise<Instance> {
  const composed = await composeServices({
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.clientId,
    OIDC_CLIENT_SECRET: provider.clientSecret,
    OIDC_NAME: 'Acme',
    ...env,
  })
  const { services } = composed
  const routes = allRoutes(services, createDashboard(services))
  const server = createHttpServer({ routes, log: silentLog, clock: systemClock, trustedProxies: [] })
  const port = await server.listen(0, '127.0.0.1')
  const instance = {
    ...composed,
    url: `http://127.0.0.1:${port}`,
    async close() {
      await server.close(0)
      await composed.close()
    },
  }
  open.push(instance)
  return instance
}

async function startProvider(): Promise<OpenIdStandIn> {
  const provider = await startOpenIdStandIn()
  open.push({ close: () => provider.stop() })
  return provider
}

/** A browser: it keeps cookies of the service, and follows redirects where it is told to. */
function openBrowser({ url }: Pick<Instance, 'url'>) {
  const jar = new Map<string, string>()
  async function get(address: string, init: RequestInit = {}): Promise<Response> {
    const own = address.startsWith(BASE_URL) ? url + address.slice(BASE_URL.length) : address
    const isOurs = own.startsWith(url)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(own, {
      redirect: 'manual',
      ...init,
      headers: isOurs ? { cookie, ...init.headers } : {},
    })
    if (isOurs)
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') jar.delete(name)
        else jar.set(name, value)
      }
    return response
  }
  return {
    jar,
    get,
    /** From the button to where it ends: the answer of our callback. */
    async signIn(query = ''): Promise<Response> {
      const away = await get(`${url}/signin/oidc${query}`)
      if (away.status !== 303) return away
      const back = await get(away.headers.get('location')!)
      return get(back.headers.get('location')!)
    },
    get isIn(): boolean {
      return jar.has('__Host-dropway_session')
    },
    async isWelcome(): Promise<boolean> {
      return (await get(`${url}/account`)).status === 200
    },
  }
}

/** Asks the provider after everyone, `first` before the others. */
async function recheckAll({ sql, services }: Instance, first = ''): Promise<void> {
  await sql`update provider_identities set checked_at = case when subject = ${first} then 'epoch'::timestamptz
    else '2000-01-01'::timestamptz end`
  await services.providerSignIn!.recheck(new AbortController().signal)
}

describe('coming in', () => {
  test('a newcomer gets an account with a proved address; next time it is the same one', async () => {
    const { provider, instance } = shared
    const ada = somebody()
    provider.signIn(ada)
    const browser = openBrowser(instance)
    const signInPage = await (await browser.get(`${instance.url}/signin?next=/templates`)).text()
    expect(signInPage).toContain('Continue with Acme')
    const arrived = await browser.signIn('?next=/templates')
    expect([arrived.status, arrived.headers.get('location')]).toEqual([303, '/templates'])
    expect(await browser.isWelcome()).toBe(true)
    const second = openBrowser(instance)
    await second.signIn()
    expect(await second.isWelcome()).toBe(true)
    const people = await instance.sql`select email, email_verified_at is not null as verified from users
      where email = ${ada.email}`
    expect([...people]).toEqual([{ email: ada.email, verified: true }])
    expect(provider.asked.at(-1)!.searchParams.get('code_challenge_method')).toBe('S256')
    expect(browser.jar.has('__Host-dropway_provider')).toBe(false)
  })

  test('a verified account with the address is joined; one that was never verified is not', async () => {
    const { provider, instance } = shared
    const ada = somebody()
    const eve = somebody()
    const { accounts } = instance.services
    const verified = await accounts.createAccount({ email: ada.email, password: PASSWORD, verified: true })
    await accounts.createAccount({ email: eve.email, password: PASSWORD, verified: false })
    provider.signIn(ada)
    const browser = openBrowser(instance)
    await browser.signIn()
    const [session] = await instance.sql<
      { user_id: string }[]
    >`select user_id from sessions where user_id = ${verified.userId}`
    expect(session?.user_id).toBe(verified.userId)
    provider.signIn(eve)
    const other = openBrowser(instance)
    expect((await other.signIn()).status).toBe(409)
    expect(other.isIn).toBe(false)
  })

  test('the provider’s own id decides, not the address: a second person with it does not get the first one’s account', async () => {
    const { provider, instance } = shared
    const ada = somebody()
    const before = (await instance.sql`select 1 from users`).length
    provider.signIn(ada)
    await openBrowser(instance).signIn()
    provider.signIn({ ...ada, email: 'renamed@example.com' })
    await openBrowser(instance).signIn()
    expect((await instance.sql`select 1 from users`).length).toBe(before + 1)
  })

  test('SIGNUP’s domains hold for newcomers, exactly', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { SIGNUP: '@example.com' })
    const statusFor = async (email: string): Promise<number> => {
      provider.signIn({ ...ADA, sub: email, email })
      return (await openBrowser(instance).signIn()).status
    }
    expect(await statusFor('ada@sub.example.com')).toBe(403)
    expect(await statusFor('ada@example.org')).toBe(403)
    expect((await instance.sql`select 1 from users`).length).toBe(0)
    expect(await statusFor('Ada@Example.com')).toBe(303)
  })

  test('who is there stays welcome on a closed instance, and so is whom the operator invites', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { SIGNUP: 'closed', PASSWORD_SIGN_IN: 'off' })
    const { link } = { link: await instance.services.newcomers.ownerLink() }
    const token = new URL(link!).searchParams.get('token')
    const page = await (await fetch(`${instance.url}/signup?token=${token}`)).text()
    expect(page).toContain(`/signin/oidc?token=${token}`)
    expect(page).not.toContain('name="password"')
    provider.signIn(ADA)
    expect((await openBrowser(instance).signIn(`?token=${token}`)).status).toBe(303)
    expect((await openBrowser(instance).signIn()).status).toBe(303)
    await instance.services.newcomers.invite('bob@example.com')
    provider.signIn({ ...ADA, sub: 'bob', email: 'bob@example.com' })
    expect((await openBrowser(instance).signIn()).status).toBe(303)
    provider.signIn({ ...ADA, sub: 'eve', email: 'eve@example.com' })
    expect((await openBrowser(instance).signIn()).status).toBe(403)
    const staff = await instance.sql`select email from users where is_staff`
    expect([...staff]).toEqual([{ email: 'ada@example.com' }])
  })

  test('with passwords off no other way is open', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { PASSWORD_SIGN_IN: 'off' })
    const { accounts } = instance.services
    await accounts.createAccount({ email: ADA.email, password: PASSWORD, verified: true })
    const browser = openBrowser(instance)
    const page = await (await browser.get(`${instance.url}/signin`)).text()
    expect(page).not.toContain('type="password"')
    expect((await browser.get(`${instance.url}/reset`)).status).toBe(403)
    const from = { ip: '203.0.113.7', userAgent: '', acceptLanguage: undefined, geoCountry: undefined }
    const circumstances = { ...from, anonymousId: undefined, sessionSecret: undefined }
    const off = { status: 403, code: 'password_sign_in_off' }
    const typed = { email: ADA.email, password: PASSWORD }
    await expect(accounts.signIn(typed, circumstances)).rejects.toMatchObject(off)
    await expect(accounts.signUp(typed, circumstances)).rejects.toMatchObject(off)
    await expect(accounts.requestReset(ADA.email, circumstances)).rejects.toMatchObject(off)
    await expect(accounts.signInWithPasskey({}, circumstances)).rejects.toMatchObject(off)
    // The operator's command mails no link to a page that is closed.
    expect(await accounts.endAccess(ADA.email)).toBeDefined()
    expect((await instance.mailsTo(ADA.email)).map(({ template }) => template)).toEqual([])
  })
})

describe('groups', () => {
  test('give, change and take a role in the organisation of the instance', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { OIDC_GROUPS: 'staff=member,leads=admin', OIDC_RECHECK: '1ms' })
    const roleOf = async (email: string): Promise<string | undefined> => {
      const [row] = await instance.sql<{ role: string }[]>`
        select m.role from memberships m join organisations o on o.id = m.org_id join users u on u.id = m.user_id
        where not o.personal and o.name = 'Acme' and u.email = ${email}`
      return row?.role
    }
    const owner = await instance.newActor()
    provider.signIn(ADA)
    await openBrowser(instance).signIn()
    expect(await roleOf(ADA.email)).toBe('member')
    expect(await roleOf(owner.email)).toBe('owner')
    provider.change({ ...ADA, groups: ['staff', 'leads'] })
    await sleep(5)
    await instance.services.providerSignIn!.recheck(new AbortController().signal)
    expect(await roleOf(ADA.email)).toBe('admin')
    provider.signIn({ ...ADA, groups: ['visitors'] })
    await openBrowser(instance).signIn()
    expect(await roleOf(ADA.email)).toBeUndefined()
    expect((await instance.sql`select 1 from provider_organisations`).length).toBe(1)
  })
})

describe('groups that only userinfo names', () => {
  test('are followed when a person is asked after, and what it does not say changes nothing', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { OIDC_GROUPS: 'staff=member,leads=admin', OIDC_RECHECK: '1ms' })
    const roles = async (): Promise<string[]> =>
      (
        await instance.sql<{ role: string }[]>`
          select m.role from memberships m join organisations o on o.id = m.org_id join users u on u.id = m.user_id
          where not o.personal and u.email = ${ADA.email}`
      ).map(({ role }) => role)
    await instance.newActor()
    const withoutGroups = (own: Record<string, unknown>) => ({ ...own, groups: undefined })
    provider.lie({ claims: withoutGroups })
    provider.signIn(ADA)
    await openBrowser(instance).signIn()
    expect(await roles()).toEqual(['member'])
    provider.change({ ...ADA, groups: ['leads'] })
    await recheckAll(instance)
    expect(await roles()).toEqual(['admin'])
    provider.lie({ claims: withoutGroups, userInfo: withoutGroups })
    await recheckAll(instance)
    expect(await roles()).toEqual(['admin'])
    provider.lie({ claims: withoutGroups, userInfo: () => ({ sub: 'somebody else' }) })
    await recheckAll(instance)
    provider.lie({ claims: withoutGroups })
    provider.change({ ...ADA, groups: [] })
    await recheckAll(instance)
    expect(await roles()).toEqual([])
  })
})

describe('people who left', () => {
  test('are out at the next question; while the provider is away everyone stays in', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { OIDC_RECHECK: '1ms' })
    const recheck = async (): Promise<void> => {
      await sleep(5)
      await instance.services.providerSignIn!.recheck(new AbortController().signal)
    }
    provider.signIn(ADA)
    const browser = openBrowser(instance)
    await browser.signIn()
    const [user] = await instance.sql<{ id: string; org: string }[]>`
      select u.id, o.id as org from users u join organisations o on o.owner_id = u.id`
    const owner = { userId: user!.id, orgId: user!.org, emailVerified: true }
    const { token } = await instance.services.tokens.createFor(owner, { name: 'ci' })
    const me = async (): Promise<number> =>
      (await fetch(`${instance.url}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status

    await recheck()
    await recheck()
    expect([await browser.isWelcome(), await me()]).toEqual([true, 200])
    provider.goDown(true)
    await recheck()
    expect([await browser.isWelcome(), await me()]).toEqual([true, 200])
    provider.goDown(false)
    const late = openBrowser(instance)
    const away = await late.get(`${instance.url}/signin/oidc`)
    const back = await late.get(away.headers.get('location')!)
    provider.goDown(true)
    expect((await late.get(back.headers.get('location')!)).status).toBe(503)
    provider.goDown(false)
    await recheck()
    expect(await browser.isWelcome()).toBe(true)
    provider.remove('ada')
    await recheck()
    expect([await browser.isWelcome(), await me()]).toEqual([false, 401])
    // Let in again there, they are in again here, with what they had.
    await browser.signIn()
    expect([await browser.isWelcome(), await me()]).toEqual([true, 200])
  })

  test('are asked after by their access token where there is no other', async () => {
    const provider = await startProvider()
    provider.withoutRefreshTokens()
    const instance = await openInstance(provider, { OIDC_RECHECK: '1ms' })
    provider.signIn(ADA)
    const browser = openBrowser(instance)
    await browser.signIn()
    await sleep(5)
    await instance.services.providerSignIn!.recheck(new AbortController().signal)
    expect(await browser.isWelcome()).toBe(true)
    provider.remove('ada')
    await sleep(5)
    await instance.services.providerSignIn!.recheck(new AbortController().signal)
    expect(await browser.isWelcome()).toBe(false)
  })

  test('one person about whom the provider cannot say holds nobody else back', async () => {
    const { provider, instance } = shared
    const [odd, bob] = [somebody(), somebody()]
    for (const each of [odd, bob]) {
      provider.signIn(each)
      await openBrowser(instance).signIn()
    }
    const welcome = async ({ sub }: { sub: string }): Promise<boolean> =>
      (await instance.sql`select 1 from provider_identities where subject = ${sub} and lapsed_at is null`).length === 1
    provider.stumbleAt(odd.sub)
    provider.remove(bob.sub)
    await recheckAll(instance, odd.sub)
    expect([await welcome(odd), await welcome(bob)]).toEqual([true, false])
    // What was kept of the odd one still asks after them.
    provider.stumbleAt(undefined)
    await recheckAll(instance)
    expect(await welcome(odd)).toBe(true)
    provider.remove(odd.sub)
    await recheckAll(instance)
    expect(await welcome(odd)).toBe(false)
  })

  test('a run ends when the provider says nothing about several in a row', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { OIDC_RECHECK: '1ms' })
    for (let count = 0; count < 5; count++) {
      provider.signIn(somebody())
      await openBrowser(instance).signIn()
    }
    provider.goDown(true)
    await recheckAll(instance)
    expect((await instance.sql`select 1 from provider_identities where checked_at = '2000-01-01'`).length).toBe(2)
    expect((await instance.sql`select 1 from provider_identities where lapsed_at is not null`).length).toBe(0)
  })

  /** A person of the provider who also has a password, a session by it, a token and a private drop that they opened. */
  async function manySided() {
    const { provider, instance } = shared
    const { services, sql } = instance
    const ada = somebody()
    const { userId, orgId } = await services.accounts.createAccount({
      email: ada.email,
      password: PASSWORD,
      verified: true,
    })
    const from = { ip: '203.0.113.7', userAgent: '', acceptLanguage: undefined, geoCountry: undefined }
    const circumstances = { ...from, anonymousId: undefined, sessionSecret: undefined }
    const withPassword = () => services.accounts.signIn({ email: ada.email, password: PASSWORD }, circumstances)
    const sessionOf = async ({ setCookie }: { setCookie: string }): Promise<boolean> => {
      const browser = openBrowser(instance)
      browser.jar.set('__Host-dropway_session', /=([^;]*)/.exec(setCookie)![1]!)
      return browser.isWelcome()
    }
    const { token } = await services.tokens.createFor({ userId, orgId, emailVerified: true }, { name: 'ci' })
    return {
      provider,
      instance,
      ada,
      userId,
      withPassword,
      sessionOf,
      hasToken: async () => (await services.access.tokenActor(token, '::1')) !== undefined,
      async comeByProvider(who = ada): Promise<void> {
        provider.signIn(who)
        await openBrowser(instance).signIn()
      },
      async leave(who = ada): Promise<void> {
        provider.remove(who.sub)
        await recheckAll(instance)
      },
      sql,
    }
  }

  test('are out however they came in, and come back by the provider alone', async () => {
    const world = await manySided()
    const { instance, ada, userId, withPassword, sessionOf } = world
    await world.comeByProvider()
    const session = await withPassword()
    const owner = await instance.newActor('plus')
    const team = await instance.newTeam(owner, 'plus')
    await instance.sql`insert into memberships (org_id, user_id, role, created_at)
      values (${team.orgId}, ${userId}, 'member', '2026-01-01')`
    const { site } = await instance.publishPage(team, 'Ours')
    await instance.services.sites.patch(team, site.id, { access_mode: 'viewers' })
    const subject = await subjectOf(instance.sql, site.id, ada.email)
    expect(subject).toBe(`${userId}.${Date.parse('2026-01-01') / 1000}`)
    await noteAdmission(instance.sql, site.id, subject!, new Date(Date.now() + 86_400_000))
    const ended = async () => (await instance.routeOf(site.slug)).viewers?.ended.map(([who]) => who)
    expect([await sessionOf(session), await ended()]).toEqual([true, []])

    await world.leave()
    expect([await sessionOf(session), await world.hasToken(), await ended()]).toEqual([false, false, [subject]])
    expect(await subjectOf(instance.sql, site.id, ada.email)).toBeUndefined()
    await expect(withPassword()).rejects.toMatchObject({ status: 401, code: 'provider_refused' })

    await world.comeByProvider()
    expect([await sessionOf(await withPassword()), await world.hasToken(), await ended()]).toEqual([true, true, []])
    // The session from before has ended for good.
    expect(await sessionOf(session)).toBe(false)
  })

  test('a drop of an organisation that asks for a second factor knows no member without one', async () => {
    const { instance } = shared
    const owner = await instance.newActor('plus')
    const team = await instance.newTeam(owner, 'plus')
    const { site } = await instance.publishPage(team, 'Ours')
    expect(await subjectOf(instance.sql, site.id, owner.email)).toMatch(owner.userId)
    await instance.sql`update organisations set requires_second_factor = true where id = ${team.orgId}`
    expect(await subjectOf(instance.sql, site.id, owner.email)).toBeUndefined()
  })

  test('who has another id there, or another provider, is who they are now', async () => {
    const world = await manySided()
    const { ada, userId, sql } = world
    const renewed = { ...ada, sub: `${ada.sub}-again` }
    await world.comeByProvider()
    await world.leave()
    expect(await world.hasToken()).toBe(false)
    await world.comeByProvider(renewed)
    expect(await world.hasToken()).toBe(true)
    // The older id lapses after the newer one has come.
    await world.comeByProvider()
    await world.leave()
    expect([await world.hasToken(), await world.sessionOf(await world.withPassword())]).toEqual([true, true])
    await world.leave(renewed)
    expect(await world.hasToken()).toBe(false)
    // Another provider takes the place of this one.
    await sql`update provider_identities set issuer = 'https://former.example' where user_id = ${userId}`
    expect(await world.hasToken()).toBe(false)
    await world.comeByProvider({ ...ada, sub: `${ada.sub}-elsewhere` })
    expect(await world.hasToken()).toBe(true)
  })

  test('are asked after by their access token where the provider tells of logouts too', async () => {
    const provider = await startProvider()
    provider.withoutRefreshTokens()
    provider.announceLogouts()
    const instance = await openInstance(provider, { OIDC_RECHECK: '1ms' })
    provider.signIn(ADA)
    const browser = openBrowser(instance)
    await browser.signIn()
    provider.remove('ada')
    await recheckAll(instance)
    expect(await browser.isWelcome()).toBe(false)
  })

  const logOut = (instance: Instance, token: string): Promise<Response> =>
    fetch(`${instance.url}/signin/oidc/logout`, { method: 'POST', body: new URLSearchParams({ logout_token: token }) })

  test('a logout token ends the sessions that it names, and no others', async () => {
    const { provider, instance } = shared
    const [one, two] = [somebody(), somebody()]
    provider.signIn(one)
    const ada = openBrowser(instance)
    await ada.signIn()
    provider.signIn(two)
    const bob = openBrowser(instance)
    await bob.signIn()
    expect((await logOut(instance, provider.logoutToken({ sid: 'another session' }))).status).toBe(200)
    expect(await ada.isWelcome()).toBe(true)
    expect((await logOut(instance, provider.logoutToken({ sub: one.sub, sid: `session of ${one.sub}` }))).status).toBe(
      200,
    )
    expect([await ada.isWelcome(), await bob.isWelcome()]).toEqual([false, true])
    expect((await logOut(instance, provider.logoutToken({ sub: two.sub }))).status).toBe(200)
    expect(await bob.isWelcome()).toBe(false)
  })

  test('forged and broken logout tokens end nothing', async () => {
    const { provider, instance } = shared
    const { sub, ...rest } = somebody()
    provider.signIn({ sub, ...rest })
    const ada = openBrowser(instance)
    await ada.signIn()
    const old = Math.floor(Date.now() / 1000) - 3600
    const tokens = [
      '',
      'x.y.z',
      provider.logoutToken({ sub }, {}, newKey()),
      provider.logoutToken({ sub }, { alg: 'none' }),
      provider.logoutToken({ sub, iss: 'https://evil.test' }),
      provider.logoutToken({ sub, aud: 'another' }),
      provider.logoutToken({ sub, events: {} }),
      provider.logoutToken({ sub, events: undefined }),
      provider.logoutToken({ sub, nonce: 'x' }),
      provider.logoutToken({ sub, iat: old, exp: old + 60 }),
      provider.logoutToken({ sub, iat: old }),
      provider.logoutToken({ sub, jti: undefined }),
      provider.logoutToken({}),
    ]
    for (const [index, token] of tokens.entries())
      expect((await logOut(instance, token)).status, `token ${index}`).toBe(400)
    expect(await ada.isWelcome()).toBe(true)
  })
})

describe('forged and broken answers are refused', () => {
  const other = newKey()
  const claims = (changes: Record<string, unknown>): Lies => ({ claims: (own) => ({ ...own, ...changes }) })
  const second = Math.floor(Date.now() / 1000)
  const withPart = (token: string, index: number, part: string): string =>
    token
      .split('.')
      .map((own, at) => (at === index ? part : own))
      .join('.')
  const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

  const cases: [string, Lies][] = [
    ['a foreign key', { key: other }],
    ['a foreign key under our provider’s name', { key: other, header: { kid: undefined } }],
    ['a signature that was cut off', { idToken: (token) => withPart(token, 2, '') }],
    ['a signature that was changed', { idToken: (token) => `${token.slice(0, -8)}AAAAAAAA` }],
    [
      'claims that were changed after signing',
      { idToken: (token) => withPart(token, 1, encoded({ ...ADA, sub: 'eve' })) },
    ],
    ['alg none', { idToken: (token) => withPart(withPart(token, 0, encoded({ alg: 'none' })), 2, '') }],
    [
      'a signature with the client’s secret',
      {
        idToken: (token) => {
          const text = `${encoded({ alg: 'HS256' })}.${token.split('.')[1]}`
          return `${text}.${createHmac('sha256', 'stand-in secret').update(text).digest('base64url')}`
        },
      },
    ],
    ['a critical header that nobody knows', { header: { crit: ['x'], x: 1 } }],
    ['no ID token', { tokens: (own) => ({ ...own, id_token: undefined }) }],
    ['an ID token that is none', { idToken: () => 'hello' }],
    ['an ID token that is a number', { tokens: (own) => ({ ...own, id_token: 7 }) }],
    ['another issuer', claims({ iss: 'https://evil.test' })],
    ['no issuer', claims({ iss: undefined })],
    ['another audience', claims({ aud: 'another' })],
    ['several audiences without an authorised party', claims({ aud: ['dropway', 'another'] })],
    ['another authorised party', claims({ aud: ['dropway', 'another'], azp: 'another' })],
    ['no audience', claims({ aud: undefined })],
    ['an end in the past', claims({ exp: second - 3600 })],
    ['no end', claims({ exp: undefined })],
    ['an end in words', claims({ exp: 'tomorrow' })],
    ['a beginning in the future', claims({ nbf: second + 3600 })],
    ['no time of issue', claims({ iat: undefined })],
    ['another nonce', claims({ nonce: 'another' })],
    ['no nonce', claims({ nonce: undefined })],
    ['no subject', claims({ sub: undefined })],
    ['an empty subject', claims({ sub: '' })],
    ['an address that is not verified', claims({ email_verified: false })],
    ['an address that is verified in words', claims({ email_verified: 'true' })],
    [
      'an address about which nothing is said',
      { ...claims({ email_verified: undefined }), userInfo: (own) => ({ ...own, email_verified: undefined }) },
    ],
    ['no address', { ...claims({ email: undefined }), userInfo: (own) => ({ ...own, email: undefined }) }],
    ['an address that is none', claims({ email: 'ada' })],
    ['userinfo about another person', { ...claims({ email: undefined }), userInfo: (own) => ({ ...own, sub: 'eve' }) }],
    ['another state', { callback: (query) => query.set('state', 'another') }],
    ['no state', { callback: (query) => query.delete('state') }],
    ['two states', { callback: (query) => query.append('state', 'another') }],
    ['a code of nobody', { callback: (query) => query.set('code', 'another') }],
    ['no code', { callback: (query) => query.delete('code') }],
    ['an error beside the code', { callback: (query) => query.set('error', 'server_error') }],
    ['an answer that names another issuer', { callback: (query) => query.set('iss', 'https://evil.test') }],
    ['tokens that are not JSON', { tokenBody: '<html>' }],
    ['tokens that are a list', { tokenBody: '[]' }],
    ['no access token', { tokens: (own) => ({ ...own, access_token: undefined }) }],
    ['a token of another type', { tokens: (own) => ({ ...own, token_type: 'mac' }) }],
    ['tokens with the wrong status', { tokenStatus: 400 }],
  ]

  test(`${cases.length} of them, and then the truth is taken`, { timeout: 120_000 }, async () => {
    expect(cases.length).toBeGreaterThanOrEqual(30)
    const { provider, instance } = shared
    const before = (await instance.sql`select 1 from users`).length
    provider.signIn(ADA)
    for (const [name, lies] of cases) {
      provider.lie(lies)
      const browser = openBrowser(instance)
      const arrived = await browser.signIn()
      expect([name, arrived.status >= 400 && arrived.status < 500, browser.isIn]).toEqual([name, true, false])
    }
    expect((await instance.sql`select 1 from users`).length).toBe(before)
    provider.lie({})
    const browser = openBrowser(instance)
    await browser.signIn()
    expect(await browser.isWelcome()).toBe(true)
  })

  test('an answer is good once, and only in the browser that was sent away', async () => {
    const { provider, instance } = shared
    const ada = somebody()
    provider.signIn(ada)
    const browser = openBrowser(instance)
    const away = await browser.get(`${instance.url}/signin/oidc`)
    const callback = (await browser.get(away.headers.get('location')!)).headers.get('location')!
    const thief = openBrowser(instance)
    expect((await thief.get(callback)).status).toBe(401)
    await thief.get(`${instance.url}/signin/oidc`)
    expect((await thief.get(callback)).status).toBe(401)
    expect(thief.isIn).toBe(false)
    const carried = browser.jar.get('__Host-dropway_provider')!
    expect((await browser.get(callback)).status).toBe(303)
    browser.jar.set('__Host-dropway_provider', carried)
    expect((await browser.get(callback)).status).toBe(401)
  })

  test('a key that was rotated a moment ago is the right one, and the old one is not', async () => {
    const { provider, instance } = shared
    const ada = somebody()
    provider.signIn(ada)
    await openBrowser(instance).signIn()
    provider.rotateKey()
    expect((await openBrowser(instance).signIn()).status).toBe(303)
    provider.lie({
      idToken: (token) => signToken(JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()), other),
    })
    expect((await openBrowser(instance).signIn()).status).toBe(401)
  })
})

describe('deleting an account where there are no passwords', () => {
  /** A person who is in, types their address and sends the form; resolves where the browser is led. */
  async function askToDelete(instance: Instance, email: string) {
    const browser = openBrowser(instance)
    await browser.signIn()
    const page = await (await browser.get(`${instance.url}/account/data`)).text()
    expect(page).not.toContain('type="password"')
    expect(page).toContain('Acme then asks you to sign in once more')
    const csrf = /name="csrf" value="([^"]+)"/.exec(page)![1]!
    const answer = await browser.get(`${instance.url}/account/delete`, {
      method: 'POST',
      body: new URLSearchParams({ csrf, confirm: email }),
      headers: { origin: BASE_URL },
    })
    return { browser, answer }
  }
  const count = async (instance: Instance, email: string): Promise<number> =>
    (await instance.sql`select 1 from users where email = ${email}`).length

  test('the provider vouches for the person once more; then it is gone', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { PASSWORD_SIGN_IN: 'off' })
    provider.signIn(ADA)
    const { browser, answer } = await askToDelete(instance, ADA.email)
    const away = new URL(answer.headers.get('location')!)
    expect([away.searchParams.get('prompt'), away.searchParams.get('max_age')]).toEqual(['login', '120'])
    expect(await count(instance, ADA.email)).toBe(1)
    const back = await browser.get((await browser.get(away.href)).headers.get('location')!)
    expect(back.headers.get('location')).toBe('/goodbye')
    expect(await count(instance, ADA.email)).toBe(0)
    expect(browser.isIn).toBe(false)
    // What was carried is used up with the cookie: coming back again deletes nobody.
    provider.signIn(ADA)
    expect((await openBrowser(instance).signIn()).status).toBe(303)
    expect(await count(instance, ADA.email)).toBe(1)
  })

  test.each<[string, (provider: OpenIdStandIn) => void]>([
    ['somebody else signs in there', (provider) => provider.signIn({ ...ADA, sub: 'eve', email: 'eve@example.com' })],
    [
      'the provider does not ask them again',
      (provider) =>
        provider.lie({ claims: (claims) => ({ ...claims, auth_time: Number(claims['auth_time']) - 3600 }) }),
    ],
    [
      'the provider does not say when they signed in',
      (provider) => provider.lie({ claims: (claims) => ({ ...claims, auth_time: undefined }) }),
    ],
    ['they turn back', (provider) => provider.signIn(undefined)],
  ])('%s: the account stays', async (_, meanwhile) => {
    const provider = await startProvider()
    const instance = await openInstance(provider, { PASSWORD_SIGN_IN: 'off' })
    provider.signIn(ADA)
    const { browser, answer } = await askToDelete(instance, ADA.email)
    meanwhile(provider)
    const back = await browser.get((await browser.get(answer.headers.get('location')!)).headers.get('location')!)
    expect(back.status).toBe(401)
    expect(await back.text()).toContain('Your account is still there')
    expect(await count(instance, ADA.email)).toBe(1)
  })
})

describe('viewers', () => {
  test('a person of a domain on the list comes in without a code; others meet the door', async () => {
    const { provider, instance } = shared
    const owner = await instance.newActor('plus')
    const { site } = await instance.publishPage(owner, 'Ours')
    await instance.services.sites.patch(owner, site.id, { access_mode: 'viewers' })
    await instance.services.viewerSharing.add(owner, site.id, {
      named: [{ kind: 'domain', value: 'example.org' }],
      invite: false,
    })
    const host = `${site.slug}.localhost`
    const visit = async (): Promise<URL> => {
      const browser = openBrowser(instance)
      const query = new URLSearchParams({ site: site.id, host, next: '/plan?a=1' })
      let response = await browser.get(`${instance.url}/visit/oidc?${query}`)
      while (response.headers.get('location')?.startsWith('http')) {
        const next = new URL(response.headers.get('location')!)
        if (next.hostname === host) return next
        response = await browser.get(next.href)
      }
      throw new Error(`ended with ${response.status}`)
    }
    provider.signIn(somebody())
    const entry = await visit()
    expect(provider.asked.at(-1)!.searchParams.get('prompt')).toBe('none')
    expect(entry.pathname).toMatch(/^\/\.dropway\/enter\/[\w-]{20,}$/)
    expect(entry.search).toBe('?direct=1&next=%2Fplan%3Fa%3D1')
    const token = entry.pathname.split('/').at(-1)!
    const desk = instance.services.visitDesk
    const enter = () => desk.answer({ kind: 'enter', site_id: site.id, host, token }, '203.0.113.7')
    expect(await enter()).toMatchObject({ kind: 'admitted' })
    expect(await enter()).toMatchObject({ kind: 'refused' })
    provider.signIn({ ...somebody(), email: 'stranger@elsewhere.test' })
    expect((await visit()).pathname).toBe('/.dropway/visit')
    // Nobody is signed in there: asked again with its pages, which deny it, and the door asks for an address.
    provider.signIn(undefined)
    expect((await visit()).pathname).toBe('/.dropway/visit')
    expect(provider.asked.slice(-2).map((url) => url.searchParams.get('prompt'))).toEqual(['none', null])
    expect((await instance.sql`select 1 from users where email = 'stranger@elsewhere.test'`).length).toBe(0)
  })

  test('a host that is not the drop’s is never led to', async () => {
    const { instance } = shared
    const owner = await instance.newActor('plus')
    const { site } = await instance.publishPage(owner, 'Ours')
    await instance.services.sites.patch(owner, site.id, { access_mode: 'viewers' })
    const visit = { siteId: site.id, host: 'evil.test', next: '//evil.test', email: 'a@example.org' }
    const link = new URL(await instance.services.visitDesk.provedLink(visit))
    expect([link.hostname, link.searchParams.get('next')]).toEqual([`${site.slug}.localhost`, '/'])
  })
})
