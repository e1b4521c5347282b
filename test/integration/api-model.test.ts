/**
 * The REST API as a whole against a small model (support/api-model/): random sequences of calls by several people, with
 * sessions, tokens and nothing, over real HTTP, Postgres and Redis. Every answer is predicted: status, error code and
 * visible fields; at the end, so is what the edges were told.
 *
 * `SEQUENCES=5000 npx vitest run test/integration/api-model.test.ts` runs as many, of 50 calls each. Seeds are printed;
 * `SEED=<seed>` repeats one.
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApp } from '../../control/composition/app.ts'
import { readControlConfig } from '../../control/ground/config.ts'
import { transaction } from '../../control/ground/database/sql.ts'
import { changeRoutes } from '../../control/ground/routing/changes.ts'
import { insertUser } from '../../control/people/accounts/queries.ts'
import { beginSession, SESSION_COOKIE } from '../../control/people/access/sessions.ts'
import { createPersonalOrganisation } from '../../control/people/organisations/personal.ts'
import { insertMembership, insertOrganisation } from '../../control/people/organisations/queries.ts'
import { newId } from '../../shared/contracts/ids.ts'
import { silentLog } from '../../shared/running/log.ts'
import { plans, type PlanName } from '../../control/ground/terms/plans.ts'
import type { RouteRecord } from '../../shared/contracts/route-record.ts'
import { hashSecret, randomSecret } from '../../shared/secrets/secrets.ts'
import { callers, calls, requestOf, type Sent } from '../support/api-calls.ts'
import { MARKDOWN, singleFile } from '../support/api-content.ts'
import type { Caller } from '../support/api-model/access.ts'
import type { Expected } from '../support/api-model/answers.ts'
import { aim, type Call } from '../support/api-model/calls.ts'
import { changePlan, predict, takeDown } from '../support/api-model/model.ts'
import { liveNumber, World, type SlugFacts } from '../support/api-model/world.ts'
import { SEED } from '../support/depth.ts'
import { startEdgeStandIn, type EdgeStandIn } from '../support/edge-stand-in.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'

const SEQUENCES = Number(process.env['SEQUENCES'] ?? 20)
const CALLS = 50
/** Of these, so many that open a sequence. */
const OPENING_CALLS = 10
/** Side by side: most of a call is waiting for Postgres and Redis. */
const LANES = 6
/** What a sequence takes where others use the machine. */
const MAX_MS_PER_SEQUENCE = 5000
const BASE_URL = 'https://localhost:8443'
const SITES_DOMAIN = 'localhost'

/** What is wrong with these is wrong everywhere; the others belong to the first to come. */
const ODD_SLUGS = new Map<string, SlugFacts>([
  ['ab', { problem: 'invalid' }],
  ['Upper-Case', { problem: 'invalid' }],
  ['-dash', { problem: 'invalid' }],
  ['', { problem: 'invalid' }],
  ['ümlaut', { problem: 'invalid' }],
  ['s'.repeat(64), { problem: 'invalid' }],
  ['www', { problem: 'reserved' }],
  ['xn--nxasmq6b', { problem: 'reserved' }],
  ['12--preview', { problem: 'reserved' }],
])
/** Of the owner for the team, behind those that three people have for themselves; the member's is the next. */
const TEAM_TOKEN = 3
const OWN_SLUGS = ['apple', 'birch', 'cedar', 'dune', 'ember']

let database: TestDatabase
let redis: TestRedis
let edge: EdgeStandIn
let dataDir: string
let app: ReturnType<typeof createApp>
let url: string
let markdownBytes = 0
let sequences = 0
/** A second passes with every call: what comes later is newer. */
let now = Date.now()
const clock = { now: () => now }

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'dropway-test-model-'))
  ;[database, redis] = await Promise.all([createTestDatabase(), startTestRedis()])
  edge = await startEdgeStandIn({ redisUrl: redis.url, id: 'edge' })
  const config = readControlConfig({
    DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    SECRET_KEY: 'a test key of at least thirty-two characters',
    BASE_URL,
    CONTROL_PORT: '0',
    ANONYMOUS_PER_HOUR: '1000000',
    UPLOADS_PER_HOUR: '1000000',
    ANONYMOUS_NETWORK_STORAGE_MB: '10000',
    JOB_INTERVAL: '1d',
  })
  app = createApp({ config, clock, log: silentLog })
  const port = await app.start()
  if (app.services.redis.status !== 'ready') await once(app.services.redis, 'ready')
  url = `http://127.0.0.1:${port}/api/v1`
  markdownBytes = await measureMarkdown()
})
afterAll(async () => {
  await app.stop()
  await edge.stop()
  await Promise.all([database.close(), redis.stop()])
  await rm(dataDir, { recursive: true, force: true })
})

