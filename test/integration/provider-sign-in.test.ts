/** Signing in with OpenID Connect: who comes in, with which role, to whose private drops, and how an account is deleted. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { PASSWORD } from '../support/accounts.ts'
import type { OpenIdStandIn } from '../support/openid-stand-in.ts'
import {
  ADA,
  BASE_URL,
  openBrowser,
  recheckAll,
  somebody,
  useProvider,
  type ProvidedInstance,
} from '../support/provider-instance.ts'

const { shared, startProvider, openInstance } = useProvider()

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

describe('deleting an account where there are no passwords', () => {
  /** A person who is in, types their address and sends the form; resolves where the browser is led. */
  async function askToDelete(instance: ProvidedInstance, email: string) {
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
  const count = async (instance: ProvidedInstance, email: string): Promise<number> =>
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
