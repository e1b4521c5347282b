/** How far the audit log and the list of publishes reach back. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgetPublishes } from '../../control/drops/sites/kept/publish-records.ts'
import { readControlConfig } from '../../control/ground/config.ts'
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

test('two years by default, and for ever where the operator says so', () => {
  const config = (env: Record<string, string>) => readControlConfig({ SECRET_KEY: 'k'.repeat(32), ...env })
  expect(config({}).recordsKeptMs).toBe(730 * 86_400_000)
  expect(config({ RECORDS_KEPT: '0' }).recordsKeptMs).toBeUndefined()
  expect(() => config({ RECORDS_KEPT: 'ever' })).toThrow(/RECORDS_KEPT must be a duration/)
})