type Step =
  | { readonly by: 'caller'; readonly caller: Caller; readonly call: Call }
  | { readonly by: 'operator'; readonly do: 'take down' | 'give back' | 'grow'; readonly site: number }
  | { readonly by: 'operator'; readonly do: 'plan'; readonly org: number; readonly plan: PlanName }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({
      by: fc.constant('caller' as const),
      caller: callers,
      call: calls([...OWN_SLUGS, ...OWN_SLUGS, ...ODD_SLUGS.keys()]),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      by: fc.constant('operator' as const),
      do: fc.constantFrom('take down' as const, 'give back' as const, 'grow' as const),
      site: fc.nat(7),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      by: fc.constant('operator' as const),
      do: fc.constant('plan' as const),
      org: fc.nat(3),
      plan: fc.constantFrom<PlanName>('free', 'free', 'plus', 'business'),
    }),
  },
)
/** Drops with content come first: most calls are about them. */
const openingStep: fc.Arbitrary<Step> = fc.record({
  by: fc.constant('caller' as const),
  caller: fc.record({ kind: fc.constant('token' as const), token: fc.constantFrom(0, TEAM_TOKEN, TEAM_TOKEN + 1) }),
  call: fc.oneof(
    fc.record({ do: fc.constant('create site' as const), slug: fc.constantFrom(...OWN_SLUGS), name: fc.constant('') }),
    fc.record({
      do: fc.constant('upload' as const),
      site: fc.nat(59),
      file: fc.constant('html' as const),
      text: fc.constantFrom('one', 'two'),
      ifVersion: fc.constant('none' as const),
      message: fc.constant(''),
    }),
  ),
})
const beginning = fc.record({
  personal: fc.constantFrom<PlanName>('free', 'free', 'plus'),
  team: fc.constantFrom<PlanName>('free', 'plus'),
  memberRole: fc.constantFrom<'admin' | 'member'>('admin', 'member'),
})

test(
  `${SEQUENCES} sequences of ${CALLS} calls are answered as the model predicts (seed ${SEED})`,
  { timeout: 600_000 + SEQUENCES * MAX_MS_PER_SEQUENCE },
  async () => {
    const startedAt = performance.now()
    await Promise.all(
      Array.from({ length: LANES }, (_, lane) =>
        fc.assert(
          fc.asyncProperty(
            beginning,
            listOf(openingStep, OPENING_CALLS),
            listOf(step, CALLS - OPENING_CALLS),
            async (begun, opening, steps) => {
              const sequence = await begin(begun)
              for (const each of [...opening, ...steps]) await sequence.take(each)
              await sequence.end()
            },
          ),
          {
            numRuns: Math.ceil(SEQUENCES / LANES),
            seed: SEED + lane, // Shortening a history of 50 calls takes minutes: SHORTEN=1 when someone waits for it.
            endOnFailure: process.env['SHORTEN'] === undefined,
          },
        ),
      ),
    )
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    process.stdout.write(`${sequences} sequences of ${CALLS} calls in ${seconds} s, seed ${SEED}\n`)
  },
)

