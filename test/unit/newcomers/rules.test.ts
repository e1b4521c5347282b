import { describe, expect, test } from 'vitest'
import { parseSignUp, showsSignUp, type SignUpPolicy } from '../../../control/ground/terms/sign-up.ts'
import { readControlConfig } from '../../../control/ground/config.ts'
import { closedInWords, mayChangeTo, welcomeOf, type Invited } from '../../../control/people/newcomers/rules.ts'

const DOMAINS: SignUpPolicy = { kind: 'domains', domains: ['example.com', 'acme.test'] }

test.each<[string, SignUpPolicy | undefined]>([
  ['open', { kind: 'open' }],
  ['Closed', { kind: 'closed' }],
  [' invited ', { kind: 'invited' }],
  ['@example.com', { kind: 'domains', domains: ['example.com'] }],
  ['@Example.COM, @acme.test,@example.com', DOMAINS],
  ['example.com', undefined],
  ['@', undefined],
  ['@example', undefined],
  ['@example.com,open', undefined],
  ['@exa mple.com', undefined],
  ['ada@example.com', undefined],
  ['yes', undefined],
])('SIGNUP=%j', (text, expected) => {
  expect(parseSignUp(text)).toEqual(expected)
})

describe('who is welcome', () => {
  const rows: [SignUpPolicy['kind'], string, Invited, boolean][] = [
    ['open', 'a@anywhere.test', 'by_nobody', true],
    ['invited', 'a@anywhere.test', 'by_nobody', false],
    ['invited', 'a@anywhere.test', 'by_organisation', true],
    ['invited', 'a@anywhere.test', 'by_operator', true],
    ['closed', 'a@anywhere.test', 'by_nobody', false],
    ['closed', 'a@anywhere.test', 'by_organisation', false],
    ['closed', 'a@anywhere.test', 'by_operator', true],
    ['domains', 'a@example.com', 'by_nobody', true],
    ['domains', 'a@EXAMPLE.com', 'by_nobody', true],
    ['domains', 'a@acme.test', 'by_nobody', true],
    ['domains', 'a@mail.example.com', 'by_nobody', false],
    ['domains', 'a@notexample.com', 'by_nobody', false],
    ['domains', 'a@example.com.evil.test', 'by_nobody', false],
    ['domains', '"a@example.com"@evil.test', 'by_nobody', false],
    ['domains', 'a@evil.test', 'by_organisation', false],
    ['domains', 'a@evil.test', 'by_operator', true],
  ]
  test.each(rows)('%s, %s, %s: %s', (kind, email, invited, isWelcome) => {
    const policy = kind === 'domains' ? DOMAINS : { kind }
    expect(welcomeOf(policy, email, invited).isWelcome).toBe(isWelcome)
  })
})

test('an address may be changed to one of the domains only, so that the change is no way round them', () => {
  expect(mayChangeTo(DOMAINS, 'a@example.com')).toBe(true)
  expect(mayChangeTo(DOMAINS, 'a@evil.test')).toBe(false)
  expect(mayChangeTo({ kind: 'closed' }, 'a@evil.test')).toBe(true)
})

test('a refusal says who may have an account', () => {
  expect(closedInWords(DOMAINS)).toBe('Accounts here are for addresses at @example.com and @acme.test.')
  expect(closedInWords({ kind: 'domains', domains: ['a.test'] })).toBe('Accounts here are for addresses at @a.test.')
  const three = closedInWords({ kind: 'domains', domains: ['a.test', 'b.test', 'c.test'] })
  expect(three).toBe('Accounts here are for addresses at @a.test, @b.test and @c.test.')
  expect(closedInWords({ kind: 'invited' })).toMatch(/by invitation/)
  expect(closedInWords({ kind: 'closed' })).toMatch(/closed/)
})

test('strangers find a form only where it may let them in', () => {
  expect([{ kind: 'open' } as const, DOMAINS].every(showsSignUp)).toBe(true)
  expect([{ kind: 'invited' } as const, { kind: 'closed' } as const].some(showsSignUp)).toBe(false)
})

describe('settings', () => {
  const read = (env: Record<string, string>) =>
    readControlConfig({ SECRET_KEY: 'a test key of at least thirty-two characters', ...env })

  test('a wrong SIGNUP stops the start and says what it may be', () => {
    expect(() => read({ SIGNUP: 'private' })).toThrow(/SIGNUP must be open, invited, closed, or domains such as @ex/)
    expect(() => read({ ANONYMOUS: 'no' })).toThrow(/ANONYMOUS must be one of on, off/)
  })

  test.each([
    [{}, true],
    [{ ANONYMOUS: 'off' }, false],
    [{ ANONYMOUS_PER_HOUR: '0' }, false],
    [{ ANONYMOUS_STORAGE_MB: '0' }, false],
    [{ ANONYMOUS_NETWORK_STORAGE_MB: '0' }, false],
  ])('%j: strangers may publish: %s', (env, expected) => {
    expect(read(env).allowsAnonymous).toBe(expected)
  })
})
