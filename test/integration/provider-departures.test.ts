/** People who leave at the provider of sign-in, or log out there, are out here. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { subjectOf } from '../../control/drops/viewers/lists.ts'
import { newKey } from '../support/openid-stand-in.ts'
import { ADA, logOut, manySided, openBrowser, recheckAll, somebody, useProvider } from '../support/provider-instance.ts'

const { shared, startProvider, openInstance } = useProvider()

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

  test('are out however they came in, and come back by the provider alone', async () => {
    const world = await manySided(shared)
    const { instance, ada, withPassword, sessionOf } = world
    await world.comeByProvider()
    const session = await withPassword()
    const { site, subject, ended } = await world.openPrivateDrop()
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
    const world = await manySided(shared)
    const { ada, userId, sql } = world
    const renewed = { ...ada, sub: `${ada.sub}-again` }
    await world.comeByProvider()
    await world.comeByProvider(renewed)
    // The older id lapses after the newer one has come.
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
