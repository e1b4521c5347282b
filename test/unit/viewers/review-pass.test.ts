/** Passes of the review page: what the edge makes of what control sealed, held against the record and the time. */
import { describe, expect, test } from 'vitest'
import { createFraming } from '../../../edge/gate/review.ts'
import type { Arrival, Drop, ServedSite } from '../../../edge/context.ts'
import { revisionFloor } from '../../../shared/contracts/history.ts'
import { HOUR_MS, MINUTE_MS } from '../../../shared/running/clock.ts'
import {
  admitsReview,
  openAddressPass,
  openReviewPass,
  sealAddressPass,
  sealReviewPass,
  type AddressPass,
} from '../../../shared/secrets/review-pass.ts'
import { createSecrets } from '../../../shared/secrets/secrets.ts'

const NOW = Date.UTC(2026, 0, 15)
const secrets = createSecrets('a secret key for tests, 32 chars or more')
const pass: AddressPass = {
  siteId: 'st_1',
  subject: 'vw_1',
  isMember: false,
  generation: 3,
  history: 2,
  endsAt: NOW + 2 * MINUTE_MS,
  visitEndsAt: NOW + 4 * HOUR_MS,
}

const password = { hash: 'phc', generation: 3 }
const ofPublic = { site_id: 'st_1', revision: revisionFloor(2) + 7, password: null }
const others: [string, number][] = [['vw_other', NOW + HOUR_MS]]
const own: [string, number][] = [...others, ['vw_1', NOW + HOUR_MS]]
const MODES = {
  public: (ended: [string, number][], generation: number) =>
    ended.length === 0 ? ofPublic : { ...ofPublic, review: { generation, ended } },
  password: (ended: [string, number][], generation: number) => ({
    ...ofPublic,
    password: { ...password, generation },
    ...(ended.length === 0 ? {} : { review: { generation, ended } }),
  }),
  viewers: (ended: [string, number][], generation: number) => ({
    ...ofPublic,
    password: { ...password, generation },
    viewers: { ended },
  }),
}

describe.each(Object.entries(MODES))('in the mode %s', (_, route) => {
  test('a pass counts until it ends or is taken back', () => {
    expect(admitsReview(route([], 3), pass, NOW)).toBe(true)
    expect(admitsReview(route(others, 3), pass, NOW)).toBe(true)
    expect(admitsReview(route(own, 3), pass, NOW)).toBe(false)
    expect(admitsReview(route(others, 4), pass, NOW)).toBe(false)
    expect(admitsReview(route([], 3), pass, pass.endsAt)).toBe(false)
  })

  test.each([
    ['of another drop', { siteId: 'st_2' }],
    ['of a history that was set back', { history: 1 }],
  ])('a pass %s does not', (_kind, change) => {
    expect(admitsReview(route([], 3), { ...pass, ...change }, NOW)).toBe(false)
  })
})

test('neither of the two passes opens as the other, and nothing else opens', () => {
  const [address, visit] = [sealAddressPass(secrets, pass), sealReviewPass(secrets, pass)]
  expect(openAddressPass(secrets, address)).toEqual(pass)
  const { visitEndsAt: _, ...ofVisit } = pass
  expect(openReviewPass(secrets, visit)).toEqual(ofVisit)
  for (const text of [visit, '', address.slice(0, -4), 'x'.repeat(10_000)])
    expect(openAddressPass(secrets, text)).toBeUndefined()
  for (const text of [address, '', visit.slice(0, -4), 'x'.repeat(10_000)])
    expect(openReviewPass(secrets, text)).toBeUndefined()
})

test('a pass of the release before begins no visit that is longer than itself', () => {
  const sealed = secrets.seal(JSON.stringify(['st_1', 'vw_1', false, 3, 2, NOW + 9]), 'review-pass')
  expect(openAddressPass(secrets, sealed)).toMatchObject({ endsAt: NOW + 9, visitEndsAt: NOW + 9 })
})

describe('at the edge', () => {
  let nowMs = NOW
  const framing = createFraming({ secrets, clock: { now: () => nowMs } })
  const route = { ...ofPublic, password, kind: 'site' } as unknown as ServedSite
  const drop: Drop = { route, versionNumber: 1, isProtected: true, isPreview: false, isForMembers: false }
  const arrival = (target: string, cookie?: string): Arrival => ({
    method: 'GET',
    target,
    host: 'a.example',
    ip: '203.0.113.1',
    header: (name) => (name === 'cookie' ? cookie : undefined),
  })
  const at = (sealed: string) => framing.ofTarget(drop, arrival(`/?dropway-review=${sealed}`))
  const cookieOf = (shown: Drop | undefined): string => shown!.frameCookie!.split(';')[0]!

  test('whatever is sent again and again, nobody is in later than control said', () => {
    nowMs = NOW
    const address = sealAddressPass(secrets, pass)
    const first = at(address)
    expect(first?.frameCookie).toContain('Max-Age=14400;')
    const cookie = cookieOf(first)
    nowMs = NOW + MINUTE_MS
    expect(at(address)?.frameCookie).toContain('Max-Age=14340;')
    nowMs = NOW + 3 * HOUR_MS
    for (const sealed of [
      address,
      cookie.split('=')[1]!,
      sealReviewPass(secrets, { ...pass, endsAt: pass.visitEndsAt }),
    ])
      expect(at(sealed)).toBeUndefined()
    expect(framing.ofCookie(drop, arrival('/', cookie))).toBeDefined()
    nowMs = pass.visitEndsAt
    expect(framing.ofCookie(drop, arrival('/', cookie))).toBeUndefined()
    expect(framing.passOf(route, cookie.split('=')[1]!)).toBeUndefined()
  })

  test('the pass of an address is no cookie, and opens no stream', () => {
    nowMs = NOW
    const address = sealAddressPass(secrets, pass)
    expect(framing.ofCookie(drop, arrival('/', `__Host-dropway-frame=${address}`))).toBeUndefined()
    expect(framing.passOf(route, address)).toBeUndefined()
  })
})
