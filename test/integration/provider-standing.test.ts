/** What it means that nothing is left to ask the provider with, that a person logs out there, and that one was removed. */
import { describe, expect, test } from 'vitest'
import { commands } from '../../control/operations/admin/commands.ts'
import { subjectOf } from '../../control/drops/viewers/lists.ts'
import { logOut, manySided, recheckAll, useProvider } from '../support/provider-instance.ts'
import type { OpenIdStandIn } from '../support/openid-stand-in.ts'

const { shared, startProvider, openInstance } = useProvider()

/** A provider that gives an access token which is over at once, and nothing else to ask with. */
async function startForgetful(): Promise<OpenIdStandIn> {
  const provider = await startProvider()
  provider.withoutRefreshTokens()
  provider.lie({ tokens: (answer) => ({ ...answer, expires_in: 0 }) })
  return provider
}

describe('nothing is left to ask the provider with', () => {
  test('its sessions end, tokens rest; password, sessions by it and what was opened as a member stay', async () => {
    const provider = await startForgetful()
    const instance = await openInstance(provider)
    const world = await manySided({ provider, instance })
    const session = await world.withPassword()
    const { site, subject, ended } = await world.openPrivateDrop()
    const browser = await world.comeByProvider()
    expect(await browser.isWelcome()).toBe(true)
    await recheckAll(instance)
    expect([await browser.isWelcome(), await world.hasToken()]).toEqual([false, false])
    expect([await world.sessionOf(session), await ended()]).toEqual([true, []])
    expect(await world.sessionOf(await world.withPassword())).toBe(true)
    // The provider's own button at a private drop finds the member.
    expect(await subjectOf(instance.sql, site.id, world.ada.email)).toBe(subject)
    await world.comeByProvider()
    expect(await world.hasToken()).toBe(true)
  })

  test('who was removed under one id, and vouched for under another since, is not removed by that', async () => {
    const provider = await startProvider()
    const instance = await openInstance(provider)
    const world = await manySided({ provider, instance })
    const renewed = { ...world.ada, sub: `${world.ada.sub}-again` }
    await world.comeByProvider()
    await world.comeByProvider(renewed)
    await world.leave()
    expect(await world.hasToken()).toBe(true)
    provider.withoutRefreshTokens()
    provider.lie({ tokens: (answer) => ({ ...answer, expires_in: 0 }) })
    await world.comeByProvider(renewed)
    await recheckAll(instance)
    expect([await world.hasToken(), await world.sessionOf(await world.withPassword())]).toEqual([false, true])
  })
})

describe('who was removed', () => {
  const readmit = (instance: { services: object }, email: string) =>
    commands.get('readmit')!.run(instance.services as never, ['--email', email])

  test('is let in again by the operator, with what they had', async () => {
    const world = await manySided(shared)
    const { ended, subject } = await world.openPrivateDrop()
    await world.comeByProvider()
    await world.leave()
    await expect(world.withPassword()).rejects.toMatchObject({ code: 'provider_refused' })
    expect(await ended()).toEqual([subject])
    expect(await readmit(shared.instance, world.ada.email)).toEqual({ email: world.ada.email, user_id: world.userId })
    expect([await world.sessionOf(await world.withPassword()), await world.hasToken()]).toEqual([true, true])
    expect(await ended()).toEqual([])
    await recheckAll(shared.instance)
    expect(await world.hasToken()).toBe(true)
    const entries = await world.sql`select actor from audit_log
      where action = 'account.readmitted' and subject = ${world.userId}`
    expect([...entries]).toEqual([{ actor: 'operator' }])
    await expect(readmit(shared.instance, world.ada.email)).rejects.toThrow('was not removed')
    await expect(readmit(shared.instance, 'nobody@example.org')).rejects.toThrow('There is no account')
  })
})

