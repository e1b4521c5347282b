/**
 * Postgres is set back under a running fleet: by a restore into another database, with two edges and two controls that
 * no one restarts, visitors who keep coming, and edges that hold newer revisions than the restored tables.
 */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../control/ground/database/sql.ts'
import { seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { createOwner, type Owner } from '../support/owner.ts'
import type { Account, Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const OPERATIONS = Number(process.env['FAULT_OPERATIONS'] ?? 1000)

let fleet: Fleet
let account: Account
let owner: Owner

beforeAll(async () => {
  fleet = await startFleet({ edges: 2, controls: 2, env: { EDGE_WORKERS: '1' } })
  account = await fleet.createAccount('business')
  owner = createOwner(fleet, account)
}, 120_000)
afterAll(() => fleet?.stop(), 60_000)

/** Runs while no one is connected to the database: as the tools that copy and rename one want it. */
async function alone(work: (sql: ReturnType<typeof openDatabase>) => Promise<void>): Promise<void> {
  const sql = openDatabase({ url: `${fleet.postgres.url}?database=postgres`, maxConnections: 1 })
  try {
    await sql.unsafe(`alter database dropway allow_connections false`)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'dropway'`
    await work(sql)
    await sql.unsafe(`alter database dropway allow_connections true`)
  } finally {
    await sql.end()
  }
}

/** Resolves when publishing works again. */
async function takeDump(name: string, site: Published): Promise<void> {
  await alone(async (sql) => void (await sql.unsafe(`create database ${name} template dropway`)))
  await owner.uploadSoon(site, 'the database is back')
}

async function restoreDump(name: string): Promise<void> {
  await alone(async (sql) => {
    await sql.unsafe(`alter database dropway rename to lost_${randomBytes(4).toString('hex')}`)
    await sql.unsafe(`create database dropway template ${name}`)
  })
}

describe('a restored Postgres wins', () => {
  test(
    'over edges with newer revisions, without being told, without a failed visit',
    { timeout: 240_000 },
    async () => {
      const steady = await seedDrops(fleet, account, 4)
      const [restored, ordinary] = await seedDrops(fleet, account, 2)
      await owner.uploadSoon(restored!, 'before the backup')
      await takeDump('backup_one', ordinary!)
      await owner.uploadSoon(restored!, 'after the backup')
      const [orphan] = await seedDrops(fleet, account, 1)
      for (let count = 0; count < 20; count++) await owner.uploadSoon(ordinary!, `later ${count}`)

      const traffic = startTraffic({ ...watchDrops(fleet, steady), perSecond: 50 })
      await restoreDump('backup_one')
      await expect.poll(() => owner.textAt(restored!.slug), { timeout: 30_000 }).toContain('before the backup')
      // What the database does not know any more is taken from the edges.
      await expect.poll(() => owner.statusesAt(orphan!.slug), { timeout: 30_000 }).toEqual(Array(8).fill(404))
      await owner.uploadSoon(ordinary!, 'after the restore')
      for (let count = 0; count < 8; count++) expect(await owner.textAt(ordinary!.slug)).toContain('after the restore')
      const taken = await fleet.admin('takedown', restored!.slug, '--reason', 'phishing')
      expect(taken, taken.stderr).toMatchObject({ code: 0 })
      expect(await owner.statusesAt(restored!.slug)).toEqual(Array(8).fill(410))

      const wrong = await owner.randomOperations(OPERATIONS)
      const visits = await traffic.stop()
      expect(wrong).toEqual([])
      expect(visits.failures).toEqual([])
      expect(visits.requests).toBeGreaterThan(100)
    },
  )

  test('an address that only the edges know can be taken down, and needs a flag to be removed in numbers', async () => {
    const [ordinary] = await seedDrops(fleet, account, 1)
    await takeDump('backup_two', ordinary!)
    const orphans = await seedDrops(fleet, account, 30)
    await restoreDump('backup_two')
    await expect
      .poll(async () => (await fleet.admin('takedown', orphans[0]!.slug, '--reason', 'phishing')).code, {
        timeout: 60_000,
      })
      .toBe(0)
    expect(await owner.statusesAt(orphans[0]!.slug)).toEqual(Array(8).fill(410))
    // More than a moment's changes: no one removes them unasked.
    expect(await owner.statusesAt(orphans[1]!.slug)).toEqual(Array(8).fill(200))
    const refused = await fleet.admin('republish', '--remove-unknown', '5')
    expect(JSON.parse(refused.stdout)).toMatchObject({ unknown: 29, removed: 0, pending: false })
    const removed = await fleet.admin('republish', '--new-history', '--remove-unknown', 'all')
    expect(JSON.parse(removed.stdout)).toMatchObject({ unknown: 29, removed: 29, pending: false })
    for (const { slug } of orphans.slice(1)) expect(await owner.statusAt(slug)).toBe(404)
  }, 180_000)
})
