import { describe, expect, test } from 'vitest'
import { slugProblem } from '../../../shared/hosts.ts'
import { routeRecordSchema } from '../../../shared/route-record.ts'
import { expiryOf, fitToCap, readableSlug, siteRouteOf, stateOf, type SiteFacts } from '../../../control/sites/rules.ts'

const NOW = Date.UTC(2026, 0, 15)
const at = (days: number): Date => new Date(NOW + days * 86_400_000)

const live: SiteFacts = {
  id: 'st_1',
  org_id: 'org_1',
  slug: 'calm-otter',
  name: '',
  title: '',
  password_hash: null,
  password_generation: 0,
  analytics: null,
  spa_fallback: false,
  in_gallery: false,
  live_version_id: 'v_1',
  next_version_number: 2,
  expires_at: null,
  expired_at: null,
  paused_at: null,
  taken_down_at: null,
  taken_down_reason: null,
  deleted_at: null,
  dns_target: 't-1',
  created_at: at(-1),
  updated_at: at(-1),
  published_at: at(-1),
  plan: 'free',
  owner_verified: true,
}
const hash = 'a'.repeat(64)

describe('what a visitor meets', () => {
  test.each([
    ['a published drop is live', {}, 'live'],
    ['nothing uploaded yet', { live_version_id: null }, 'reserved'],
    ['the owner has not verified the e-mail', { owner_verified: false }, 'unverified'],
    ['an anonymous drop has no owner to verify', { org_id: null, owner_verified: false }, 'live'],
    ['beyond the cap', { paused_at: at(-1) }, 'paused'],
    ['the clock has run out, no job has noticed yet', { expires_at: at(0) }, 'expired'],
    ['the clock has not run out', { expires_at: new Date(NOW + 1) }, 'live'],
    ['expired wins over paused', { expired_at: at(-1), paused_at: at(-1) }, 'expired'],
    ['removed wins over expired', { taken_down_at: at(-1), expired_at: at(-1) }, 'removed'],
    ['gone wins over everything', { deleted_at: at(-1), taken_down_at: at(-1), expired_at: at(-1) }, 'gone'],
  ] as const)('%s', (_, facts, state) => {
    expect(stateOf({ ...live, ...facts }, NOW)).toBe(state)
  })

  test('a deleted drop keeps no content in its route', () => {
    const route = siteRouteOf(
      { ...live, deleted_at: at(0) },
      [{ id: 'v_1', number: 1, manifest_hash: hash }],
      'sites.test',
      NOW,
    )
    expect(route).toMatchObject({ state: 'gone', manifest: null, versions: [] })
  })

  test('analytics and badge follow the plan, the password does not', () => {
    const settings = { analytics: { plausible: { domain: 'a.test' } }, password_hash: 'phc' }
    const free = siteRouteOf({ ...live, ...settings }, [], 'sites.test', NOW)
    const plus = siteRouteOf({ ...live, ...settings, plan: 'plus' }, [], 'sites.test', NOW)
    expect(free).toMatchObject({ badge: true, analytics: null, password: { hash: 'phc' } })
    expect(plus).toMatchObject({ badge: false, analytics: settings.analytics, password: { hash: 'phc' } })
  })

  test('the route meets the contract', () => {
    const route = siteRouteOf(live, [{ id: 'v_1', number: 1, manifest_hash: hash }], 'sites.test', NOW)
    expect(routeRecordSchema.parse({ ...route, v: 1, revision: 1 })).toMatchObject({
      host: 'calm-otter.sites.test',
      manifest: hash,
      version_number: 1,
    })
  })
})

test('clocks: fixed from the upload, idle from the sign-in, none when paid', () => {
  const lifetimes = { anonymousLifetimeMs: 7, freeIdleLifetimeMs: 30 }
  const times = { publishedAt: 1000, ownerSeenAt: 2000 }
  expect(expiryOf('anonymous', times, lifetimes)).toEqual(new Date(1007))
  expect(expiryOf('free', times, lifetimes)).toEqual(new Date(2030))
  expect(expiryOf('plus', times, lifetimes)).toBeNull()
})

describe('fitting drops to a cap', () => {
  const sites = (...paused: boolean[]) =>
    paused.map((isPaused, index) => ({ id: `s${index}`, paused: isPaused, empty: false, newestAt: index }))
  const empty = (...ids: string[]) =>
    ids.map((id, index) => ({ id, paused: false, empty: true, newestAt: 100 + index }))

  test.each([
    [
      'a plan that ends pauses the oldest',
      sites(false, false, false, false, false),
      3,
      true,
      { pause: ['s1', 's0'], resume: [] },
    ],
    [
      'a larger plan resumes them',
      sites(true, true, false, false, false),
      25,
      true,
      { pause: [], resume: ['s1', 's0'] },
    ],
    [
      'deleting one resumes the newest paused',
      sites(true, true, false, false),
      3,
      false,
      { pause: [], resume: ['s1'] },
    ],
    [
      'empty drops pause before those with content, however new they are',
      [...sites(false, false), ...empty('e0', 'e1')],
      3,
      true,
      { pause: ['e0'], resume: [] },
    ],
    [
      'with room for one again, content comes first',
      [...sites(true, false), ...empty('e0').map((site) => ({ ...site, paused: true }))],
      2,
      false,
      { pause: [], resume: ['s0'] },
    ],
    ['deleting one never pauses another', sites(false, false, false, false), 3, false, { pause: [], resume: [] }],
  ] as const)('%s', (_, all, cap, mayPause, expected) => {
    expect(fitToCap(all, cap, mayPause)).toEqual(expected)
  })
})

test.each([
  ['www', 'reserved'],
  ['t-0123456789abcdef', 'reserved'],
  ['t-0123456789abcdeg', undefined],
  ['t-0123456789abcde', undefined],
  ['xn--mnchen-3ya', 'prefixed'],
  ['12--slug', 'prefixed'],
  ['123--slug', 'prefixed'],
  ['slug--two', undefined],
  ['-slug', 'invalid'],
])('the slug %s: %s', (slug, problem) => {
  expect(slugProblem(slug)).toBe(problem)
})

test('a random slug is always a slug that may be used', () => {
  for (let index = 0; index < 500; index++) expect(slugProblem(readableSlug(Math.random))).toBeUndefined()
})
