/**
 * Whatever owners do in whatever order, and however time passes in between: nothing that was retained is lost except
 * where the specification says so, and nothing is removed without two mails whose dates have passed.
 *
 * Histories from a seed on the services themselves, with a clock that is moved. `HISTORIES=2000 SEED=7` runs as many others.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING, type Actor } from '../../control/ground/actor.ts'
import { changeRoutes } from '../../control/ground/routing/changes.ts'
import type { PreparedVersion } from '../../control/drops/publishing/contract.ts'
import { DAY_MS, MINUTE_MS } from '../../shared/running/clock.ts'
import { isPaid, plans, type PlanName } from '../../control/ground/terms/plans.ts'
import { composeServices, type ComposedServices } from '../support/composed-services.ts'
import { Readable } from 'node:stream'

const HISTORIES = Number(process.env['HISTORIES'] ?? 40)
/** What a history of this length takes where others use the machine. */
const MAX_MS_PER_HISTORY = 5000
const PERIOD_MS = 30 * DAY_MS

let now = Date.UTC(2027, 0, 1)
let control: ComposedServices
let prepared: PreparedVersion
let people = 0

beforeAll(async () => {
  control = await composeServices({}, { now: () => now })
  const intake = control.services.publishing.receive({
    owner: { kind: 'organisation', id: 'test' },
    capBytes: 1_000_000,
  })
  await intake.addSingle('index.html', Readable.from([Buffer.from('<title>kept</title>')]), {})
  prepared = await intake.finish({})
})
afterAll(() => control.close())

type Deed =
  | { do: 'publish'; drop: number }
  | { do: 'promote'; drop: number; version: number }
  | { do: 'sign in' }
  | { do: 'plan'; plan: PlanName }
  | { do: 'wait'; days: number; runs: number }
  | { do: 'delete'; drop: number }
  | { do: 'take down'; drop: number }
  | { do: 'restore'; drop: number }
  | { do: 'choose'; drops: number[] }

const which = fc.nat(7)
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('publish' as const), drop: which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('promote' as const), drop: which, version: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.constant({ do: 'sign in' as const }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('plan' as const),
      plan: fc.constantFrom<PlanName>('free', 'plus', 'business', 'free', 'starter'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      days: fc.constantFrom(1, 6, 8, 23, 24, 29, 31, 45, 100),
      runs: fc.integer({ min: 0, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), drop: which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take down' as const), drop: which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const), drop: which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('choose' as const), drops: fc.array(which, { maxLength: 3 }) }) },
)

/** One drop, as the database has it. */
interface Seen {
  readonly state: string
  readonly versions: readonly number[]
}

interface Kept {
  readonly id: string
  readonly slug: string
  /** Since when time counts against it: its last publish, its owner's last sign-in, or when it was live again. */
  since: number
}

class History {
  readonly actor: Actor
  plan: PlanName
  readonly drops: Kept[] = []

  constructor(actor: Actor) {
    this.actor = actor
    this.plan = actor.plan
  }

  at(index: number): Kept | undefined {
    return this.drops.length === 0 ? undefined : this.drops[index % this.drops.length]
  }

  async look(): Promise<Map<string, Seen>> {
    const [sites, rows] = await Promise.all([
      control.services.sites.list(this.actor),
      control.sql<{ site_id: string; number: number }[]>`
        select v.site_id, v.number from versions v join sites s on s.id = v.site_id
        where s.org_id = ${this.actor.orgId} and v.dropped_at is null order by v.number desc`,
    ])
    const versionsOf = (id: string) => rows.filter((row) => row.site_id === id).map((row) => row.number)
    return new Map(sites.map(({ id, state }) => [id, { state, versions: versionsOf(id) }]))
  }

  async act(what: Deed): Promise<void> {
    const { services, sql } = control
    switch (what.do) {
      case 'publish':
        return this.publish(what.drop)
      case 'promote': {
        const drop = this.at(what.drop)
        const versions = drop ? await services.versions.list(this.actor, drop.id).catch(() => []) : []
        const version = versions[what.version % Math.max(1, versions.length)]
        if (!drop || !version) return
        if (await succeeds(services.versions.promote(this.actor, drop.id, version.version_id))) drop.since = now
        return
      }
      case 'sign in':
        await changeRoutes(sql, (tx) => services.lifecycle.touchOwner(tx, this.actor.userId, new Date(now)))
        for (const drop of this.drops) drop.since = now
        return
      case 'plan':
        await control.changePlan(this.actor.orgId, what.plan)
        this.plan = what.plan
        return
      case 'wait': {
        for (let run = 0; run < what.runs; run++) {
          now += Math.floor((what.days * DAY_MS) / what.runs)
          await services.lifecycle.runAsOf()
        }
        if (what.runs === 0) now += what.days * DAY_MS
        return
      }
      case 'delete': {
        const drop = this.at(what.drop)
        if (drop) await succeeds(services.sites.delete(this.actor, drop.id))
        return
      }
      case 'take down':
      case 'restore': {
        const drop = this.at(what.drop)
        if (!drop) return
        const moderate = what.do === 'restore' ? services.trust.restore : takedown
        await succeeds(moderate({ system: 'operator' }, drop.slug))
        return
      }
      case 'choose': {
        const ids = what.drops.flatMap((index) => this.at(index)?.id ?? [])
        await succeeds(services.sites.choose(this.actor, ids))
        return
      }
      default:
        what satisfies never
    }
  }

  async publish(index: number): Promise<void> {
    const { versions } = control.services
    const existing = index < this.drops.length ? this.drops[index] : undefined
    if (existing) {
      if (await succeeds(versions.publish(this.actor, existing.id, prepared, {}))) existing.since = now
      return
    }
    const made = await succeeds(versions.publishNew(this.actor, {}, prepared, {}))
    if (!made) return
    const { slug } = (await control.services.sites.find(control.sql, made.value.siteId))!
    this.drops.push({ id: made.value.siteId, slug, since: now })
  }
}

const takedown = (moderator: { system: 'operator' }, slug: string) =>
  control.services.trust.takedown(moderator, slug, 'random')

/** A refusal is an answer; anything else is a failure of the test. */
async function succeeds<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as { status?: number }).status === undefined) throw error
    return undefined
  }
}

