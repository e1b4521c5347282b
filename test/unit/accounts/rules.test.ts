import { parseEmail } from '../../../control/ground/mail/address.ts'
import { describe, expect, test } from 'vitest'
import { currencyOf, resolveCountry } from '../../../control/people/organisations/countries.ts'
import { DUMMY_PASSWORD_HASH, passwordTag, requireGoodPassword } from '../../../control/people/accounts/rules.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'
import { hashPassword, verifyPassword } from '../../../shared/secrets/password.ts'

/** Labels of 63 characters, and what is left. */
const longDomain = (chars: number): string => `${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(chars - 128)}`

describe('e-mail addresses', () => {
  test.each([
    [' Ada@Example.COM ', 'ada@example.com'],
    ["o'brien+tag@mail.example.co.uk", "o'brien+tag@mail.example.co.uk"],
    ['a@xn--bcher-kva.example', 'a@xn--bcher-kva.example'],
    ['ada.b.lovelace@example.com', 'ada.b.lovelace@example.com'],
    // As long as RFC 5321 lets it be: 64 before the @, 254 in all.
    [`${'a'.repeat(64)}@${longDomain(189)}`, `${'a'.repeat(64)}@${longDomain(189)}`],
  ])('%j is taken as %j', (text, email) => {
    expect(parseEmail(text)).toBe(email)
  })

  test.each([
    '',
    'ada',
    'ada.example.com',
    `${'a'.repeat(64)}@${longDomain(190)}`,
    '@example.com',
    'ada@',
    'ada@localhost',
    'ada@exa mple.com',
    'ada@example..com',
    '.ada@example.com',
    'ada..b@example.com',
    'a@b@example.com',
    'ada@-example.com',
    'ada@example.com\r\nBcc: x@example.com',
    'Ada <ada@example.com>',
    '"ada"@example.com',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(20)}.com`,
  ])('%j is refused', (text) => {
    expect(() => parseEmail(text)).toThrow('not an e-mail address')
  })
})

describe('passwords', () => {
  test.each(['correct horse', 'äöüß€ñçéèà', '🔒🔑🗝️🛡️🧿🪬🎲🎯🎨🎭', 'x1!y'.repeat(64)])(
    '%j is good enough',
    (password) => {
      expect(() => requireGoodPassword(password, 'ada@example.com')).not.toThrow()
    },
  )

  test.each([
    '',
    'short one',
    'ab1!'.repeat(65),
    'Password123',
    'QWERTYUIOP',
    'aaaaaaaaaaaaaaa',
    'abababababab',
    'ada@example.com',
  ])('%j is refused', (password) => {
    expect(() => requireGoodPassword(password, 'ada@example.com')).toThrow(/^password: /)
  })

  test('the hash for unknown e-mails costs what a real one costs, and fits no password', async () => {
    const costOf = (phc: string) => phc.split('$').slice(1, 4)
    const lengths = (phc: string) => phc.split('$').map((part) => part.length)
    const real = await hashPassword('correct horse')
    expect(costOf(DUMMY_PASSWORD_HASH)).toEqual(costOf(real))
    expect(lengths(DUMMY_PASSWORD_HASH)).toEqual(lengths(real))
    expect(await verifyPassword('', DUMMY_PASSWORD_HASH)).toBe(false)
  })
})

test('a tag tells namesakes apart, and stays what the database says that it is', () => {
  const secrets = createSecrets('a secret of forty characters, for a test')
  const tagOf = (password: string, email = 'ada@example.com'): string => passwordTag(secrets, email, password)
  expect(tagOf('correct horse')).toBe('4zx')
  expect(tagOf('battery staple')).not.toBe(tagOf('correct horse'))
  expect(tagOf('correct horse', 'bob@example.com')).not.toBe(tagOf('correct horse'))
})

describe('country and currency', () => {
  test.each([
    [{ geo: 'GB', form: 'FR', acceptLanguage: 'de-DE' }, 'GB'],
    [{ geo: 'T1', form: 'fr', acceptLanguage: 'de-DE' }, 'FR'],
    [{ form: 'Atlantis', acceptLanguage: 'en,de-AT;q=0.9,en-US;q=0.8' }, 'AT'],
    [{ acceptLanguage: 'zh-Hant-TW' }, 'TW'],
    [{ acceptLanguage: 'de' }, 'US'],
    [{ acceptLanguage: 'x'.repeat(600) }, 'US'],
    [{}, 'US'],
  ])('%j resolves to %s', (hints, country) => {
    expect(resolveCountry(hints)).toBe(country)
  })

  test.each([
    ['DE', 'eur'],
    ['SE', 'eur'],
    ['GB', 'gbp'],
    ['US', 'usd'],
    ['JP', 'usd'],
  ])('%s pays in %s', (country, currency) => {
    expect(currencyOf(country)).toBe(currency)
  })
})
