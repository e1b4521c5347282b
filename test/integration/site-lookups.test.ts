/** Looking for one drop costs the same whether there are ten of them or a million. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findByClaim, lockClaimable } from '../../control/drops/anonymous/queries.ts'
import { transaction, type Sql } from '../../control/ground/database/sql.ts'
import { lockExpired, lockNoticeDue, lockRemovable } from '../../control/plans/lifecycle/queries.ts'
import { lockOwnSlug } from '../../control/drops/sites/queries.ts'
import { forgetBatches } from '../../control/drops/sites/view-counts.ts'
import { findSiteIdByHost, leadsSomewhere, lockSiteBySlug } from '../../control/drops/trust/queries.ts'
import { leadsTo } from '../../control/drops/visiting/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

const DAY_MS = 86_400_000
const now = new Date()
const inDays = (days: number): Date => new Date(now.getTime() + days * DAY_MS)

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  // Every second one has expired and waits for its removal.
  await database.sql`
    insert into sites (id, slug, dns_target, claim_hash, anonymous_id, expires_at, expired_at)
    select 'site-' || n, 'slug-' || n, 'target-' || n, 'claim-' || n, 'browser-' || n,
           ${now}::timestamptz + case when n % 2 = 0 then -interval '9 days' else interval '5 days' end,
           case when n % 2 = 0 then ${now}::timestamptz - interval '9 days' end
    from generate_series(1, 10000) n`
  await database.sql`analyze sites`
})
afterAll(() => database.close())

test.each<[what: string, look: (sql: Sql) => Promise<unknown>]>([
  ['the drop of a claim link', (sql) => findByClaim(sql, 'claim-7', now)],
  ['an unknown claim link', (sql) => findByClaim(sql, 'unknown', now)],
  ['what a claim link moves', (sql) => lockClaimable(sql, { claimHash: 'claim-7' }, { orgId: 'org', now })],
  ['what a browser made', (sql) => lockClaimable(sql, { anonymousId: 'browser-7' }, { orgId: 'org', now })],
  ['the own drop of a slug', (sql) => lockOwnSlug(sql, 'org', 'slug-7')],
  ['the drop that is taken down', (sql) => lockSiteBySlug(sql, 'slug-7')],
  ['the next drop whose clock has run out', (sql) => lockExpired(sql, now)],
  ['the next drop whose recovery window has passed', (sql) => lockRemovable(sql, inDays(-30), now)],
  ['drops whose owners have to be told', (sql) => lockNoticeDue(sql, now)],
])('%s', async (_, look) => {
  const rowsRead = await transaction(database.sql, async (sql) => {
    const before = await countRowsRead(sql)
    await look(sql)
    return (await countRowsRead(sql)) - before
  })
  expect(rowsRead).toBeLessThan(10)
})

test.each<[host: string, site: string | undefined]>([
  ['a.docs.customer.test', 'docs'],
  ['own.docs.customer.test', 'own'],
  ['gone.docs.customer.test', 'docs'],
  ['docs.customer.test', undefined],
  ['a.b.docs.customer.test', undefined],
])('%s shows %s, to those who let visitors in and to those who take drops down', async (host, site) => {
  const { sql } = database
  const record = (kind: string, more: object) => JSON.stringify({ v: 1, kind, revision: 1, ...more })
  const routes = [
    ['docs.sites.test', record('site', { site_id: 'docs' })],
    ['own.sites.test', record('site', { site_id: 'own' })],
    ['*.docs.customer.test', record('alias', { to: 'docs.sites.test' })],
    ['own.docs.customer.test', record('alias', { to: 'own.sites.test' })],
    ['gone.docs.customer.test', record('none', {})],
  ] as const
  for (const [name, json] of routes)
    await sql`insert into routes (host, record, revision) values (${name}, ${json}::text::jsonb, 1) on conflict do nothing`
  expect(await findSiteIdByHost(sql, host)).toBe(site)
  expect(await leadsSomewhere(sql, host)).toBe(site !== undefined)
  for (const id of ['docs', 'own']) expect(await leadsTo(sql, host, id)).toBe(id === site)
})

test('batches of view counts are remembered for as long as someone may still fold them', async () => {
  const { sql } = database
  await sql`insert into view_batches (id, folded_at) values ('old', ${inDays(-2)}), ('new', ${now})`
  await forgetBatches(sql, inDays(-1))
  expect(await sql`select id from view_batches`).toEqual([{ id: 'new' }])
})

async function countRowsRead(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count from pg_stat_xact_user_tables where relname = 'sites'`
  return row!.count
}