/** Which moves of a drop each deed may make; staying as it is always may. Everything else would break a promise. */
const ALLOWED: Readonly<Record<Deed['do'], readonly string[]>> = {
  publish: [],
  promote: [],
  'sign in': ['expired > live', 'paused > live'],
  plan: ['live > paused', 'paused > live', 'expired > live'],
  wait: ['live > expired', 'expired > gone', 'live > gone'],
  delete: ['live > gone', 'paused > gone', 'expired > gone', 'removed > gone', 'paused > live'],
  'take down': ['live > removed', 'paused > removed', 'expired > removed'],
  restore: ['removed > live', 'removed > paused'],
  choose: ['live > paused', 'paused > live'],
}

function check(
  history: History,
  what: Deed,
  planBefore: PlanName,
  before: Map<string, Seen>,
  after: Map<string, Seen>,
) {
  const moves = [...before].map(([id, was]) => ({ id, was, is: after.get(id) }))
  for (const { id, was, is } of moves) {
    const move = `${was.state} > ${is?.state ?? 'gone'}`
    if (was.state !== is?.state) expect(ALLOWED[what.do], `${what.do} on ${planBefore}`).toContain(move)
    if (move === 'live > paused' && what.do === 'plan')
      expect([isPaid(planBefore), history.plan], 'only the end of a plan pauses').toEqual([true, 'free'])
    if (what.do === 'wait' && was.state !== is?.state) {
      expect(isPaid(history.plan), 'a paid drop has no clock').toBe(false)
      const { since } = history.drops.find((drop) => drop.id === id)!
      expect(now - since, 'not before its period is over').toBeGreaterThanOrEqual(PERIOD_MS)
    }
    if (is && (is.state === 'live' || is.state === 'paused') && was.state !== is.state) {
      // Live again: time counts from here.
      history.drops.find((drop) => drop.id === id)!.since = now
    }
    if (is) checkVersions(what, history.plan, was, is)
  }
  if (what.do === 'choose') expect(count(after, 'live'), 'a choice swaps').toBeGreaterThanOrEqual(count(before, 'live'))
  if (what.do === 'plan' && isPaid(planBefore) && history.plan === 'free')
    expect(count(after, 'live')).toBe(Math.min(plans.free.activeDrops, count(before, 'live')))
  if (what.do === 'plan' && isPaid(planBefore) && !isPaid(history.plan))
    for (const drop of history.drops) drop.since = now
}

