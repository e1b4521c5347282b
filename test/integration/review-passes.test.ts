/** Passes of the review page end with what they were given for: a link, a viewer, a membership, the time of a visit. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Reviewer } from '../../control/drops/threads/reviewer.ts'
import type { SiteFacts } from '../../control/drops/sites/rules.ts'
import type { Actor } from '../../control/ground/actor.ts'
import { MAX_ENDED_ADMISSIONS } from '../../shared/contracts/admission.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../shared/running/clock.ts'
import {
  admitsReview,
  openAddressPass,
  openReviewPass,
  REVIEW_PARAMETER,
  type ReviewPass,
} from '../../shared/secrets/review-pass.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'

let world: ComposedServices
let nowMs = Date.UTC(2026, 2, 1, 12)
let nextSlug = 0

beforeAll(async () => {
  world = await composeServices({}, { now: () => nowMs })
})
afterAll(() => world?.close())

type Mode = 'public' | 'password' | 'viewers'
const MODES: Record<Mode, { access_mode: Mode; password?: string }> = {
  public: { access_mode: 'public' },
  password: { access_mode: 'password', password: 'open sesame' },
  viewers: { access_mode: 'viewers' },
}

interface Shared {
  readonly owner: Actor
  readonly id: string
  readonly slug: string
  facts(): Promise<SiteFacts>
  turnTo(mode: Mode): Promise<void>
}

async function share(mode: Mode): Promise<Shared> {
  const owner = await world.newTeam(await world.newActor(), 'business')
  const { site } = await world.publishPage(owner, 'Plan', `passes-${nextSlug++}`)
  const shared: Shared = {
    owner,
    id: site.id,
    slug: site.slug,
    facts: async () => (await world.services.sites.find(world.sql, site.id))!,
    turnTo: async (wanted) => void (await world.services.sites.patch(owner, site.id, MODES[wanted])),
  }
  await shared.turnTo(mode)
  return shared
}

/** Someone who reviews the drop, and how they are taken out. */
interface Person {
  readonly reviewer: Reviewer
  remove(): Promise<unknown>
}

const PEOPLE: Record<string, (drop: Shared, expiresAt?: Date) => Promise<Person>> = {
  async guest({ owner, id, facts }, expiresAt) {
    const link = await world.services.viewerSharing.addLink(owner, id, { role: 'comment', expiresAt })
    const person = { kind: 'guest', id: link.id, key: 'k', name: 'Ada', role: 'comment' } as const
    const reviewer = { ...person, actor: undefined, email: undefined, ip: '203.0.113.8', endsAt: expiresAt?.getTime() }
    return {
      reviewer: { ...reviewer, site: await facts() },
      remove: () => world.services.viewerSharing.removeLink(owner, id, link.id),
    }
  },
  async viewer({ owner, id, facts }) {
    const named = [{ kind: 'email', value: 'viewer@example.com' }] as const
    const { value } = await world.services.viewerSharing.add(owner, id, { named, role: 'comment', invite: false })
    const person = { kind: 'viewer', id: value[0]!.id, key: 'k', name: 'Bob', role: 'comment' } as const
    return {
      reviewer: { ...person, actor: undefined, email: 'viewer@example.com', ip: '203.0.113.8', site: await facts() },
      remove: () => world.services.viewerSharing.remove(owner, id, value[0]!.id),
    }
  },
  async member({ owner, id }) {
    const { userId, email } = await world.newActor()
    const at = new Date(nowMs)
    await world.sql`
      insert into memberships (org_id, user_id, role, created_at) values (${owner.orgId}, ${userId}, 'member', ${at})`
    return {
      reviewer: await world.services.reviewers.member({ ...owner, userId, email, role: 'member' }, id),
      remove: () => world.services.organisations.removeMember(owner, owner.orgId, userId),
    }
  },
}

