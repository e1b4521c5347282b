import { describe, expect, test } from 'vitest'
import { slugProblem } from '../../../shared/hosts.ts'
import { randomSlug } from '../../../shared/readable-slug.ts'
import { routeRecordSchema } from '../../../shared/route-record.ts'
import {
  clockOf,
  pausedByEnd,
  swapForChosen,
  resumable,
  siteRouteOf,
  stateOf,
  type CappedSite,
  type SiteFacts,
} from '../../../control/drops/sites/rules.ts'

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
  stays_live: false,
  live_version_id: 'v_1',
  next_version_number: 2,
  expires_at: null,
  expired_at: null,
  clock_started_at: null,
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
  owner_seen_at: at(-3),
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

describe('when a drop ends', () => {
  const DAY_MS = 86_400_000
  const lifetimes = { anonymousLifetimeMs: 7 * DAY_MS, freeIdleLifetimeMs: 30 * DAY_MS }
  const anonymous = { org_id: null, plan: 'anonymous', owner_verified: false, owner_seen_at: null } as const
  const running = { expires_at: at(5), clock_started_at: at(-60) }

  test.each<[string, Partial<SiteFacts>, Date | null]>([
    ['anonymous: fixed, from the upload', anonymous, at(6)],
    ['anonymous: nothing moves it', { ...anonymous, expires_at: at(2), published_at: at(0) }, at(2)],
    ['free: from the last publish', { ...running, owner_seen_at: at(-20), published_at: at(-1) }, at(29)],
    ['free: from the last sign-in', { ...running, owner_seen_at: at(-1), published_at: at(-20) }, at(29)],
    ['free: from the moment it has a clock again', { owner_seen_at: at(-90), published_at: at(-90) }, at(30)],
    ['free: never earlier than promised', { ...running, owner_seen_at: at(-90), published_at: at(-90) }, at(5)],
    ['paid: never', { ...running, plan: 'plus' }, null],
    ['paused: never', { ...running, paused_at: at(-1) }, null],
    ['taken down: never', { ...running, taken_down_at: at(-1) }, null],
    ['not verified: never', { ...running, owner_verified: false }, null],
    ['nothing published yet: never', { live_version_id: null, published_at: null }, null],
  ])('%s', (_, facts, end) => {
    expect(clockOf({ ...live, ...facts }, NOW, lifetimes).expires_at).toEqual(end)
  })

  test('what has expired stays so until its clock moves', () => {
    const expired = { ...live, expires_at: at(-1), expired_at: at(-1), published_at: at(-31), owner_seen_at: at(-31) }
    expect(clockOf(expired, NOW, lifetimes)).toMatchObject({ expires_at: at(-1), expired_at: at(-1) })
    expect(clockOf({ ...expired, owner_seen_at: at(0) }, NOW, lifetimes)).toMatchObject({
      expires_at: at(30),
      expired_at: null,
    })
  })
})

describe('drops and the cap', () => {
  const drop = (id: string, facts: Partial<CappedSite> = {}): CappedSite => ({
    id,
    paused: false,
    empty: false,
    chosen: false,
    publishedAt: Number(id.slice(1)),
    ...facts,
  })

  test.each([
    ['the latest published stay', [drop('s1'), drop('s2'), drop('s3'), drop('s4')], ['s1']],
    ['chosen ones stay first', [drop('s1', { chosen: true }), drop('s2'), drop('s3'), drop('s4')], ['s2']],
    [
      'empty ones go first, however new',
      [drop('s1'), drop('s2'), drop('s8', { empty: true }), drop('s9', { empty: true })],
      ['s8'],
    ],
    ['within the cap nothing pauses', [drop('s1'), drop('s2'), drop('s3')], []],
    ['paused ones stay as they are', [drop('s1'), drop('s2'), drop('s3'), drop('s4', { paused: true })], []],
  ])('a plan ends: %s', (_, all, paused) => {
    expect(pausedByEnd(all, 3)).toEqual(paused)
  })

  test.each([
    ['as many as fit', [drop('s1', { paused: true }), drop('s2', { paused: true }), drop('s3'), drop('s4')], ['s2']],
    ['none when full', [drop('s1', { paused: true }), drop('s2'), drop('s3'), drop('s4')], []],
    ['none when over', [drop('s1', { paused: true }), drop('s2'), drop('s3'), drop('s4'), drop('s5')], []],
    [
      'content before empty',
      [drop('s1', { paused: true }), drop('s9', { paused: true, empty: true }), drop('s3'), drop('s4')],
      ['s1'],
    ],
  ])('room again: %s', (_, all, resumed) => {
    expect(resumable(all, 3)).toEqual(resumed)
  })
})

describe('an owner chooses', () => {
  const drop = (id: string, paused: boolean, chosen = false): CappedSite => ({
    id,
    paused,
    chosen,
    empty: false,
    publishedAt: Number(id.slice(1)),
  })

  test.each([
    ['nothing paused: nothing moves', [drop('s1', false, true), drop('s2', false)], { pause: [], resume: [] }],
    [
      'a paused one takes the place of the one published longest ago',
      [drop('s1', true, true), drop('s2', false), drop('s3', false), drop('s4', false)],
      { pause: ['s2'], resume: ['s1'] },
    ],
    [
      'who has more live than the cap keeps as many',
      [drop('s1', true, true), drop('s2', false), drop('s3', false), drop('s4', false), drop('s5', false)],
      { pause: ['s2'], resume: ['s1'] },
    ],
    [
      'live ones stay before paused ones that were not chosen',
      [drop('s1', false, true), drop('s2', false), drop('s3', false), drop('s9', true)],
      { pause: [], resume: [] },
    ],
  ])('%s', (_, all, moves) => expect(swapForChosen(all, 3)).toEqual(moves))
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
  for (let index = 0; index < 500; index++) expect(slugProblem(randomSlug())).toBeUndefined()
})
