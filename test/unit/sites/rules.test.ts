import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { slugProblem } from '../../../shared/http/hosts.ts'
import { randomSlug } from '../../../shared/values/readable-slug.ts'
import { routeRecordSchema } from '../../../shared/contracts/route-record.ts'
import {
  cardOf,
  cardSource,
  clockOf,
  closedRouteOf,
  dayOf,
  pausedByEnd,
  redirectRouteOf,
  resumableDrops,
  siteRouteOf,
  sortSlugs,
  stateOf,
  swapForChosen,
  UNSET,
  type CappedSite,
  type HeldSlug,
  type SiteFacts,
} from '../../../control/drops/sites/rules.ts'

const NOW = Date.UTC(2026, 0, 15)
const at = (days: number): Date => new Date(NOW + days * 86_400_000)

const live: SiteFacts = {
  ...UNSET,
  id: 'st_1',
  org_id: 'org_1',
  slug: 'calm-otter',
  name: '',
  access_until: null,
  live_version_id: 'v_1',
  next_version_number: 2,
  expires_at: null,
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
    ['a job has noticed, and the clock was since set forward', { expires_at: at(1), expired_at: at(-1) }, 'expired'],
    ['nothing uploaded wins over not verified', { live_version_id: null, owner_verified: false }, 'reserved'],
    ['paused wins over nothing uploaded', { live_version_id: null, paused_at: at(-1) }, 'paused'],
    ['the clock has not run out', { expires_at: new Date(NOW + 1) }, 'live'],
    ['the owner wanted it seen until now', { access_until: at(0) }, 'expired'],
    ['the owner wants it seen a moment longer', { access_until: new Date(NOW + 1) }, 'live'],
    ['nothing uploaded wins over a time that is over', { live_version_id: null, access_until: at(-1) }, 'reserved'],
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

  test('the edges learn the live version, all that are kept, and what the owner has set', () => {
    const versions = [
      { id: 'v_2', number: 2, manifest_hash: 'b'.repeat(64) },
      { id: 'v_1', number: 1, manifest_hash: hash },
    ]
    const settings = { expires_at: at(3), spa_fallback: true, password_hash: 'phc', password_generation: 4 }
    expect(siteRouteOf({ ...live, ...settings }, versions, 'sites.test', NOW)).toEqual({
      kind: 'site',
      host: 'calm-otter.sites.test',
      site_id: 'st_1',
      state: 'live',
      manifest: hash,
      version_number: 1,
      versions: [
        [2, 'b'.repeat(64)],
        [1, hash],
      ],
      expires_at: at(3).getTime(),
      password: { hash: 'phc', generation: 4 },
      spa_fallback: true,
      badge: true,
      analytics: null,
    })
    expect(siteRouteOf({ ...live, live_version_id: null }, [], 'sites.test', NOW)).toMatchObject({
      state: 'reserved',
      manifest: null,
      version_number: 0,
      expires_at: null,
      password: null,
    })
  })

  const shown = (facts: Partial<SiteFacts>, more: Parameters<typeof siteRouteOf>[4] = {}) =>
    siteRouteOf({ ...live, ...facts }, [{ id: 'v_1', number: 1, manifest_hash: hash }], 'sites.test', NOW, more)
  const named = [{ name: 'draft', version_number: 1 }]

  test.each<[string, Partial<SiteFacts>, boolean]>([
    ['a live drop', {}, true],
    ['a drop that has only previews', { live_version_id: null }, true],
    ['one whose owner has not verified', { live_version_id: null, owner_verified: false }, false],
    ['one without an owner', { live_version_id: null, owner_verified: false, org_id: null }, true],
    ['a live drop whose owner has not verified', { owner_verified: false }, true],
    ['a deleted one', { deleted_at: at(-1) }, false],
  ])('previews of %s: %3$s', (_, facts, areShown) => {
    const route = shown(facts, { named })
    expect(route.versions).toEqual(areShown ? [[1, hash]] : [])
    expect(route.names).toEqual(areShown ? [['draft', 1]] : undefined)
  })

  test('the edges learn who was let in no longer, also where not only viewers see a drop', () => {
    const ended: [string, number][] = [['ad_1', NOW]]
    const viewers = shown({ password_hash: 'viewers', access_requests: false }, { ended })
    expect(viewers.viewers).toEqual({ ended, asks: false })
    for (const password_hash of ['phc', null]) {
      const others = shown({ password_hash, password_generation: 4 }, { ended })
      expect(others).not.toHaveProperty('viewers')
      expect(others.review).toEqual({ generation: 4, ended })
      expect(shown({ password_hash, password_generation: 4 })).not.toHaveProperty('review')
    }
  })

  test('what an owner leaves as it is takes no room in a record', () => {
    const changed = { previews: 'members', llms_txt: false, ai: 'none' } as const
    expect(shown(changed)).toEqual({ ...shown({}), ...changed })
  })

  test.each([
    ['neither', null, null, null],
    ['its clock alone', at(3), null, at(3)],
    ['what the owner wants alone', null, at(2), at(2)],
    ['the clock first', at(1), at(2), at(1)],
    ['the owner’s wish first', at(3), at(2), at(2)],
  ])('a record ends with what comes first: %s', (_, expires_at, access_until, end) => {
    expect(shown({ expires_at, access_until }).expires_at).toBe(end?.getTime() ?? null)
  })

  test('files of former versions are served beside the version that they were put beside, and no other', () => {
    const served = { served_manifest_hash: 'c'.repeat(64), served_for: hash }
    expect(shown(served).manifest).toBe('c'.repeat(64))
    expect(shown({ ...served, served_for: 'd'.repeat(64) }).manifest).toBe(hash)
    expect(shown({ ...served, served_manifest_hash: null }).manifest).toBe(hash)
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

describe('the slugs of a drop', () => {
  const held = (slug: string, kind: HeldSlug['kind'], days?: number): HeldSlug => ({
    slug,
    kind,
    free_at: days === undefined ? null : at(days),
  })
  const slugs = [
    held('old', 'former', 3),
    held('now', 'current'),
    held('dead', 'tombstone', 5),
    held('older', 'former', 1),
  ]

  test('the current one serves, former ones lead to it while they cool down', () => {
    expect(sortSlugs(slugs, false, NOW)).toEqual({ serving: ['now'], redirecting: ['old', 'older'], retired: [] })
  })
  test('after the drop is deleted its last slug says so', () => {
    expect(sortSlugs(slugs, true, NOW).serving).toEqual(['now', 'dead'])
  })
  test('a former one is retired at the moment when others may take it', () => {
    expect(sortSlugs(slugs, false, at(1).getTime() - 1)).toMatchObject({ redirecting: ['old', 'older'], retired: [] })
    expect(sortSlugs(slugs, false, at(1).getTime())).toMatchObject({ redirecting: ['old'], retired: ['older'] })
    expect(sortSlugs(slugs, false, at(9).getTime())).toMatchObject({ redirecting: [], retired: ['old', 'older'] })
  })
  test('of many, the ten that were given up last still lead on', () => {
    const days = [7, 2, 12, 5, 9, 1, 11, 3, 8, 6, 10, 4]
    const { redirecting, retired } = sortSlugs(
      days.map((day) => held(`s${day}`, 'former', day)),
      false,
      NOW,
    )
    expect(redirecting).toEqual(['s12', 's11', 's10', 's9', 's8', 's7', 's6', 's5', 's4', 's3'])
    expect(retired).toEqual(['s2', 's1'])
  })
  test('a former one that is said to be nobody’s leads nowhere', () => {
    expect(sortSlugs([held('old', 'former')], false, NOW)).toEqual({ serving: [], redirecting: [], retired: ['old'] })
  })
  test('a former one leads to where the drop is now', () => {
    expect(redirectRouteOf('old', live, 'sites.test')).toEqual({
      kind: 'redirect',
      host: 'old.sites.test',
      to: 'calm-otter.sites.test',
    })
  })
  test('a host that is closed shows its page and nothing of a drop', () => {
    expect(closedRouteOf('a.test', 'st_1', 'removed')).toEqual({
      kind: 'site',
      host: 'a.test',
      site_id: 'st_1',
      state: 'removed',
      manifest: null,
      version_number: 0,
      versions: [],
      expires_at: null,
      password: null,
      spa_fallback: false,
      badge: false,
      analytics: null,
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
    ['deleted: never', { ...running, deleted_at: at(-1) }, null],
    ['an anonymous one that is paused has its time all the same', { ...anonymous, paused_at: at(-1) }, at(6)],
    [
      'free, never signed in, nothing published since: from its clock',
      { ...running, owner_seen_at: null, published_at: null, clock_started_at: at(-2) },
      at(28),
    ],
  ])('%s', (_, facts, end) => {
    expect(clockOf({ ...live, ...facts }, NOW, lifetimes).expires_at).toEqual(end)
  })

  test('a clock begins once, and is forgotten when there is none any more', () => {
    expect(clockOf(live, NOW, lifetimes).clock_started_at).toEqual(at(0))
    expect(clockOf({ ...live, ...running }, NOW, lifetimes).clock_started_at).toEqual(at(-60))
    expect(clockOf({ ...live, ...running, expired_at: at(-1), plan: 'plus' }, NOW, lifetimes)).toEqual({
      expires_at: null,
      expired_at: null,
      clock_started_at: null,
    })
  })

  test('what has expired stays so until its clock moves', () => {
    const expired = { ...live, expires_at: at(-1), expired_at: at(-1), published_at: at(-31), owner_seen_at: at(-31) }
    expect(clockOf(expired, NOW, lifetimes)).toMatchObject({ expires_at: at(-1), expired_at: at(-1) })
    expect(clockOf({ ...expired, owner_seen_at: at(0) }, NOW, lifetimes)).toMatchObject({
      expires_at: at(30),
      expired_at: null,
    })
    const now = at(-1).getTime()
    expect(clockOf(expired, now, lifetimes)).toMatchObject({ expires_at: at(-1), expired_at: at(-1) })
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
    [
      'of the chosen ones those with content, of those the latest',
      [
        drop('s9', { chosen: true, empty: true }),
        drop('s1', { chosen: true }),
        drop('s2', { chosen: true }),
        drop('s3', { chosen: true }),
      ],
      ['s9'],
    ],
    ['the one that was published longest ago goes', [drop('s3'), drop('s1'), drop('s4'), drop('s2')], ['s1']],
    ['paused ones stay as they are', [drop('s1'), drop('s2'), drop('s3'), drop('s4', { paused: true })], []],
  ])('a plan ends: %s', (_, all, paused) => {
    expect(pausedByEnd(all, 3)).toEqual(paused)
  })

  test.each([
    ['as many as fit', [drop('s1', { paused: true }), drop('s2', { paused: true }), drop('s3'), drop('s4')], ['s2']],
    ['none when full', [drop('s1', { paused: true }), drop('s2'), drop('s3'), drop('s4')], []],
    [
      'chosen ones first',
      [drop('s1', { paused: true, chosen: true }), drop('s2', { paused: true }), drop('s3'), drop('s4')],
      ['s1'],
    ],
    ['none when over', [drop('s1', { paused: true }), drop('s2'), drop('s3'), drop('s4'), drop('s5')], []],
    [
      'content before empty',
      [drop('s1', { paused: true }), drop('s9', { paused: true, empty: true }), drop('s3'), drop('s4')],
      ['s1'],
    ],
  ])('room again: %s', (_, all, resumed) => {
    expect(resumableDrops(all, 3)).toEqual(resumed)
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

  test('of any drops, no chosen one waits while another is live, and no place is lost', () => {
    const facts = fc.record({ paused: fc.boolean(), chosen: fc.boolean(), empty: fc.boolean(), publishedAt: fc.nat(5) })
    fc.assert(
      fc.property(fc.array(facts, { maxLength: 8 }), fc.nat(6), (list, cap) => {
        const all = list.map((site, index) => ({ ...site, id: `s${index}` }))
        const { pause, resume } = swapForChosen(all, cap)
        const live = all.filter((site) => (site.paused ? resume.includes(site.id) : !pause.includes(site.id)))
        const waiting = all.filter((site) => !live.includes(site))
        const before = all.filter((site) => !site.paused).length
        expect(live).toHaveLength(Math.min(all.length, Math.max(cap, before)))
        if (waiting.some((site) => site.chosen)) expect(live.every((site) => site.chosen)).toBe(true)
        // No one gives way to a drop that was not chosen.
        if (pause.length > 0)
          expect(all.filter(({ id }) => resume.includes(id)).every((site) => site.chosen)).toBe(true)
      }),
    )
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
  ['slug--two', 'prefixed'],
  ['-slug', 'invalid'],
])('the slug %s: %s', (slug, problem) => {
  expect(slugProblem(slug)).toBe(problem)
})

test('views are counted under the day of UTC', () => {
  expect([dayOf(NOW - 1), dayOf(NOW)]).toEqual(['2026-01-14', '2026-01-15'])
})

test('a random slug is always a slug that may be used', () => {
  for (let index = 0; index < 500; index++) expect(slugProblem(randomSlug())).toBeUndefined()
})

describe('a card', () => {
  const drawn: SiteFacts = { ...live, title: 'Figures', card: true, card_hash: 'ab'.repeat(32), card_size: 900 }
  const shown: SiteFacts = { ...drawn, card_source: cardSource(drawn) }

  test('stands in the record of a drop that everyone may see', () => {
    expect(cardOf(shown)).toEqual({ card: ['ab'.repeat(32), 900] })
    expect(siteRouteOf(shown, [], 'dropway.test', NOW).card).toEqual(['ab'.repeat(32), 900])
    expect(siteRouteOf(live, [], 'dropway.test', NOW)).not.toHaveProperty('card')
  })

  test.each<[string, Partial<SiteFacts>]>([
    ['that is not wished', { card: false }],
    ['that was not drawn', { card_hash: null }],
    ['whose size is not known', { card_size: null }],
    ['whose words stand elsewhere now', { title: 'Fig', name: 'ures' }],
    ['that could not be drawn', { card_hash: null, card_size: null }],
    ['with the title before', { title: 'Other figures' }],
    ['with the name before', { name: 'Other' }],
    ['with the address before', { slug: 'quiet-otter' }],
    ['of a drop with a password', { password_hash: '$scrypt$x' }],
    ['of a drop for viewers', { password_hash: 'viewers' }],
    ['of a drop without content', { live_version_id: null }],
    ['of a drop that is gone', { deleted_at: at(-1) }],
    ['of a drop that was taken down', { taken_down_at: at(-1) }],
    ['of a drop without an owner', { org_id: null }],
  ])('%s does not', (_what, change) => {
    expect(cardOf({ ...shown, ...change })).toEqual({})
  })
})