describe('a logout at the provider is no removal', () => {
  test.each<[string, (provider: OpenIdStandIn) => void]>([
    ['access tokens', (provider) => provider.withoutRefreshTokens()],
    ['refresh tokens', (provider) => provider.withoutOfflineAccess()],
  ])('where %s are bound to its session', async (_, prepare) => {
    const provider = await startProvider()
    prepare(provider)
    provider.announceLogouts()
    const instance = await openInstance(provider)
    for (const named of ['sub', 'sid', 'both'] as const) {
      const world = await manySided({ provider, instance })
      const { sub } = world.ada
      const session = await world.withPassword()
      const browser = await world.comeByProvider()
      // Signed out here before: the logout names a session that we do not have.
      if (named === 'sid') await instance.sql`delete from sessions where provider_sid = ${`session of ${sub}`}`
      provider.endSession(sub)
      const claims = {
        ...(named === 'sid' ? {} : { sub }),
        ...(named === 'sub' ? {} : { sid: `session of ${sub}` }),
      }
      expect((await logOut(instance, provider.logoutToken(claims))).status).toBe(200)
      await recheckAll(instance)
      const outcome = [await browser.isWelcome(), await world.sessionOf(session), await world.hasToken()]
      expect(outcome, named).toEqual([false, true, true])
      expect(await world.sessionOf(await world.withPassword())).toBe(true)
    }
  })

  test.each<[string, (provider: OpenIdStandIn) => void, Record<string, string>]>([
    ['the refresh token is for offline access', (provider) => provider.announceLogouts(), {}],
    ['another session ended', (provider) => provider.withoutOfflineAccess(), { sid: 'another session' }],
  ])('and they are asked after further where %s', async (_, prepare, claims) => {
    const provider = await startProvider()
    prepare(provider)
    const instance = await openInstance(provider)
    const world = await manySided({ provider, instance })
    await world.comeByProvider()
    await logOut(instance, provider.logoutToken({ sub: world.ada.sub, ...claims }))
    await recheckAll(instance)
    expect([await world.hasToken(), provider.refreshes]).toEqual([true, 1])
    await world.leave()
    expect(await world.hasToken()).toBe(false)
  })
})

describe('a different person with the address of one who was removed', () => {
  test('gets the account, and nothing that the former person holds opens it', async () => {
    const world = await manySided(shared)
    const { instance, userId, sql } = world
    const { site, subject, ended } = await world.openPrivateDrop()
    await sql`insert into code_generators (user_id, sealed_secret, created_at, confirmed_at)
      values (${userId}, 'x', '2026-01-01', '2026-01-01')`
    await sql`insert into recovery_codes (user_id, code_hash) values (${userId}, ${`code of ${userId}`})`
    await sql`insert into passkeys (id, user_id, name, public_key, counter, created_at)
      values (${`passkey of ${userId}`}, ${userId}, 'Phone', decode('00', 'hex'), 0, '2026-01-01')`
    await world.comeByProvider()
    await world.leave()
    const hired = await world.comeByProvider({ ...world.ada, sub: `${world.ada.sub}-hired` })
    expect(await hired.isWelcome()).toBe(true)
    expect(await world.hasToken()).toBe(false)
    await expect(world.withPassword()).rejects.toMatchObject({ code: 'wrong_credentials' })
    for (const table of ['code_generators', 'recovery_codes', 'passkeys'])
      expect((await sql`select 1 from ${sql(table)} where user_id = ${userId}`).length, table).toBe(0)
    // Browsers of the former person stay outside; the new one is a member who comes in anew.
    expect(await ended()).toEqual([subject])
    const own = await subjectOf(sql, site.id, world.ada.email)
    expect([own?.startsWith(`${userId}.`), own === subject]).toEqual([true, false])
    const entries = await sql`select 1 from audit_log where action = 'account.access_ended' and subject = ${userId}`
    expect(entries.length).toBe(1)
    // Coming again, they keep what is theirs.
    const { orgId } = world
    const owner = { userId, orgId, emailVerified: true }
    const { token } = await instance.services.tokens.createFor(owner, { name: 'ci' })
    await world.comeByProvider({ ...world.ada, sub: `${world.ada.sub}-hired` })
    expect(await instance.services.access.tokenActor(token, '::1')).toBeDefined()
  })

  test('the same person under a second id, who was never removed, keeps everything', async () => {
    const world = await manySided(shared)
    await world.comeByProvider()
    await world.comeByProvider({ ...world.ada, sub: `${world.ada.sub}-second` })
    expect([await world.hasToken(), await world.sessionOf(await world.withPassword())]).toEqual([true, true])
  })
})
