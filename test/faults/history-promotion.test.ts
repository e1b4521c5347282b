/**
 * The primary of Postgres dies, and a streaming replica that lagged is promoted in its place, under a running fleet that
 * no one restarts or tells.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { createOwner, type Owner } from '../support/owner.ts'
import { startPostgresPair, type PostgresPair } from '../support/postgres-pair.ts'
import type { Account } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const OPERATIONS = Number(process.env['FAULT_OPERATIONS'] ?? 1000)

let postgres: PostgresPair
let fleet: Fleet
let account: Account
let owner: Owner

beforeAll(async () => {
  postgres = await startPostgresPair()
  fleet = await startFleet({ edges: 2, controls: 2, env: { EDGE_WORKERS: '1', DATABASE_URL: postgres.url } })
  account = await fleet.createAccount('business')
  owner = createOwner(fleet, account)
}, 180_000)
afterAll(async () => {
  await fleet?.stop()
  await postgres?.stop()
}, 60_000)

test('a promoted replica that lagged wins, unasked and without a failed visit', { timeout: 300_000 }, async () => {
  const steady = await seedDrops(fleet, account, 4)
  const [kept, ordinary] = await seedDrops(fleet, account, 2)
  await owner.uploadSoon(kept!, 'the replica has this')
  await postgres.caughtUp()
  await postgres.cutReplication()
  await owner.uploadSoon(kept!, 'the replica lacks this')
  const [orphan] = await seedDrops(fleet, account, 1)
  for (let count = 0; count < 20; count++) await owner.uploadSoon(ordinary!, `later ${count}`)

  const traffic = startTraffic({ ...watchDrops(fleet, steady), perSecond: 50 })
  await postgres.promote()
  await expect.poll(() => owner.textAt(kept!.slug), { timeout: 60_000 }).toContain('the replica has this')
  await expect.poll(() => owner.statusesAt(orphan!.slug), { timeout: 60_000 }).toEqual(Array(8).fill(404))
  await owner.uploadSoon(ordinary!, 'after the failover')
  for (let count = 0; count < 8; count++) expect(await owner.textAt(ordinary!.slug)).toContain('after the failover')

  const wrong = await owner.randomOperations(OPERATIONS)
  const visits = await traffic.stop()
  expect(wrong).toEqual([])
  expect(visits.failures).toEqual([])
  expect(visits.requests).toBeGreaterThan(100)
})