async function passesOf(drop: Shared, { reviewer }: Person): Promise<{ address: ReviewPass; visit: ReviewPass }> {
  const { src, pass } = await world.services.reviewFrames.of(await drop.facts(), reviewer, { page: '/' })
  const address = openAddressPass(world.services.secrets, new URL(src).searchParams.get(REVIEW_PARAMETER)!)!
  const visit = openReviewPass(world.services.secrets, pass)!
  expect(address.visitEndsAt).toBe(visit.endsAt)
  return { address, visit }
}
const isIn = async ({ slug }: Shared, pass: ReviewPass): Promise<boolean> =>
  admitsReview(await world.routeOf(slug), pass, nowMs)

describe.each(Object.keys(MODES) as Mode[])('a drop in the mode %s', (mode) => {
  test.each(Object.keys(PEOPLE))('a %s who is removed is out at once, and gets no further pass', async (kind) => {
    const drop = await share(mode)
    const person = await PEOPLE[kind]!(drop)
    const { address, visit } = await passesOf(drop, person)
    expect([await isIn(drop, address), await isIn(drop, visit)]).toEqual([true, true])
    await person.remove()
    expect([await isIn(drop, address), await isIn(drop, visit)]).toEqual([false, false])
    await expect(passesOf(drop, person)).rejects.toMatchObject({ status: 401 })
  })

  test('a pass that was given in another mode is taken back in this one', async () => {
    const drop = await share('viewers')
    const person = await PEOPLE['member']!(drop)
    const { visit } = await passesOf(drop, person)
    await drop.turnTo('public')
    await drop.turnTo('viewers')
    await drop.turnTo(mode)
    await person.remove()
    expect(await isIn(drop, visit)).toBe(false)
  })

  test('those are out, too, who were removed with so many that a new generation began', async () => {
    const drop = await share(mode)
    const person = await PEOPLE['guest']!(drop)
    const { visit } = await passesOf(drop, person)
    await person.remove()
    const later = new Date(nowMs + HOUR_MS)
    await world.sql`
      insert into admissions (site_id, subject, until, ended_at)
      select ${drop.id}, 'gl_' || n, ${later}, ${later} from generate_series(1, ${MAX_ENDED_ADMISSIONS}) n`
    const last = await PEOPLE['guest']!(drop)
    await passesOf(drop, last)
    await last.remove()
    const { viewers, review } = await world.routeOf(drop.slug)
    expect((viewers ?? review)!.ended).toHaveLength(1)
    expect(await isIn(drop, visit)).toBe(false)
  })
})

test('a visit ends after four hours, with its link, or as the drop says', async () => {
  const drop = await share('viewers')
  const ends = async (person: Person): Promise<[number, number]> => {
    const { address, visit } = await passesOf(drop, person)
    const [row] = await world.sql<{ until: Date }[]>`
      select until from admissions where site_id = ${drop.id} and subject = ${visit.subject}`
    expect(row!.until.getTime()).toBe(visit.endsAt)
    return [address.endsAt - nowMs, visit.endsAt - nowMs]
  }
  expect(await ends(await PEOPLE['guest']!(drop))).toEqual([2 * MINUTE_MS, 4 * HOUR_MS])
  expect(await ends(await PEOPLE['guest']!(drop, new Date(nowMs + HOUR_MS)))).toEqual([2 * MINUTE_MS, HOUR_MS])
  expect(await ends(await PEOPLE['guest']!(drop, new Date(nowMs + SECOND_MS)))).toEqual([SECOND_MS, SECOND_MS])
  await world.services.sites.patch(drop.owner, drop.id, { viewer_admission: '30m' })
  expect(await ends(await PEOPLE['viewer']!(drop))).toEqual([2 * MINUTE_MS, 30 * MINUTE_MS])
})

test('who is removed after a visit has ended was out before, and has nothing that could be renewed', async () => {
  const drop = await share('password')
  const person = await PEOPLE['guest']!(drop)
  const { visit } = await passesOf(drop, person)
  nowMs += 4 * HOUR_MS
  expect(await isIn(drop, visit)).toBe(false)
})
