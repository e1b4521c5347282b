/** Custom domains while their drop, their name and their claim change at the same moment: real Postgres, no edges. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EVERYTHING, type Actor } from '../../control/ground/actor.ts'
import { createDomains, type Domains } from '../../control/drops/domains/domains.ts'
import { changeRoutes, type RoutingTransaction } from '../../control/ground/routing/changes.ts'
import { setRoute } from '../../control/ground/routing/outbox.ts'
import { createRefreshRoutes, type RefreshRoutes } from '../../control/drops/sites/routing.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { silentLog } from '../../shared/running/log.ts'
import type { RouteRecord } from '../../shared/contracts/route-record.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { duringTransaction } from '../support/races.ts'

let database: TestDatabase
let redis: Redis
let domains: Domains
let refreshRoutes: RefreshRoutes

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
    config: {
      sitesDomain: 'sites.test',
      serviceHost: 'dropway.test',
      baseUrl: 'https://dropway.test',
      dnsResolver: '127.0.0.1:1',
      acmeDirectoryUrl: undefined,
      dns01Kind: undefined,
      caaIdentities: [],
      challengePort: 80,
      allowPrivateAddresses: true,
      allowLoopback: true,
      publicAddresses: ['192.0.2.10'],
      domainCheckMs: 1000,
    },
    enqueueMail: async () => {},
    propagate: async () => ({ pending: false }),
  })
  refreshRoutes = createRefreshRoutes({
    sitesDomain: 'sites.test',
    lifetimes: { anonymousLifetimeMs: 1, freeIdleLifetimeMs: 1 },
    now: () => systemClock.now(),
    previewLabels: () => '1-aaaaaaaaaaaa',
    lockDomainRoutes: domains.lockRoutes,
  })
})
afterAll(async () => {
  redis.disconnect()
  await database.close()
})

let counter = 0
async function newAccount(): Promise<{ actor: Actor; siteId: string }> {
  const { sql } = database
  const n = ++counter
  const [userId, orgId, siteId] = [`usr_${n}`, `org_${n}`, `st_${n}`]
  await sql`insert into users ${sql({ id: userId, email: `u${n}@example.com`, password_hash: '', email_verified_at: new Date() })}`
  await sql`insert into organisations ${sql({ id: orgId, name: '', plan: 'plus', owner_id: userId })}`
  await sql`insert into sites ${sql({ id: siteId, org_id: orgId, slug: `slug-${n}`, dns_target: `t-${n}` })}`
  const actor: Actor = {
    userId,
    email: `u${n}@example.com`,
    emailVerified: true,
    isStaff: false,
    orgId,
    role: 'owner',
    plan: 'plus',
    reach: EVERYTHING,
    via: { kind: 'token', tokenId: 'tok' },
    ip: '127.0.0.1',
  }
  return { actor, siteId }
}

/** What a check does when DNS and certificate are right. */
async function goLive(sql: RoutingTransaction, domain: string, siteId: string): Promise<void> {
  await sql`update domains set holds = true, wanted = true, state = 'active' where domain = ${domain} and site_id = ${siteId}`
  await setRoute(sql, { kind: 'alias', host: domain, to: `${siteId}.sites.test` })
}

const deleteSite = (siteId: string): Promise<unknown> =>
  changeRoutes(database.sql, async (sql) => {
    await sql`update sites set deleted_at = now() where id = ${siteId}`
    await refreshRoutes(sql, siteId)
  })

async function routeOf(host: string): Promise<RouteRecord | undefined> {
  const [row] = await database.sql<{ record: RouteRecord }[]>`select record from routes where host = ${host}`
  return row?.record
}

test('a domain that goes live while its drop is deleted leads nowhere afterwards', async () => {
  const { actor, siteId } = await newAccount()
  await domains.add(actor, siteId, { domain: 'late.delete.test' })
  await duringTransaction(
    database.sql,
    (sql) => goLive(sql, 'late.delete.test', siteId),
    () => deleteSite(siteId),
  )
  expect(await routeOf('late.delete.test')).toMatchObject({ kind: 'none' })
})

test('the other half of a pair that goes live while the domain is removed leads nowhere afterwards', async () => {
  const { actor, siteId } = await newAccount()
  await domains.add(actor, siteId, { domain: 'pair.test' })
  await duringTransaction(
    database.sql,
    (sql) => goLive(sql, 'www.pair.test', siteId),
    () => domains.remove(actor, siteId, 'pair.test'),
  )
  expect(await routeOf('www.pair.test')).toMatchObject({ kind: 'none' })
})

test('a drop that changes while a domain of it is removed does not bring the domain back', async () => {
  const { actor, siteId } = await newAccount()
  await domains.add(actor, siteId, { domain: 'gone.patch.test' })
  await changeRoutes(database.sql, (sql) => goLive(sql, 'gone.patch.test', siteId))
  await duringTransaction(
    database.sql,
    async (sql) => void (await sql`select from routes where host = 'gone.patch.test' for update`),
    () => domains.remove(actor, siteId, 'gone.patch.test'),
    () => changeRoutes(database.sql, (sql) => refreshRoutes(sql, siteId)),
  )
  expect(await routeOf('gone.patch.test')).toMatchObject({ kind: 'none' })
})

test('a drop that changes while another account proves its domain does not take the domain back', async () => {
  const [loser, winner] = [await newAccount(), await newAccount()]
  await domains.add(loser.actor, loser.siteId, { domain: 'moves.test', pair: false })
  await domains.add(winner.actor, winner.siteId, { domain: 'moves.test', pair: false })
  await changeRoutes(database.sql, (sql) => goLive(sql, 'moves.test', loser.siteId))
  await duringTransaction(
    database.sql,
    async (sql) => {
      await sql`update domains set holds = false, state = 'blocked' where site_id = ${loser.siteId}`
      await goLive(sql, 'moves.test', winner.siteId)
    },
    () => changeRoutes(database.sql, (sql) => refreshRoutes(sql, loser.siteId)),
  )
  expect(await routeOf('moves.test')).toMatchObject({ kind: 'alias', to: `${winner.siteId}.sites.test` })
})

test('a domain cannot be added to a drop that is being deleted', async () => {
  const { actor, siteId } = await newAccount()
  const [refusal] = await duringTransaction(
    database.sql,
    async (sql) => {
      await sql`select from organisations where id = ${actor.orgId} for update`
      await sql`update sites set deleted_at = now() where id = ${siteId}`
    },
    () => domains.add(actor, siteId, { domain: 'too.late.test' }),
  )
  expect(refusal).toMatchObject({ status: 404 })
  expect(await domains.count(actor.orgId)).toBe(0)
})
