/**
 * A domain never swings: random histories of two accounts and the zone that both claim, on the real service and a real
 * Postgres. The zone is the test's own; there are no edges and no authority.
 */
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING, type Actor } from '../../control/ground/actor.ts'
import type { Dns } from '../../control/drops/domains/dns/dns.ts'
import { createDomains, type Domains } from '../../control/drops/domains/domains.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

/** `HISTORIES=1000` for as many as a change of ownership deserves (a minute or two). */
const HISTORIES = Number(process.env['HISTORIES'] ?? 150)
const AT_ONCE = 8

let database: TestDatabase
let redis: Redis
let domains: Domains
const zones = new Map<string, Zone>()

/** What the owner of the name has pasted. Routing is always right: this is about whose name it is. */
interface Zone {
  cname: string | undefined
  readonly txts: Set<string>
  isBroken: boolean
}

const answer = <Value>(values: readonly Value[], isBroken = false) =>
  Promise.resolve({ values, failure: isBroken ? ('servfail' as const) : undefined })

const dns: Dns = {
  a: (name) => answer(['127.0.0.1'], zones.get(name)?.isBroken),
  aaaa: () => answer([]),
  cname(name) {
    const zone = zones.get(name)
    return answer(zone?.cname === undefined ? [] : [zone.cname], zone?.isBroken)
  },
  txt(name) {
    const zone = name.startsWith('_dropway.') ? zones.get(name.slice('_dropway.'.length)) : undefined
    return answer([...(zone?.txts ?? [])], zone?.isBroken)
  },
  caa: () => answer([]),
}

beforeAll(async () => {
  database = await createTestDatabase()
  // There is none, and none of this machine's own is asked.
  redis = new Redis('/no/such/redis.sock', { lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null })
  redis.on('error', () => {})
  domains = createDomains({
    sql: database.sql,
    redis,
    secrets: createSecrets('a test key of at least thirty-two characters'),
    clock: systemClock,
    log: silentLog,
    dns,
    config: {
      baseUrl: 'https://dropway.test',
      sitesDomain: 'sites.test',
      serviceHost: 'dropway.test',
      dnsResolver: undefined,
      acmeDirectoryUrl: undefined,
      dns01Kind: undefined,
      caaIdentities: [],
      challengePort: 80,
      allowPrivateAddresses: false,
      allowLoopback: false,
      publicAddresses: ['127.0.0.1'],
      domainCheckMs: 1000,
    },
    enqueueMail: async () => {},
    propagate: async () => ({ pending: false }),
  })
})
afterAll(async () => {
  redis.disconnect()
  await database.close()
})

type Owner = 'A' | 'B'
interface Person {
  readonly actor: Actor
  readonly siteId: string
  readonly target: string
}

async function newPerson(id: string): Promise<Person> {
  const { sql } = database
  const [userId, orgId, siteId] = [`usr_${id}`, `org_${id}`, `st_${id}`]
  await sql`insert into users ${sql({ id: userId, email: `${id}@example.com`, password_hash: '', email_verified_at: new Date() })}`
  await sql`insert into organisations ${sql({ id: orgId, name: '', plan: 'business', owner_id: userId })}`
  await sql`insert into sites ${sql({ id: siteId, org_id: orgId, slug: `slug-${id}`, dns_target: `t-${id}` })}`
  const actor: Actor = {
    userId,
    email: `${id}@example.com`,
    emailVerified: true,
    isStaff: false,
    orgId,
    role: 'owner',
    plan: 'business',
    reach: EVERYTHING,
    via: { kind: 'token', tokenId: 'tok' },
    ip: '127.0.0.1',
  }
  return { actor, siteId, target: `t-${id}.sites.test` }
}

/** `paste`: the TXT line that the owner is shown now · `again`: one that was shown at some time · `drop`: takes one away. */
type Move =
  | { readonly kind: 'add' | 'remove' | 'check' | 'paste' | 'alias'; readonly who: Owner }
  | { readonly kind: 'again' | 'drop'; readonly which: number }
  | { readonly kind: 'unalias' | 'break' | 'heal' | 'both' }

const who = fc.constantFrom<Owner>('A', 'B')
const which = fc.nat({ max: 7 })
const edit: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('paste' as const), who }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('alias' as const), who }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('again' as const, 'drop' as const), which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('add' as const, 'remove' as const), who }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('unalias' as const, 'break' as const, 'heal' as const) }) },
)
const look: fc.Arbitrary<readonly Move[]> = fc.oneof(
  fc.record({ kind: fc.constant('check' as const), who }).map((one) => [one]),
  fc.constant([{ kind: 'both' } as const]),
  fc.constant([]),
)
/** One of them holds the name to begin with. */
const history: fc.Arbitrary<readonly Move[]> = fc
  .array(fc.tuple(edit, look), { minLength: 2, maxLength: 6 })
  .map((steps) => [
    { kind: 'paste', who: 'A' },
    { kind: 'check', who: 'A' },
    ...steps.flatMap(([one, looks]) => [one, ...looks]),
  ])

let names = 0

