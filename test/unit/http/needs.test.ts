/** What each credential suffices for: every need with every reach. */
import { expect, test } from 'vitest'
import {
  EVERYTHING,
  reaches,
  reachOf,
  suffices,
  type CredentialNeed,
  type Reach,
  requirePreview,
  requireProved,
  requireProvedToGive,
} from '../../../control/ground/actor.ts'

const NEEDS: readonly CredentialNeed[] = ['nothing', 'read', 'publish', 'manage', 'read-people', 'people', 'session']
const token = { kind: 'token', tokenId: 'tok' } as const
const session = { kind: 'session', sessionId: 'ses', needsProof: false } as const

test.each<[string, Reach, typeof token | typeof session, readonly CredentialNeed[]]>([
  ['a session', EVERYTHING, session, NEEDS],
  ['a token without scopes', EVERYTHING, token, NEEDS.slice(0, -1)],
  ['a token for one drop', reachOf(null, ['st_1']), token, ['nothing', 'read', 'publish', 'manage', 'read-people']],
  ['read', reachOf(['read']), token, ['nothing', 'read', 'read-people']],
  ['publish', reachOf(['publish']), token, ['nothing', 'read', 'publish', 'read-people']],
  ['manage', reachOf(['manage']), token, ['nothing', 'read', 'publish', 'manage', 'read-people']],
  ['no scope of the list', reachOf([], null), token, ['nothing', 'read', 'read-people']],
  ['no scope, and no drop named', reachOf(null, null), token, NEEDS.slice(0, -1)],
  ['publish before read', reachOf(['publish', 'read']), token, ['nothing', 'read', 'publish', 'read-people']],
])('%s', (_, reach, via, expected) => {
  expect(NEEDS.filter((need) => suffices({ reach, via }, need))).toEqual(expected)
})

test('a workflow reads and publishes, and hears nothing of people', () => {
  const run = { provider: 'github', issuer: '', repository: '', workflow: '', commit: '', actor: '' } as const
  const via = { kind: 'publisher', publisherId: 'pub', run } as const
  const reach = reachOf(['publish'], ['st_1'])
  expect(NEEDS.filter((need) => suffices({ reach, via }, need))).toEqual(['nothing', 'read', 'publish'])
})

test('a credential for one preview publishes to that one, and does nothing else', () => {
  const reach = { ...reachOf(['publish'], ['st_1']), preview: 'pr-7' }
  expect(NEEDS.filter((need) => suffices({ reach, via: token }, need))).toEqual(['nothing'])
  expect(NEEDS.filter((need) => suffices({ reach, via: token }, need, true))).toEqual([
    'nothing',
    'read',
    'publish',
    'read-people',
  ])
  expect(() => requirePreview({ reach }, 'pr-7')).not.toThrow()
  for (const other of ['pr-8', undefined])
    expect(() => requirePreview({ reach }, other)).toThrow('This token is for the preview pr-7, and for nothing else.')
  expect(() => requirePreview({ reach: EVERYTHING }, 'pr-8')).not.toThrow()
})

test.each([
  ['a session that has to prove itself', { ...session, needsProof: true }, false],
  ['a session that has, or need not', session, true],
  ['a token, which can prove nothing', { ...token, needsProof: true }, true],
])('what cannot be undone, by %s', (_, via, isAllowed) => {
  const attempt = (): void => requireProved({ via })
  if (isAllowed) expect(attempt).not.toThrow()
  else expect(attempt).toThrow(/Prove that it is you/)
})

test.each<[Reach['scope'], boolean]>([
  ['everything', false],
  ['manage', false],
  ['publish', true],
  ['read', true],
])('a session that has to prove itself gives away a credential for %s: %s', (scope, isAllowed) => {
  const attempt = (): void => requireProvedToGive({ via: { ...session, needsProof: true } }, { scope })
  if (isAllowed) expect(attempt).not.toThrow()
  else expect(attempt).toThrow(/Prove that it is you/)
  expect(() => requireProvedToGive({ via: session }, { scope })).not.toThrow()
})

test('a credential reaches the drops that it names, or all', () => {
  expect(reaches(EVERYTHING, 'st_1')).toBe(true)
  expect(reaches(reachOf(['read'], ['st_1']), 'st_1')).toBe(true)
  expect(reaches(reachOf(['read'], ['st_1']), 'st_2')).toBe(false)
})