function listOf<Item>(item: fc.Arbitrary<Item>, length: number): fc.Arbitrary<Item[]> {
  return fc.array(item, { minLength: length, maxLength: length, size: 'max' })
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

/** People, two organisations and their credentials, as sign-up and invitations leave them. */
async function begin(wanted: { personal: PlanName; team: PlanName; memberRole: 'admin' | 'member' }) {
  const number = ++sequences
  const prefix = `m${number}-`
  const slugs = new Map([...ODD_SLUGS, ...OWN_SLUGS.map((slug): [string, SlugFacts] => [`${prefix}${slug}`, {}])])
  const world = new World(slugs, markdownBytes)
  const cookies: (string | undefined)[] = []
  const { sql } = database

  await transaction(sql, async (tx) => {
    for (const [index, name] of ['owner', 'member', 'stranger', 'unverified'].entries()) {
      const email = `${name}-${number}@example.com`
      const id = newId('usr')
      const verified = name !== 'unverified'
      const at = new Date(now)
      await insertUser(tx, { id, email, passwordHash: '', verifiedAt: verified ? at : null, now: at })
      const orgId = await createPersonalOrganisation(tx, { userId: id, email, country: 'DE', currency: 'EUR', now: at })
      const visit = { ip: '203.0.113.7', userAgent: 'test', sessionSecret: undefined }
      const { setCookie } = await beginSession(tx, { userId: id, orgId }, visit, at)
      const session = /=([^;]+)/.exec(setCookie)![1]!
      const plan: PlanName = index === 0 ? wanted.personal : 'free'
      await tx`update organisations set plan = ${plan} where id = ${orgId}`
      world.people.push({ id, email, verified, session, sessionOrg: orgId })
      world.orgs.push({
        id: orgId,
        personal: true,
        name: `${name}-${number}`,
        plan,
        owner: id,
        members: new Map([[id, 'owner']]),
        deleted: false,
      })
      now += 1000
    }
    const [owner, member] = world.people
    const id = newId('org')
    const at = new Date(now)
    await insertOrganisation(tx, {
      id,
      name: 'Team',
      personal: false,
      country: 'DE',
      currency: 'EUR',
      ownerId: owner!.id,
      now: at,
    })
    await tx`update organisations set plan = ${wanted.team} where id = ${id}`
    now += 1000
    await insertMembership(tx, { orgId: id, userId: member!.id, role: wanted.memberRole, now: new Date(now) })
    world.orgs.push({
      id,
      personal: false,
      name: 'Team',
      plan: wanted.team,
      owner: owner!.id,
      members: new Map([
        [owner!.id, 'owner'],
        [member!.id, wanted.memberRole],
      ]),
      deleted: false,
    })
  })
  const team = world.orgs.at(-1)!
  for (const person of world.people) if (person.verified) await giveToken(person.id, person.sessionOrg)
  for (const userId of team.members.keys()) await giveToken(userId, team.id)

  async function giveToken(userId: string, orgId: string): Promise<void> {
    const { tokens } = app.services
    const { id, token, name } = await tokens.createFor({ userId, orgId, emailVerified: true }, { name: 'first' })
    world.tokens.push({ id, secret: token, person: userId, org: orgId, name, revoked: false })
  }

  function credentialsOf(caller: Caller): Record<string, string> {
    switch (caller.kind) {
      case 'session':
      case 'foreign page': {
        const { session } = world.people[caller.person % world.people.length]!
        const site = caller.kind === 'session' ? 'same-origin' : 'cross-site'
        return { cookie: `${SESSION_COOKIE}=${session}`, 'sec-fetch-site': site }
      }
      case 'token':
        return { authorization: `Bearer ${world.tokens[caller.token % world.tokens.length]!.secret}` }
      case 'wrong token':
        return { authorization: 'Bearer dw_nobody' }
      case 'nobody':
        return {}
      default:
        return caller satisfies never
    }
  }

  async function send(headers: Record<string, string>, { method, path: to, json, body }: Sent, browser?: number) {
    const cookie = browser === undefined ? undefined : cookies[browser]
    const response = await patientFetch(url + to, {
      method,
      headers: {
        ...headers,
        ...(cookie === undefined ? {} : { cookie }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(json === undefined ? (body === undefined ? {} : { body }) : { body: JSON.stringify(json) }),
    })
    const given = response.headers.getSetCookie()[0]?.split(';')[0]
    if (browser !== undefined && given !== undefined) cookies[browser] = given
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }

  async function take(each: Step): Promise<void> {
    now += 1000
    if (each.by === 'operator') return operate(each)
    const call = prefixed(aim(world, each.caller, each.call), prefix)
    const request = requestOf(world, call)
    const expected = predict(world, each.caller, call)
    const isAnonymous = 'browser' in call
    const answer = await send(
      isAnonymous ? {} : credentialsOf(each.caller),
      request,
      isAnonymous ? call.browser : undefined,
    )
    compare(
      expected,
      answer,
      () => `${JSON.stringify(each.caller)} ${JSON.stringify(call)} as ${request.method} ${request.path}`,
    )
    if (expected.learn) expected.learn((await withSecrets(call, answer.body)) as never)
  }

  /** The link of an invitation is in a mail, and only its hash is kept: the test gives it a secret that it knows. */
  async function withSecrets(call: Call, body: unknown): Promise<unknown> {
    if (call.do !== 'invite') return body
    const token = randomSecret()
    await sql`update invitations set token_hash = ${hashSecret(token)} where id = ${(body as { id: string }).id}`
    return { ...(body as object), token }
  }

  async function operate(each: Extract<Step, { by: 'operator' }>): Promise<void> {
    const { services } = app
    if (each.do === 'plan') {
      const org = world.org(each.org)
      if (!org || org.deleted) return
      await changeRoutes(sql, (tx) => services.lifecycle.changePlan(tx, org.id, each.plan))
      return changePlan(world, org, each.plan)
    }
    const site = world.site(each.site)
    if (!site || site.deleted) return
    if (each.do === 'grow') return grow(site.versions.at(-1), site.org)
    if (site.takenDown === (each.do === 'take down')) return
    if (each.do === 'take down') await services.trust.takedown({ system: 'operator' }, site.slug, 'a test')
    else await services.trust.restore({ system: 'operator' }, site.slug)
    takeDown(world, site, each.do === 'take down')
  }

  /** As if the newest version filled the plan's storage: megabytes need not be sent to meet the cap. */
  async function grow(version: { id: string; bytes: number } | undefined, orgId: string | null): Promise<void> {
    const org = world.orgs.find(({ id }) => id === orgId)
    if (!version || !org) return
    version.bytes = plans[org.plan].storageBytes
    await sql`update versions set byte_size = ${version.bytes} where id = ${version.id}`
  }

  /** What the edges were told of every slug. */
  async function end(): Promise<void> {
    const hosts = [...world.slugs.keys()].map((slug) => `${slug}.${SITES_DOMAIN}`)
    const rows = await sql<{ host: string; record: RouteRecord }[]>`
      select host, record from routes where host = any(${hosts})`
    const told = new Map(rows.map(({ host, record }) => [host, record]))
    const former = new Map<string, number>()
    for (const { site, kind } of world.slugs.values())
      if (kind === 'former') former.set(site, (former.get(site) ?? 0) + 1)
    for (const [slug, held] of world.slugs) {
      const site = world.sites.find(({ id }) => id === held.site)!
      const record = told.get(`${slug}.${SITES_DOMAIN}`)
      // Only the newest ten lead on.
      if (held.kind === 'former' && former.get(site.id)! > 10) continue
      expect(record && seen(record), `what ${slug} shows`).toEqual(
        held.kind === 'former'
          ? { kind: 'redirect', to: `${site.slug}.${SITES_DOMAIN}` }
          : {
              kind: 'site',
              site_id: site.id,
              state: world.stateOf(site),
              locked: site.hasPassword && !site.deleted,
              ...(site.org === null ? {} : { version: site.deleted ? 0 : liveNumber(site) }),
            },
      )
      function seen(route: RouteRecord): object {
        if (route.kind !== 'site') return { kind: route.kind, ...('to' in route ? { to: route.to } : {}) }
        const { kind, site_id, state, version_number: version, password } = route
        return { kind, site_id, state, locked: password !== null, ...(site.org === null ? {} : { version }) }
      }
    }
  }

  return { take, end }
}

const MAX_TRIES = 20
const RETRY_MS = 500

/** A machine without a core to spare answers 503 before it has done anything: the specification says to come back. */
async function patientFetch(to: string, init: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(to, init)
    if (response.status !== 503 || attempt === MAX_TRIES) return response
    await response.arrayBuffer()
    await sleep(RETRY_MS)
  }
}

/** Slugs are of this sequence alone, whatever others run beside it. */
function prefixed(call: Call, prefix: string): Call {
  const own = (slug: string): string => (OWN_SLUGS.includes(slug) ? prefix + slug : slug)
  if (call.do === 'create site' && call.slug !== undefined) return { ...call, slug: own(call.slug) }
  if (call.do === 'change site' && call.patch.slug !== undefined)
    return { ...call, patch: { ...call.patch, slug: own(call.patch.slug) } }
  return call
}

function compare(expected: Expected, answer: Answer, what: () => string): void {
  const error = (answer.body as { error?: string } | undefined)?.error
  const context = (): string => `${what()}\nanswered ${JSON.stringify(answer.body)?.slice(0, 1500)}`
  expect({ status: answer.status, error }, context()).toEqual({ status: expected.status, error: expected.error })
  if (expected.body !== undefined) expect(sorted(answer.body, expected.body), context()).toMatchObject(expected.body)
}

/** The order of what is missing says nothing. */
function sorted(body: unknown, expected: unknown): object {
  const missing = (expected as { missing?: unknown }).missing
  if (!(missing instanceof Set)) return body as object
  return { ...(body as object), missing: new Set((body as { missing: string[] }).missing) }
}

async function measureMarkdown(): Promise<number> {
  const { services } = app
  const { path: name, bytes } = singleFile('markdown', MARKDOWN)
  const intake = services.publishing.receive({ owner: { kind: 'organisation', id: 'test' }, capBytes: 1_000_000 })
  await intake.addSingle(name, Readable.from([bytes]), {})
  return (await intake.finish({})).byteSize
}
