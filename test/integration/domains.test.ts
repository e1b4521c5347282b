/** Custom domains from claim to certificate: real Postgres, Redis, ACME server and DNS; an edge stands in. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAcmeSource } from '../../certs/orders/issue.ts'
import { createIssuer, type Issuer } from '../../certs/renew.ts'
import { EVERYTHING, type Actor } from '../../control/ground/actor.ts'
import { createDomains, type Domains } from '../../control/drops/domains/domains.ts'
import { newDomainsPerDay } from '../../control/drops/domains/rules.ts'
import { createDomainWatch, type DomainWatch } from '../../control/drops/domains/watch.ts'
import { createEnqueueMail } from '../../control/ground/mail/mail.ts'
import { changeRoutes } from '../../control/ground/routing/changes.ts'
import { createRouting, type Routing } from '../../control/ground/routing/routing.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'
import { silentLog } from '../../shared/running/log.ts'
import type { PlanName } from '../../control/ground/terms/plans.ts'
import type { RouteRecord } from '../../shared/contracts/route-record.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { startEdgeStandIn, type EdgeStandIn } from '../support/edge-stand-in.ts'
import { startPebble, type Pebble } from '../support/pebble.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { startTestRedis, type TestRedis } from '../support/redis.ts'
import { freePorts } from '../support/stack.ts'

const secrets = createSecrets('a test key of at least thirty-two characters')
const soon = { interval: 30 }

let database: TestDatabase
let server: TestRedis
let pebble: Pebble
let redis: Redis
let publisherRedis: Redis
let challengePort: number
let domains: Domains
let routing: Routing
let watch: DomainWatch
let edge: EdgeStandIn | undefined
let issuer: Issuer

beforeAll(async () => {
  ;[challengePort] = (await freePorts(1)) as [number]
  ;[database, server, pebble] = await Promise.all([
    createTestDatabase(),
    startTestRedis(),
    startPebble({ challengePort }),
  ])
  redis = new Redis(server.url)
  const { sql } = database
  const config = {
    sitesDomain: 'sites.test',
    serviceHost: 'dropway.test',
    baseUrl: 'https://dropway.test',
    dnsResolver: pebble.dnsResolver,
    acmeDirectoryUrl: pebble.directoryUrl,
    dns01Kind: undefined,
    caaIdentities: ['our-ca.test'],
    challengePort,
    allowPrivateAddresses: true,
    allowLoopback: true,
    publicAddresses: ['127.0.0.1'],
    domainCheckMs: 150,
  }
  domains = createDomains({
    sql,
    redis,
    secrets,
    clock: systemClock,
    log: silentLog,
    config,
    enqueueMail: createEnqueueMail({ secrets, clock: systemClock }),
    propagate: (changes) => routing.propagate(changes),
  })
  publisherRedis = redis.duplicate()
  routing = createRouting({
    sql,
    redis,
    publisherRedis,
    log: silentLog,
    republishers: [domains.republishCertificates],
  })
  routing.start()
  watch = createDomainWatch({ domains, redis, log: silentLog, checkMs: config.domainCheckMs })
  watch.start()
  const acme = { directoryUrl: pebble.directoryUrl, email: undefined, caFile: pebble.caFile }
  const source = createAcmeSource({ redis, secrets, clock: systemClock, acme })
  issuer = createIssuer({ redis, secrets, clock: systemClock, log: silentLog, source, tickMs: 200 })
  issuer.start()
})
afterAll(async () => {
  await Promise.all([watch.stop(), issuer.stop(), routing.stop()])
  redis.disconnect()
  publisherRedis.disconnect()
  await Promise.all([database.close(), server.stop(), pebble.stop()])
})

async function openEdge(): Promise<void> {
  edge = await startEdgeStandIn({
    redisUrl: server.url,
    id: `edge-${randomBytes(3).toString('hex')}`,
    challengePort,
    onMessage(message) {
      if (message.kind === 'domain') issuer.onDomain(message.name, message.value.includes('true'))
      if (message.kind === 'certificate') issuer.onCertificate(message.name)
    },
  })
}
beforeEach(openEdge)
afterEach(() => edge?.stop())

let counter = 0
async function newAccount(plan: PlanName): Promise<{ actor: Actor; siteId: string; slug: string; target: string }> {
  const { sql } = database
  const n = ++counter
  const [userId, orgId, siteId, slug, dnsTarget] = [`usr_${n}`, `org_${n}`, `st_${n}`, `slug-${n}`, `t-${n}`]
  await sql`insert into users ${sql({ id: userId, email: `u${n}@example.com`, password_hash: '', email_verified_at: new Date() })}`
  await sql`insert into organisations ${sql({ id: orgId, name: '', plan, owner_id: userId })}`
  await sql`insert into sites ${sql({ id: siteId, org_id: orgId, slug, dns_target: dnsTarget })}`
  const actor: Actor = {
    userId,
    email: `u${n}@example.com`,
    emailVerified: true,
    isStaff: false,
    orgId,
    role: 'owner',
    plan,
    reach: EVERYTHING,
    via: { kind: 'token', tokenId: 'tok' },
    ip: '127.0.0.1',
  }
  return { actor, siteId, slug, target: `${dnsTarget}.sites.test` }
}

async function routeOf(host: string): Promise<(Pick<RouteRecord, 'kind'> & { to?: string }) | undefined> {
  const text = await redis.hget(keys.routes, host)
  return text === null ? undefined : (JSON.parse(text) as RouteRecord)
}

/** The record that was shown, and an address behind it. */
async function setCname(domain: string, target: string): Promise<void> {
  await pebble.dns.a(target, '127.0.0.1')
  await pebble.dns.cname(domain, target)
}

