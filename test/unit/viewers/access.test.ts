/** What owners say of who may see a drop, in every spelling. */
import { expect, test } from 'vitest'
import {
  accessModeOf,
  accessOfForm,
  accessUntilSchema,
  defaultMode,
  momentAfter,
  requireAllowed,
  viewersOfText,
  wantedAccess,
} from '../../../control/drops/viewers/access.ts'
import { admissionEnd, codeOfText } from '../../../control/drops/visiting/rules.ts'
import { doorOf } from '../../../edge/gate/admissions.ts'
import { withoutToken } from '../../../shared/contracts/visit-desk.ts'

const NOW = Date.UTC(2026, 0, 15)

test.each([
  [null, 'public'],
  ['viewers', 'viewers'],
  ['$argon2id$v=19$…', 'password'],
])('%s means %s', (password_hash, mode) => {
  expect(accessModeOf({ password_hash })).toBe(mode)
})

test('a policy without public drops allows named viewers alone', () => {
  expect(() => requireAllowed('no_public', 'public')).toThrow(/no public drops/)
  expect(() => requireAllowed('no_public', 'password')).toThrow(/no public drops/)
  requireAllowed('no_public', 'viewers')
  requireAllowed('private_by_default', 'public')
  expect([defaultMode('open'), defaultMode('private_by_default'), defaultMode('no_public')]).toEqual([
    'public',
    'viewers',
    'viewers',
  ])
})

test.each([
  ['2026-12-24T18:00:00Z', true],
  ['2026-12-24T18:00:00.000+02:00', true],
  ['1970-01-01T00:00:00Z', true],
  ['9999-12-31T23:59:59Z', true],
  ['0000-01-01T00:00:00Z', false],
  ['0001-01-01T00:00:00Z', false],
  ['1969-12-31T23:59:59-00:01', true],
  ['1970-01-01T00:00:00+14:00', false],
  ['9999-12-31T23:59:59-14:00', false],
  ['2026-13-01T00:00:00Z', false],
  ['tomorrow', false],
])('the time %s can be kept: %s', (time, isKept) => {
  expect(accessUntilSchema.safeParse(time).success).toBe(isKept)
})

test('viewers are written as people write lists', () => {
  expect(viewersOfText('Ada@Example.com, @Example.org;example.net\nbob@x.example')).toEqual([
    { kind: 'email', value: 'ada@example.com' },
    { kind: 'domain', value: 'example.org' },
    { kind: 'domain', value: 'example.net' },
    { kind: 'email', value: 'bob@x.example' },
  ])
  for (const text of ['ada@', '@', 'com', 'a b@example.com', 'ada@exa mple.com', `${'x'.repeat(300)}.example`])
    expect(() => viewersOfText(text), text).toThrow()
  expect(() => viewersOfText(Array.from({ length: 101 }, (_, index) => `v${index}@x.example`).join())).toThrow(/100/)
})

test('naming viewers means that others do not see it', () => {
  expect(wantedAccess({}, NOW)).toBeUndefined()
  expect(wantedAccess({ viewers: ['ada@example.com'] }, NOW)?.mode).toBe('viewers')
  expect(wantedAccess({ guest_link: true }, NOW)?.mode).toBe('viewers')
  expect(wantedAccess({ access_mode: 'public' }, NOW)?.mode).toBe('public')
  expect(() => wantedAccess({ access_mode: 'public', guest_link: true }, NOW)).toThrow(/viewers/)
  expect(() => wantedAccess({ expires_in: '1d', access_until: null }, NOW)).toThrow(/either/)
  expect(wantedAccess({ expires_in: '1d' }, NOW)?.until).toEqual(new Date(NOW + 86_400_000))
  expect(wantedAccess({ access_until: null }, NOW)?.until).toBeNull()
})

test('a form says the same with texts, and a wrong one is refused', () => {
  const form = (fields: Record<string, string>) => accessOfForm(new Map(Object.entries(fields)))
  expect(form({ viewers: 'ada@example.com,@example.org', guest_link: 'true', invite: 'false', title: 'x' })).toEqual({
    viewers: ['ada@example.com', '@example.org'],
    guest_link: true,
    invite: false,
  })
  expect(form({ access_mode: '' })).toEqual({})
  const wrong: Record<string, string>[] = [
    { access_mode: 'secret' },
    { guest_link: 'yes' },
    { access_until: 'tomorrow' },
  ]
  for (const fields of wrong) expect(() => form(fields)).toThrow()
})

test.each(['', '7', '0d', '-1d', '1y', '99999999999d'])('"%s" is no duration', (text) => {
  expect(() => momentAfter(text, NOW)).toThrow(/duration/)
})

test('an admission ends with the soonest of what bounds it', () => {
  const end = (bounds: Parameters<typeof admissionEnd>[1]) => admissionEnd(NOW, bounds).getTime() - NOW
  expect(end({ serviceMs: 30, dropMs: null })).toBe(30)
  expect(end({ serviceMs: 30, dropMs: 10 })).toBe(10)
  expect(end({ serviceMs: 10, dropMs: 30 })).toBe(10)
  expect(end({ serviceMs: 30, dropMs: null, linkEnd: new Date(NOW + 5) })).toBe(5)
  expect(end({ serviceMs: 30, dropMs: null, linkEnd: null })).toBe(30)
})

test('blanks and hyphens in a code do not matter', () => {
  expect(codeOfText(' 012-345 ')).toBe('012345')
})

test.each([
  ['/', undefined],
  ['/.dropway/unlock', undefined],
  ['/.dropway/enter', undefined],
  ['/.dropway/visit', { kind: 'visit', next: null }],
  ['/.dropway/visit?x', { kind: 'visit', next: null }],
  ['/.dropway/visit?next=%2Fdocs', { kind: 'visit', next: '/docs' }],
  ['/.dropway/enter/abc', { kind: 'enter', token: 'abc', next: null, isDirect: false }],
  ['/.dropway/enter/abc?direct=1&next=%2Fa', { kind: 'enter', token: 'abc', next: '/a', isDirect: true }],
  ['/.dropway/enter/abc?next=%2Fa&direct=1', { kind: 'enter', token: 'abc', next: '/a', isDirect: false }],
  ['/.dropway/guest/a-b_c?next=%2Fdocs', { kind: 'guest', token: 'a-b_c', next: '/docs', isDirect: false }],
  ['/.dropway/guest/%2e%2e', { kind: 'guest', token: '', next: null, isDirect: false }],
])('the door at %s', (target, door) => {
  expect(doorOf(target)).toEqual(door)
})

test('logs show no secret of a link', () => {
  expect(withoutToken('/.dropway/guest/secret')).toBe('/.dropway/guest/…')
  expect(withoutToken('/.dropway/enter/secret')).toBe('/.dropway/enter/…')
  expect(withoutToken('/docs/guide')).toBe('/docs/guide')
})
