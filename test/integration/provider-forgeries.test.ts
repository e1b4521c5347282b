/** Answers of a sign-in provider that were forged, broken or used before are refused. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newKey, signToken, type Lies } from '../support/openid-stand-in.ts'
import { ADA, openBrowser, somebody, useProvider } from '../support/provider-instance.ts'

const { shared } = useProvider()

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

  test(`${cases.length} of them, and then the truth is taken`, async () => {
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