describe('from name to certificate', () => {
  test('awaiting_dns → issuing → active, then served at the address of the drop', async () => {
    const { actor, siteId, slug, target } = await newAccount('plus')
    const added = await domains.add(actor, siteId, { domain: 'Shop.Path.test' })
    expect(added).toMatchObject({
      domain: 'shop.path.test',
      state: 'awaiting_dns',
      certificate: null,
      redirect_to: null,
      pair: null,
    })
    // What was found is said at once.
    expect(added).toMatchObject({
      reason: 'no_record',
      checked_at: expect.any(String),
      warnings: [],
      alternative: null,
    })
    expect(added.records).toEqual([
      {
        action: 'add',
        host: 'shop',
        zone: 'path.test',
        name: 'shop.path.test',
        type: 'CNAME',
        value: target,
        found: [],
      },
    ])
    expect(await routeOf('shop.path.test')).toBeUndefined()

    await setCname('shop.path.test', target)
    await expect
      .poll(() => domains.get(actor, siteId, 'shop.path.test'), soon)
      .toMatchObject({ state: 'active', reason: null })
    const active = await domains.get(actor, siteId, 'shop.path.test')
    expect(Date.parse(active.certificate!.not_after)).toBeGreaterThan(Date.now())
    await expect.poll(() => routeOf('shop.path.test'), soon).toMatchObject({ kind: 'alias', to: `${slug}.sites.test` })
    await expect
      .poll(() => edge!.seen.some(({ kind, name }) => kind === 'certificate' && name === 'shop.path.test'), soon)
      .toBe(true)
  })

  test('an apex is proven by TXT, brings its www along, and the two redirect', async () => {
    const { actor, siteId, slug } = await newAccount('plus')
    const added = await domains.add(actor, siteId, { domain: 'apex.test' })
    expect(added.pair).toMatchObject({ domain: 'www.apex.test', redirect_to: 'apex.test' })
    expect(added.records).toMatchObject([
      { type: 'A', host: '@', name: 'apex.test', value: '127.0.0.1' },
      { type: 'TXT', host: '_dropway', name: '_dropway.apex.test' },
    ])
    expect(added.alternative).toMatchObject({ type: 'ALIAS', host: '@' })

    await pebble.dns.a('apex.test', '127.0.0.1')
    const halfway = await domains.check(actor, siteId, 'apex.test')
    expect(halfway).toMatchObject({ state: 'awaiting_dns', reason: 'txt_missing', records: [{ type: 'TXT' }] })
    await pebble.dns.txt('_dropway.apex.test', halfway.records[0]!.value)
    await setCname('www.apex.test', added.pair!.record.value)
    await expect
      .poll(() => domains.get(actor, siteId, 'apex.test'), soon)
      .toMatchObject({ state: 'active', pair: { state: 'active' } })
    expect(await routeOf('apex.test')).toMatchObject({ kind: 'alias', to: `${slug}.sites.test` })
    expect(await routeOf('www.apex.test')).toMatchObject({ kind: 'redirect', to: 'apex.test' })
  })

  test.each([
    ['wrong-target.test', 'wrong_target', () => setCname('x.wrong-target.test', 'elsewhere.test')],
    ['servfail.test', 'servfail', () => pebble.dns.servfail('x.servfail.test')],
  ])('%s: %s, and it recovers by itself', async (zone, reason, breakDns) => {
    const { actor, siteId, target } = await newAccount('plus')
    await breakDns()
    await domains.add(actor, siteId, { domain: `x.${zone}` })
    await expect
      .poll(() => domains.get(actor, siteId, `x.${zone}`), soon)
      .toMatchObject({ state: 'awaiting_dns', reason })
    const { detail, next_check_at } = await domains.get(actor, siteId, `x.${zone}`)
    expect(detail).toContain(`x.${zone}`)
    expect(Date.parse(next_check_at!)).toBeGreaterThan(0)
    await pebble.dns.clear(`x.${zone}`)
    await setCname(`x.${zone}`, target)
    await expect
      .poll(() => domains.get(actor, siteId, `x.${zone}`), soon)
      .toMatchObject({ state: 'active', reason: null })
  })

  test('a CAA record that names another CA is found before the CA is asked', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    await setCname('x.caa.test', target)
    await pebble.dns.caa('caa.test', { tag: 'issue', value: 'other-ca.test' })
    const orders = await pebble.orders()
    await domains.add(actor, siteId, { domain: 'x.caa.test' })
    await expect
      .poll(() => domains.get(actor, siteId, 'x.caa.test'), soon)
      .toMatchObject({ state: 'awaiting_dns', reason: 'caa_forbids' })
    expect(await pebble.orders()).toBe(orders)
    await pebble.dns.clear('caa.test')
    await expect.poll(() => domains.get(actor, siteId, 'x.caa.test'), soon).toMatchObject({ state: 'active' })
  })

  test('a closed challenge port is found before the CA is asked', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    await edge!.stop()
    await setCname('x.closed.test', target)
    const orders = await pebble.orders()
    await domains.add(actor, siteId, { domain: 'x.closed.test' })
    await expect
      .poll(() => domains.get(actor, siteId, 'x.closed.test'), soon)
      .toMatchObject({ state: 'issuing', reason: 'challenge_unreachable' })
    expect(await pebble.orders()).toBe(orders)
    await openEdge()
    await expect.poll(() => domains.get(actor, siteId, 'x.closed.test'), soon).toMatchObject({ state: 'active' })
  })

  test("a refusal is told in the authority's own words, with the time of the next try; repaired, it is tried at once", async () => {
    const { actor, siteId } = await newAccount('plus')
    await pebble.dns.a('refused.test', '127.0.0.1')
    // No one is at ::1, where the authority looks first.
    await pebble.dns.aaaa('refused.test', '::1')
    const { records } = await domains.add(actor, siteId, { domain: 'refused.test', pair: false })
    await pebble.dns.txt('_dropway.refused.test', records.find(({ type }) => type === 'TXT')!.value)
    await expect
      .poll(() => domains.get(actor, siteId, 'refused.test'), soon)
      .toMatchObject({ state: 'issuing', reason: 'challenge_unreachable' })
    const refused = await domains.get(actor, siteId, 'refused.test')
    expect(refused.detail).toMatch(
      /^The certificate authority could not reach the domain\. It said: ".*\[::1\].*refused.*" What is listed may be the cause; the next try is at \S+ \S+ UTC\.$/,
    )
    expect(refused.records).toMatchObject([{ action: 'remove', type: 'AAAA', value: '::1' }])
    expect(refused.warnings).toEqual([expect.stringContaining('::1, where no server answers')])
    expect(Date.parse(refused.next_try_at!)).toBeGreaterThan(Date.now() - 1000)
    await pebble.dns.clear('refused.test')
    await pebble.dns.a('refused.test', '127.0.0.1')
    await expect
      .poll(() => domains.get(actor, siteId, 'refused.test'), soon)
      .toMatchObject({ state: 'active', reason: null, detail: '', next_try_at: null })
  })

  test('a served domain whose DNS breaks is failing, still served, and recovers', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    await setCname('x.breaks.test', target)
    await domains.add(actor, siteId, { domain: 'x.breaks.test' })
    await expect.poll(() => domains.get(actor, siteId, 'x.breaks.test'), soon).toMatchObject({ state: 'active' })
    await pebble.dns.clear('x.breaks.test')
    await expect
      .poll(() => domains.check(actor, siteId, 'x.breaks.test'), soon)
      .toMatchObject({ state: 'failing', reason: 'no_record' })
    expect(await routeOf('x.breaks.test')).toMatchObject({ kind: 'alias' })
    await setCname('x.breaks.test', target)
    await expect
      .poll(() => domains.get(actor, siteId, 'x.breaks.test'), soon)
      .toMatchObject({ state: 'active', reason: null })
  })

  test('owners get a mail when visitors end up elsewhere, and before a certificate ends that cannot be renewed', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    const name = 'x.mails.test'
    const mails = async (): Promise<string[]> => {
      const rows = await database.sql<{ template: string }[]>`
        select template from mails where recipient = ${actor.email} order by created_at, id`
      return rows.map(({ template }) => template)
    }
    await setCname(name, target)
    await domains.add(actor, siteId, { domain: name })
    await expect.poll(() => domains.get(actor, siteId, name), soon).toMatchObject({ state: 'active' })

    await pebble.dns.clear(name)
    for (let look = 0; look < 3; look++)
      expect(await domains.check(actor, siteId, name)).toMatchObject({ state: 'failing', reason: 'no_record' })
    await expect.poll(mails, soon).toEqual(['domain_stopped'])
    // One for each time; a look right after a change shows what is there now.
    for (let look = 0; look < 3; look++) await domains.check(actor, siteId, name)
    await pebble.dns.cname(name, target)
    expect(await domains.check(actor, siteId, name)).toMatchObject({ state: 'active', records: [] })
    expect(await mails()).toEqual(['domain_stopped'])

    const refused = { attempts: 3, next_attempt_ms: 1e15, reason: 'ca_refused', last_error: 'no', failures_ms: [] }
    await redis.hset(keys.acmeRetry, name, JSON.stringify(refused))
    for (const days of [20, 13, 2]) {
      await database.sql`update certificates set not_after = now() + make_interval(days => ${days}) where name = ${name}`
      for (let look = 0; look < 2; look++) await domains.check(actor, siteId, name)
    }
    expect(await mails()).toEqual(['domain_stopped', 'domain_renewal', 'domain_renewal'])
  })

  test('removing it ends the route and the certificate; a deleted drop gives its domains up', async () => {
    const { actor, siteId, target } = await newAccount('business')
    for (const domain of ['a.removed.test', 'b.removed.test']) {
      await setCname(domain, target)
      await domains.add(actor, siteId, { domain })
    }
    await expect.poll(() => domains.list(actor, siteId), soon).toMatchObject([{ state: 'active' }, { state: 'active' }])
    await domains.remove(actor, siteId, 'a.removed.test')
    expect(await routeOf('a.removed.test')).toMatchObject({ kind: 'none' })
    await expect.poll(() => redis.hget(keys.certificates, 'a.removed.test'), soon).toBeNull()
    await expect(domains.get(actor, siteId, 'a.removed.test')).rejects.toMatchObject({ status: 404 })

    const { changes } = await changeRoutes(database.sql, async (tx) =>
      (await domains.lockRoutes(tx, siteId))({ slug: 'x', deleted_at: new Date() }),
    )
    await routing.propagate(changes)
    expect(await routeOf('b.removed.test')).toMatchObject({ kind: 'none' })
    await expect.poll(() => redis.hget(keys.certificates, 'b.removed.test'), soon).toBeNull()
  })

  test('an empty Redis gets its certificates back without a new order, and nothing rests in clear', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    await setCname('x.healed.test', target)
    await domains.add(actor, siteId, { domain: 'x.healed.test' })
    await expect.poll(() => domains.get(actor, siteId, 'x.healed.test'), soon).toMatchObject({ state: 'active' })
    await domains.mirror.copyState()
    const sealed = await redis.hget(keys.certificates, 'x.healed.test')
    const orders = await pebble.orders()
    await redis.flushall()
    await expect.poll(() => redis.hget(keys.certificates, 'x.healed.test'), soon).toBe(sealed)
    // The account comes back last.
    await expect.poll(() => redis.get(keys.acmeAccount), soon).not.toBeNull()
    await issuer.tick()
    expect(await pebble.orders()).toBe(orders)
    const rows =
      await database.sql`select certificates::text as text from certificates union all select acme_account::text from acme_account`
    expect(rows.length).toBeGreaterThan(1)
    expect(JSON.stringify(rows)).not.toMatch(/PRIVATE KEY|BEGIN/)

    // One that does not take them all is not called complete.
    const refusing = new Redis(server.url, { db: 1 })
    await refusing.set(keys.certificates, 'of another type')
    await expect(domains.republishCertificates(refusing)).rejects.toThrow('WRONGTYPE')
    refusing.disconnect()
  })
})