/** An upload adds one version and drops one at most, the oldest; nothing else drops any. */
function checkVersions(what: Deed, plan: PlanName, was: Seen, is: Seen): void {
  const isUpload = (is.versions[0] ?? 0) > (was.versions[0] ?? 0)
  if (!isUpload) return expect(is.versions, `versions after ${what.do}`).toEqual(was.versions)
  const grown = [is.versions[0]!, ...was.versions]
  const isFull = grown.length > plans[plan].versionsKept
  expect(is.versions).toEqual(isFull ? grown.slice(0, -1) : grown)
}

const count = (seen: Map<string, Seen>, state: string): number =>
  [...seen.values()].filter((drop) => drop.state === state).length

/** Whatever the lifecycle has removed: its owner got both mails, and the dates that they named had passed. */
async function checkMails({ actor }: History): Promise<void> {
  const removed = await control.sql<{ deleted_at: Date; kinds: string[]; acts_at: Date | null }[]>`
    select s.deleted_at, array_agg(n.kind order by n.kind) filter (where n.kind in ('expired', 'removal')) as kinds,
      max(n.acts_at) as acts_at
    from sites s join audit_log a on a.subject = s.id and a.action = 'site.removed'
    left join drop_notices n on n.site_id = s.id and n.clock = s.expires_at
    where s.org_id = ${actor.orgId} group by s.id`
  for (const { deleted_at, kinds, acts_at } of removed) {
    expect(kinds).toEqual(['expired', 'removal'])
    expect(deleted_at.getTime()).toBeGreaterThanOrEqual(acts_at!.getTime())
  }
  const mails = await control.sql<{ template: string }[]>`
    select distinct template from mails where recipient = ${actor.email} and template in ('expired', 'removal')`
  if (removed.length > 0) expect(mails).toHaveLength(2)
}

/** As signing up would, without the cost of a password. */
async function newOwner(plan: PlanName): Promise<Actor> {
  const { sql } = control
  const id = `history${++people}`
  const email = `${id}@example.com`
  const at = new Date(now)
  await sql`insert into users ${sql({ id, email, password_hash: '', email_verified_at: at, created_at: at, last_sign_in_at: at })}`
  await sql`insert into organisations ${sql({ id, name: id, plan, personal: true, owner_id: id })}`
  await sql`insert into memberships ${sql({ org_id: id, user_id: id, role: 'owner' })}`
  return {
    userId: id,
    email,
    emailVerified: true,
    isStaff: false,
    orgId: id,
    role: 'owner',
    plan,
    reach: EVERYTHING,
    via: { kind: 'token', tokenId: '' },
    ip: '203.0.113.7',
  }
}

test(
  `${HISTORIES} random histories keep every promise`,
  async () => {
    const seen = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<PlanName>('free', 'plus', 'business'),
        fc.integer({ min: 0, max: 6 }),
        fc.array(deed, { minLength: 4, maxLength: 14 }),
        async (plan, dropsAtFirst, deeds) => {
          now += MINUTE_MS
          const history = new History(await newOwner(plan))
          for (let index = 0; index < dropsAtFirst; index++) {
            now += MINUTE_MS
            await history.publish(index)
          }
          let before = await history.look()
          for (const what of deeds) {
            now += MINUTE_MS
            const planBefore = history.plan
            await history.act(what)
            const after = await history.look()
            check(history, what, planBefore, before, after)
            for (const [id, was] of before) {
              const move = `${was.state} > ${after.get(id)?.state ?? 'gone'}`
              seen.set(move, (seen.get(move) ?? 0) + 1)
            }
            before = after
          }
          await checkMails(history)
          // What is left of this history is no concern of the next one's time.
          await control.sql`
            update sites set deleted_at = ${new Date(now)} where org_id = ${history.actor.orgId} and deleted_at is null`
        },
      ),
      { numRuns: HISTORIES },
    )
    // A model that never meets what it is about would prove nothing.
    for (const move of ['live > expired', 'expired > gone', 'live > paused', 'paused > live', 'expired > live'])
      expect(seen.get(move) ?? 0, move).toBeGreaterThan(0)
  },
  HISTORIES * MAX_MS_PER_HISTORY,
)
