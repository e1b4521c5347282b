import { describe, expect, test } from 'vitest'
import { may, requirePermission, type Actor, type Permission, type Role } from '../../../control/ground/actor.ts'
import {
  hasAllFree,
  mayReach,
  parseName,
  permissionToManage,
  requireProvedToPromote,
  requireWholeAccount,
} from '../../../control/people/organisations/rules.ts'
import { plans, type PlanName } from '../../../control/ground/terms/plans.ts'

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
  expect(() => requirePermission('admin', 'rename')).not.toThrow()
  expect(() => requirePermission('member', 'rename')).toThrow(
    'Your role in this organisation is member; this needs owner or admin.',
  )
})

test.each([
  ['  Acme   &   Co ', 'Acme & Co'],
  ['Zoë & Söhne', 'Zoë & Söhne'],
  ['wwwhat', 'wwwhat'],
  ['x'.repeat(120), 'x'.repeat(120)],
])('%j is the name %j', (text, name) => expect(parseName(text)).toBe(name))

test.each(['', '   ', 'x'.repeat(121), 'a\u0000b', 'Win at https://x.test', 'WWW.x.test'])('%j is no name', (text) =>
  expect(() => parseName(text)).toThrow(/^name: /),
)

describe('whom a caller acts for', () => {
  const session: Actor['via'] = { kind: 'session', sessionId: 'ses_1', needsProof: false }
  const token: Actor['via'] = { kind: 'token', tokenId: 'tok_1' }
  const oauth: Actor['via'] = { kind: 'oauth', grantId: 'gr_1', scopes: ['mcp'] }

  test.each([
    ['a session', session, 'org_other', true],
    ['an API token', token, 'org_other', true],
    ['a connected app', oauth, 'org_own', true],
    ['a connected app', oauth, 'org_other', false],
  ])('%s may reach %3$s: %4$s', (_, via, wanted, reaches) => {
    expect(mayReach({ via, orgId: 'org_own' }, wanted)).toBe(reaches)
  })

  test('the account itself is not a connected app’s to change', () => {
    expect(() => requireWholeAccount({ via: session })).not.toThrow()
    expect(() => requireWholeAccount({ via: token })).not.toThrow()
    expect(() => requireWholeAccount({ via: oauth })).toThrow('one organisation only')
  })
})

test('admins manage members; only the owner manages admins and owners', () => {
  const managed = (by: Role): Role[] =>
    (['member', 'admin', 'owner'] as const).filter((role) => may(by, permissionToManage(role)))
  expect(managed('member')).toEqual([])
  expect(managed('admin')).toEqual(['member'])
  expect(managed('owner')).toEqual(['member', 'admin', 'owner'])
})

test('a session that has to prove itself makes members, and no admin', () => {
  const promoting = (role: 'admin' | 'member', needsProof: boolean) => () =>
    requireProvedToPromote({ via: { kind: 'session', sessionId: 'ss_1', needsProof } }, role)
  expect(promoting('member', true)).not.toThrow()
  expect(promoting('admin', false)).not.toThrow()
  expect(promoting('admin', true)).toThrow(/Prove that it is you/)
})

test('three free organisations are all that someone may own; paid ones do not count', () => {
  const paid = Object.keys(plans).filter((plan) => plan !== 'free') as PlanName[]
  const owned = (free: number) => [...paid, ...Array<PlanName>(free).fill('free')].map((plan) => ({ plan }))
  expect([0, 2, 3, 4].map((free) => hasAllFree(owned(free)))).toEqual([false, false, true, true])
})
