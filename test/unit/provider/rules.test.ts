import { describe, expect, test } from 'vitest'
import { readControlConfig } from '../../../control/ground/config.ts'
import {
  givesOffline,
  groupsOf,
  howToCheck,
  logoutOf,
  personOf,
  roleOfGroups,
} from '../../../control/people/provider/rules.ts'

describe('who it is', () => {
  const claims = { sub: 'a', email: 'a@example.com', email_verified: true }
  test('from the ID token, else from userinfo, which never overrules it', () => {
    expect(personOf(claims)).toEqual({
      kind: 'person',
      person: { subject: 'a', email: 'a@example.com', groups: [], sid: undefined },
    })
    expect(personOf({ sub: 'a' }, { ...claims, groups: ['x'] })).toMatchObject({ person: { groups: ['x'] } })
    expect(personOf(claims, { ...claims, email: 'b@example.com' })).toMatchObject({
      person: { email: 'a@example.com' },
    })
    expect(personOf({ ...claims, email_verified: false }, claims).kind).toBe('refused')
  })

  test.each([
    [{}, /who you are/],
    [{ sub: '' }, /who you are/],
    [{ sub: 7, email: 'a@example.com', email_verified: true }, /who you are/],
    [{ sub: 'x'.repeat(256), email: 'a@example.com', email_verified: true }, /who you are/],
    [{ sub: 'a', email_verified: true }, /your e-mail address/],
    [{ sub: 'a', email: '', email_verified: true }, /your e-mail address/],
    [{ sub: 'a', email: 'a@example.com' }, /not verified/],
    [{ sub: 'a', email: 'a@example.com', email_verified: 'true' }, /not verified/],
    [{ sub: 'a', email: 'a@example.com', email_verified: 1 }, /not verified/],
  ])('%j is refused', (given, why) => {
    const found = personOf(given)
    expect(found).toMatchObject({ kind: 'refused' })
    if (found.kind === 'refused') expect(found.why).toMatch(why)
  })
})

test.each([
  [undefined, []],
  ['staff', ['staff']],
  [
    ['a', 7, 'b', null],
    ['a', 'b'],
  ],
  [{ a: 1 }, []],
])('groups %j', (claim, expected) => {
  expect(groupsOf(claim)).toEqual(expected)
})

test.each([
  [[], undefined],
  [['other'], undefined],
  [['staff'], 'member'],
  [['leads'], 'admin'],
  [['staff', 'leads'], 'admin'],
  [['constructor'], undefined],
])('the role of %j is %s', (groups, expected) => {
  const roles = new Map([['staff', 'member'] as const, ['leads', 'admin'] as const])
  expect(roleOfGroups(groups, roles)).toBe(expected)
})

test.each([
  [{ refreshToken: 'r', accessEndsAt: 5 }, false, 'refresh'],
  [{ refreshToken: 'r', accessEndsAt: 5 }, true, 'refresh'],
  [{ refreshToken: undefined, accessEndsAt: 50 }, true, 'userinfo'],
  [{ refreshToken: undefined, accessEndsAt: 10 }, true, 'trust'],
  [{ refreshToken: undefined, accessEndsAt: null }, true, 'trust'],
  [{ refreshToken: undefined, accessEndsAt: 50 }, false, 'userinfo'],
  [{ refreshToken: undefined, accessEndsAt: null }, false, 'userinfo'],
  [{ refreshToken: undefined, accessEndsAt: 10 }, false, 'run_out'],
] as const)('%j is asked after, logouts told: %s: %s', (grant, tells, expected) => {
  expect(howToCheck({ accessToken: 'a', ...grant }, 10, tells)).toBe(expected)
})

test.each([
  [{ refresh_token: 'r', scope: 'openid offline_access' }, [], true],
  [{ refresh_token: 'r', scope: 'openid' }, ['openid', 'offline_access'], false],
  [{ refresh_token: 'r' }, ['openid', 'offline_access'], true],
  [{ refresh_token: 'r' }, ['openid'], false],
  [{ scope: 'openid offline_access' }, ['openid', 'offline_access'], false],
])('%j after %j was asked for gives offline access: %s', (answer, asked, expected) => {
  expect(givesOffline(answer, asked)).toBe(expected)
})

test.each([
  [{ sub: 'a' }, { subject: 'a' }],
  [{ sid: 's' }, { sid: 's' }],
  [
    { sub: 'a', sid: 's' },
    { subject: 'a', sid: 's' },
  ],
  [{ sub: '', sid: 7 }, undefined],
  [{}, undefined],
  [{ sub: 'a', nonce: 'n' }, undefined],
])('a logout of %j names %j', (claims, expected) => {
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  expect(logoutOf({ events, ...claims })).toEqual(expected)
  expect(logoutOf(claims)).toBeUndefined()
})

describe('settings', () => {
  const read = (env: Record<string, string>) =>
    readControlConfig({ SECRET_KEY: 'a test key of at least thirty-two characters', ...env })
  const good = { OIDC_ISSUER: 'https://id.example.com/realms/a', OIDC_CLIENT_ID: 'dropway' }

  test('a provider, with its groups', () => {
    const { provider } = read({ ...good, OIDC_GROUPS: 'staff=member, cn=leads,dc=x=admin'.replace(',dc', ' dc') })
    expect(provider).toMatchObject({ issuer: good.OIDC_ISSUER, name: 'id.example.com', recheckMs: 45_000 })
    expect([...provider!.groups]).toEqual([
      ['staff', 'member'],
      ['cn=leads dc=x', 'admin'],
    ])
    expect(read({}).provider).toBeUndefined()
  })

  test.each([
    [{ OIDC_CLIENT_ID: 'x' }, /OIDC_ISSUER must be set with OIDC_CLIENT_ID/],
    [{ OIDC_ISSUER: 'https://id.example.com' }, /OIDC_CLIENT_ID must be set with OIDC_ISSUER/],
    [{ ...good, OIDC_ISSUER: 'http://id.example.com' }, /OIDC_ISSUER must be an https address/],
    [{ ...good, OIDC_ISSUER: 'id.example.com' }, /OIDC_ISSUER must be an https address/],
    [{ ...good, OIDC_GROUPS: 'staff' }, /OIDC_GROUPS must list "group=admin"/],
    [{ ...good, OIDC_GROUPS: 'staff=owner' }, /OIDC_GROUPS must list/],
    [{ ...good, OIDC_RECHECK: '2m' }, /OIDC_RECHECK must be a minute at most/],
    [{ PASSWORD_SIGN_IN: 'off' }, /PASSWORD_SIGN_IN=off needs OIDC_ISSUER/],
  ])('%j is refused', (env, message) => {
    expect(() => read(env)).toThrow(message)
  })
})
