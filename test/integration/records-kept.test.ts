/** How far the audit log and the list of publishes reach back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgetDeletedDrops } from '../../control/drops/sites/kept/deleted-drops.ts'
import { forgetPublishes } from '../../control/drops/sites/kept/publish-records.ts'
import { HELD_BY_DROP } from '../../control/drops/sites/kept/queries.ts'
import { readControlConfig } from '../../control/ground/config.ts'
import { forgetGoneHosts } from '../../control/ground/routing/gone-hosts.ts'
import { forgetAudit } from '../../control/people/audit/audit.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())

const OLD = new Date('2020-01-01')
const BORDER = new Date('2021-01-01')
const NEW = new Date('2022-01-01')

test('what is older goes, in any number; what is newer stays', async () => {
  const { sql } = database
  await sql`insert into sites (id, slug, dns_target) values ('st_a', 'a', 'a')`
  await sql`
    insert into audit_log (at, actor, action, subject) select ${OLD}, 'a', 'b', 'c' from generate_series(1, 12000)`
  await sql`insert into audit_log (at, actor, action, subject) values (${NEW}, 'a', 'b', 'new')`
  await sql`insert into publishes (site_id, version_id, kind, at) values ('st_a', 'v_1', 'upload', ${OLD}), ('st_a', 'v_2', 'upload', ${NEW})`
  expect(await forgetAudit(sql, BORDER)).toBe(12_000)
  expect(await forgetPublishes(sql, BORDER)).toBe(1)
  expect([...(await sql`select subject from audit_log`)]).toEqual([{ subject: 'new' }])
  expect([...(await sql`select version_id from publishes`)]).toEqual([{ version_id: 'v_2' }])
  expect(await forgetAudit(sql, BORDER)).toBe(0)
})

test('every table that holds rows of a drop lets go of them with it', async () => {
  const { sql } = database
  const holding = await sql<{ name: string }[]>`
    select distinct conrelid::regclass::text as name from pg_constraint
    where contype = 'f' and confrelid = 'sites'::regclass and confdeltype = 'a'`
  expect(holding.map(({ name }) => name).toSorted()).toEqual(HELD_BY_DROP.toSorted())
})

test('a drop that was deleted long ago is forgotten, and its address with it; what another has taken stays', async () => {
  const { sql } = database
  const route = async (host: string, siteId: string, revision: number): Promise<void> => {
    const record = JSON.stringify({ v: 1, kind: 'site', host, site_id: siteId, revision })
    await sql`insert into routes (host, record, revision) values (${host}, ${record}::text::jsonb, ${revision})`
  }
  const drop = async (id: string, deletedAt: Date | null): Promise<void> => {
    await sql`insert into sites (id, slug, dns_target, deleted_at) values (${id}, ${id}, ${id}, ${deletedAt})`
    await sql`insert into slugs (slug, site_id, kind) values (${id}, ${id}, 'tombstone')`
    await sql`insert into versions (id, site_id, number, manifest_hash, byte_size, file_count) values (${`v-${id}`}, ${id}, 1, 'h', 1, 1)`
    await sql`insert into views (site_id, day, count) values (${id}, '2020-01-01', 1)`
    await route(`${id}.sites.test`, id, 1)
  }
  await drop('long-gone', OLD)
  await drop('just-gone', NEW)
  await drop('alive', null)
  // The name of the first was taken by another drop since: its host is not touched.
  await sql`insert into sites (id, slug, dns_target, deleted_at) values ('former', 'taken', 'former', ${OLD})`
  await sql`insert into slugs (slug, site_id, kind) values ('taken', 'alive', 'current')`
  await route('taken.sites.test', 'alive', 1)

  const told: string[] = []
  const forget = (): Promise<number> =>
    forgetDeletedDrops({ sql, sitesDomain: 'sites.test', propagate: async ({ hosts }) => told.push(...hosts) }, BORDER)
  expect(await forget()).toBe(2)
  expect(told).toEqual(['long-gone.sites.test'])
  const left = async (table: string): Promise<string[]> =>
    (
      await sql<
        { id: string }[]
      >`select ${sql(table === 'sites' ? 'id' : 'site_id')} as id from ${sql(table)} order by 1`
    )
      .map(({ id }) => id)
      .filter((id) => id !== 'st_a')
  for (const table of ['sites', 'versions', 'views']) expect(await left(table), table).toEqual(['alive', 'just-gone'])
  const kinds = await sql<
    { host: string; kind: string }[]
  >`select host, record ->> 'kind' as kind from routes order by host`
  expect(kinds.map(({ host, kind }) => `${host} ${kind}`)).toEqual([
    'alive.sites.test site',
    'just-gone.sites.test site',
    'long-gone.sites.test none',
    'taken.sites.test site',
  ])
  expect(await forget()).toBe(0)
})

test('a record that says nothing goes from Redis and the table after a month; one that is used again stays', async () => {
  const { sql } = database
  await sql`truncate routes, outbox, gone_hosts`
  const hash = new Map<string, string>()
  let newest = '9 newest.test'
  const redis = {
    get: async () => newest,
    hget: async (_hash: string, host: string) => hash.get(host) ?? null,
    eval: async (_script: string, _keys: number, _hash: string, host: string, record: string) =>
      hash.get(host) === record && hash.delete(host) ? 1 : 0,
  } as unknown as Parameters<typeof forgetGoneHosts>[1]
  const route = async (host: string, kind: string, revision: number): Promise<void> => {
    const record = JSON.stringify({ v: 1, kind, host, revision })
    await sql`
      insert into routes (host, record, revision) values (${host}, ${record}::text::jsonb, ${revision})
      on conflict (host) do update set record = excluded.record, revision = excluded.revision`
    hash.set(host, record)
  }
  const after = (days: number): Date => new Date(NEW.getTime() + days * 86_400_000)
  const hosts = async (): Promise<string[]> =>
    (await sql<{ host: string }[]>`select host from routes order by host`).map(({ host }) => host)

  for (const [index, host] of ['gone.test', 'waiting.test', 'back.test', 'newest.test'].entries())
    await route(host, 'none', index + 1)
  await route('alive.test', 'alias', 5)
  await sql`insert into outbox (kind, name, value, revision) values ('route', 'waiting.test', '{}', 2)`
  expect(await forgetGoneHosts(sql, redis, NEW)).toBe(0)
  expect(await forgetGoneHosts(sql, redis, after(29))).toBe(0)
  await route('back.test', 'alias', 6)
  expect(await forgetGoneHosts(sql, redis, after(31))).toBe(1)
  const kept = ['alive.test', 'back.test', 'newest.test', 'waiting.test']
  expect([await hosts(), [...hash.keys()].toSorted()]).toEqual([kept, kept])
  // Used again and given up again: it is kept for another month.
  await route('back.test', 'none', 7)
  newest = '8 alive.test'
  await route('alive.test', 'alias', 8)
  expect(await forgetGoneHosts(sql, redis, after(32))).toBe(1)
  expect(await hosts()).toEqual(['alive.test', 'back.test', 'waiting.test'])
  expect(await forgetGoneHosts(sql, redis, after(63))).toBe(1)
  expect(await hosts()).toEqual(['alive.test', 'waiting.test'])
})

test('two years by default, and for ever where the operator says so', () => {
  const config = (env: Record<string, string>) => readControlConfig({ SECRET_KEY: 'k'.repeat(32), ...env })
  expect(config({}).recordsKeptMs).toBe(730 * 86_400_000)
  expect(config({ RECORDS_KEPT: '0' }).recordsKeptMs).toBeUndefined()
  expect(() => config({ RECORDS_KEPT: 'ever' })).toThrow(/RECORDS_KEPT must be a duration/)
})