describe('whose name it is', () => {
  test('a held domain is blocked for others until a TXT record proves it; then it moves', async () => {
    const first = await newAccount('plus')
    const second = await newAccount('plus')
    await setCname('x.moves.test', first.target)
    await domains.add(first.actor, first.siteId, { domain: 'x.moves.test' })
    await expect
      .poll(() => domains.get(first.actor, first.siteId, 'x.moves.test'), soon)
      .toMatchObject({ state: 'active' })

    await domains.add(second.actor, second.siteId, { domain: 'x.moves.test' })
    const blocked = await domains.check(second.actor, second.siteId, 'x.moves.test')
    expect(blocked).toMatchObject({
      state: 'blocked',
      reason: 'held_elsewhere',
      record: { type: 'TXT' },
      certificate: null,
    })
    expect(await routeOf('x.moves.test')).toMatchObject({ to: `${first.slug}.sites.test` })

    await pebble.dns.txt(blocked.record.name, blocked.record.value)
    await expect
      .poll(() => domains.check(second.actor, second.siteId, 'x.moves.test'), soon)
      .toMatchObject({ state: 'active' })
    expect(await routeOf('x.moves.test')).toMatchObject({ kind: 'alias', to: `${second.slug}.sites.test` })
    expect(await domains.get(first.actor, first.siteId, 'x.moves.test')).toMatchObject({
      state: 'blocked',
      reason: 'held_elsewhere',
    })
  })

  test('two proofs side by side in one zone: the name stays where it is, and moves once when it is told to', async () => {
    const [first, second] = [await newAccount('plus'), await newAccount('plus')]
    const name = 'swing.test'
    const txtOf = (view: { records: readonly { type: string; value: string }[] }): string =>
      view.records.find(({ type }) => type === 'TXT')!.value
    const watchRoutes = async (): Promise<(string | undefined)[]> => {
      const seen: (string | undefined)[] = []
      for (let round = 0; round < 8; round++) {
        await Promise.all([first, second].map((one) => domains.check(one.actor, one.siteId, name)))
        seen.push((await routeOf(name))?.to)
      }
      return seen.filter((to, index) => to !== seen[index - 1])
    }
    await pebble.dns.a(name, '127.0.0.1')
    const mine = await domains.add(first.actor, first.siteId, { domain: name, pair: false })
    const theirs = await domains.add(second.actor, second.siteId, { domain: name, pair: false })
    await pebble.dns.txt(`_dropway.${name}`, txtOf(mine))
    await expect.poll(() => domains.check(first.actor, first.siteId, name), soon).toMatchObject({ state: 'active' })
    await pebble.dns.txt(`_dropway.${name}`, txtOf(theirs))
    expect(await watchRoutes()).toEqual([`${first.slug}.sites.test`])

    const blocked = await domains.get(second.actor, second.siteId, name)
    expect(blocked).toMatchObject({ state: 'blocked', reason: 'held_elsewhere' })
    expect(txtOf(blocked)).toMatch(/^dropway-transfer=/)
    await pebble.dns.txt(`_dropway.${name}`, txtOf(blocked))
    await expect.poll(() => domains.check(second.actor, second.siteId, name), soon).toMatchObject({ state: 'active' })
    // Everything that was ever pasted still stands in the zone.
    expect(await watchRoutes()).toEqual([`${second.slug}.sites.test`])
    const mails = await database.sql<{ recipient: string; template: string }[]>`
      select recipient, template from mails where template like 'domain_moved%' and recipient in ${database.sql([first.actor.email, second.actor.email])} order by template`
    expect(mails).toEqual([
      { recipient: first.actor.email, template: 'domain_moved_away' },
      { recipient: second.actor.email, template: 'domain_moved_here' },
    ])
  })

  test('plans: none on free, one on Plus with its pair, races included; another account sees nothing', async () => {
    const free = await newAccount('free')
    await expect(domains.add(free.actor, free.siteId, { domain: 'a.caps.test' })).rejects.toMatchObject({
      status: 403,
      code: 'plan_feature',
    })
    const plus = await newAccount('plus')
    const results = await Promise.allSettled(
      ['one.test', 'two.test', 'three.test'].map((domain) => domains.add(plus.actor, plus.siteId, { domain })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ status: 403, code: 'plan_limit' })
    expect(await domains.list(plus.actor, plus.siteId)).toHaveLength(1)
    await expect(domains.list(free.actor, plus.siteId)).rejects.toMatchObject({ status: 404 })
    await expect(domains.add(plus.actor, plus.siteId, { domain: 'sites.test' })).rejects.toMatchObject({ status: 400 })
  })

  test('an organisation brings only so many new names a day, and removing them does not help', async () => {
    const [busy, other] = [await newAccount('plus'), await newAccount('plus')]
    const bring = async (who: typeof busy, index: number): Promise<void> => {
      const domain = `n${index}.daily-${who.siteId.slice(3)}.test`
      await domains.add(who.actor, who.siteId, { domain })
      await domains.remove(who.actor, who.siteId, domain)
    }
    for (let index = 0; index < newDomainsPerDay(1); index++) await bring(busy, index)
    await expect(bring(busy, 99)).rejects.toMatchObject({
      status: 429,
      headers: { 'retry-after': expect.any(String) },
    })
    await bring(other, 0)
    const { sql } = database
    await sql`update domains set created_at = created_at - interval '25 hours' where org_id = ${busy.actor.orgId}`
    await bring(busy, 100)
  })

  test('when the plan ends visitors meet the paused page over the kept certificate; when it returns, the drop', async () => {
    const { actor, siteId, target } = await newAccount('plus')
    await setCname('x.plan.test', target)
    await domains.add(actor, siteId, { domain: 'x.plan.test' })
    await expect.poll(() => domains.get(actor, siteId, 'x.plan.test'), soon).toMatchObject({ state: 'active' })
    const stopped = await changeRoutes(database.sql, (tx) => domains.stop(tx, actor.orgId))
    expect(stopped.value).toEqual(['x.plan.test'])
    await routing.propagate(stopped.changes)
    expect(await domains.get(actor, siteId, 'x.plan.test')).toMatchObject({
      state: 'blocked',
      reason: 'plan_ended',
      next_check_at: null,
    })
    expect(await routeOf('x.plan.test')).toMatchObject({ kind: 'site', state: 'paused', manifest: null })
    await domains.check(actor, siteId, 'x.plan.test')
    expect(await redis.hget(keys.certificates, 'x.plan.test')).not.toBeNull()
    expect(await redis.hget(keys.domains, 'x.plan.test')).toContain('true')
    await database.sql.begin((sql) => domains.resume(sql, actor.orgId, 'plus'))
    await expect.poll(() => domains.get(actor, siteId, 'x.plan.test'), soon).toMatchObject({ state: 'active' })
    await expect.poll(() => routeOf('x.plan.test'), soon).toMatchObject({ kind: 'alias' })
  })
})
