import { may, requirePermission, type Permission } from '../../../control/ground/actor.ts'
import { expect, test } from 'vitest'
import { parseName } from '../../../control/people/organisations/rules.ts'

test.each<[Permission, string]>([
  ['publish', 'owner admin member'],
  ['read_members', 'owner admin member'],
  ['read_audit_log', 'owner admin'],
  ['manage_members', 'owner admin'],
  ['manage_admins', 'owner'],
  ['rename', 'owner admin'],
  ['manage_billing', 'owner'],
  ['transfer', 'owner'],
  ['delete', 'owner'],
])('%s: %s', (permission, roles) => {
  expect((['owner', 'admin', 'member'] as const).filter((role) => may(role, permission)).join(' ')).toBe(roles)
})

test('a refusal says what it would take', () => {
  expect(() => requirePermission('member', 'rename')).toThrow(
    'Your role in this organisation is member; this needs owner or admin.',
  )
})

test.each([
  ['  Acme   Ltd ', 'Acme Ltd'],
  ['Zoë & Söhne', 'Zoë & Söhne'],
])('%j is the name %j', (text, name) => expect(parseName(text)).toBe(name))

test.each(['', '   ', 'x'.repeat(121), 'a\u0000b', 'Win at https://x.test', 'www.x.test'])('%j is no name', (text) =>
  expect(() => parseName(text)).toThrow(/^name: /),
)