/** Lives through a history and says how often the name moved from one account to the other. */
async function live(moves: readonly Move[], people: Readonly<Record<Owner, Person>>): Promise<number> {
  const domain = `history${++names}.test`
  const zone: Zone = { cname: undefined, txts: new Set(), isBroken: false }
  zones.set(domain, zone)
  const everShown: string[] = []
  /** Since the last edit of the zone or of a claim. */
  let movesSinceEdit = 0
  /** What the zone held when an account lost the name, and what it had been shown by then. */
  const losses = new Map<Owner, { zone: ReadonlySet<string>; shown: ReadonlySet<string>; gained: Set<string> }>()
  let holder: Owner | undefined
  let moved = 0

  const lines = (): Set<string> => new Set([...zone.txts, ...(zone.cname === undefined ? [] : [zone.cname])])
  const note = (text: string): void => {
    for (const loss of losses.values()) loss.gained.add(text)
  }

  async function compare(): Promise<void> {
    const rows = await database.sql<{ site_id: string }[]>`
      select site_id from domains where domain = ${domain} and holds and removed_at is null`
    expect(rows.length).toBeLessThanOrEqual(1)
    const now = (['A', 'B'] as const).find((owner) => rows[0]?.site_id === people[owner].siteId)
    if (now === holder) return
    const [before, isMove] = [holder, holder !== undefined && now !== undefined]
    holder = now
    if (!isMove) return
    moved += 1
    movesSinceEdit += 1
    expect(movesSinceEdit, 'a zone that no one edits moves a name at most once').toBeLessThanOrEqual(1)
    const loss = losses.get(now!)
    if (loss) {
      // What it shows now was not there when it lost the name, or the owner has set it anew since then.
      const isNewToken = [...zone.txts].some((text) => !loss.shown.has(text) && !loss.zone.has(text))
      expect(isNewToken || loss.gained.has(people[now!].target), 'what was left over takes nothing back').toBe(true)
    }
    losses.set(before!, { zone: lines(), shown: new Set(everShown), gained: new Set() })
  }

  async function shownTo(owner: Owner): Promise<string | undefined> {
    const view = await domains.get(people[owner].actor, people[owner].siteId, domain).catch(() => undefined)
    const text = view?.records.find(({ type }) => type === 'TXT')?.value
    if (text !== undefined && !everShown.includes(text)) everShown.push(text)
    return text
  }

  const check = (owner: Owner): Promise<unknown> =>
    domains.check(people[owner].actor, people[owner].siteId, domain).catch((error: unknown) => {
      if ((error as { status?: number }).status !== 404) throw error
    })

  async function play(step: Move): Promise<void> {
    switch (step.kind) {
      case 'check':
        return void (await check(step.who))
      case 'both':
        // At the same moment: one reads the zone before the other has settled.
        return void (await Promise.all([check('A'), check('B')]))
      case 'add':
        movesSinceEdit = 0
        return void (await domains.add(people[step.who].actor, people[step.who].siteId, { domain, pair: false }))
      case 'remove':
        movesSinceEdit = 0
        losses.clear()
        await domains.remove(people[step.who].actor, people[step.who].siteId, domain).catch(() => undefined)
        return
      case 'paste': {
        const text = await shownTo(step.who)
        if (text === undefined) return
        movesSinceEdit = 0
        zone.txts.add(text)
        return note(text)
      }
      case 'again': {
        const text = everShown[step.which % Math.max(everShown.length, 1)]
        if (text === undefined) return
        movesSinceEdit = 0
        zone.txts.add(text)
        return note(text)
      }
      case 'drop':
        movesSinceEdit = 0
        zone.txts.delete([...zone.txts][step.which % Math.max(zone.txts.size, 1)] ?? '')
        return
      case 'alias':
        movesSinceEdit = 0
        if (zone.cname !== people[step.who].target) note(people[step.who].target)
        zone.cname = people[step.who].target
        return
      case 'unalias':
        movesSinceEdit = 0
        zone.cname = undefined
        return
      case 'break':
      case 'heal':
        zone.isBroken = step.kind === 'break'
        return
      default:
        step satisfies never
    }
  }

  for (const owner of ['A', 'B'] as const) await play({ kind: 'add', who: owner })
  for (const step of moves) {
    await play(step)
    await compare()
  }
  // However long one waits: no one edits anything any more.
  zone.isBroken = false
  movesSinceEdit = 0
  for (let round = 0; round < 2; round++) {
    await play({ kind: 'both' })
    await compare()
  }
  // The plan has room for ten.
  for (const { actor, siteId } of Object.values(people))
    await domains.remove(actor, siteId, domain).catch(() => undefined)
  // Each history is a week of its own: an organisation adds only so many names a day.
  await database.sql`update domains set created_at = created_at - interval '7 days' where domain = ${domain}`
  zones.delete(domain)
  return moved
}

test(`in ${HISTORIES} random histories of two accounts and their zone, a name never swings`, async () => {
  const histories = fc.sample(history, HISTORIES)
  let moves = 0
  const queue = histories.entries()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, lane) => {
      const people = { A: await newPerson(`a${lane}`), B: await newPerson(`b${lane}`) }
      for (const [number, one] of queue) {
        try {
          const moved = await live(one, people)
          moves += moved
        } catch (error) {
          throw new Error(`history ${number}: ${JSON.stringify(one)}`, { cause: error })
        }
      }
    }),
  )
  // The histories are about something: names did move.
  expect(moves).toBeGreaterThan(HISTORIES / 5)
})
