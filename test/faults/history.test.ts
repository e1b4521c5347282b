/**
 * Postgres is set back under a running fleet: by a restore into another database, with two edges and two controls that
 * nobody restarts, visitors who keep coming, and edges that hold newer revisions than the restored tables.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../control/ground/database/sql.ts'
import { seedDrops, watchDrops } from '../support/faults.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import type { Account, Published } from '../support/stack.ts'
import { startTraffic } from '../support/traffic.ts'

const OPERATIONS = Number(process.env['FAULT_OPERATIONS'] ?? 1000)

let fleet: Fleet
let account: Account

beforeAll(async () => {
  fleet = await startFleet({ edges: 2, controls: 2, env: { EDGE_WORKERS: '1' } })
  account = await fleet.createAccount('business')
}, 120_000)
afterAll(() => fleet?.stop(), 60_000)

/** Runs while nobody is connected to the database: as the tools that copy and rename one want it. */
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
  await uploadSoon(site, 'the database is back')
}

async function restoreDump(name: string): Promise<void> {
  await alone(async (sql) => {
    await sql.unsafe(`alter database dropway rename to lost_${randomBytes(4).toString('hex')}`)
    await sql.unsafe(`create database dropway template ${name}`)
  })
}

const textAt = async (slug: string) => (await fleet.visit(slug)).text()
const statusAt = async (slug: string) => (await fleet.visit(slug)).status
/** Both edges, whatever the balancer does. */
const statusesAt = (slug: string) => Promise.all(Array.from({ length: 8 }, () => statusAt(slug)))

async function upload(site: Published, text: string): Promise<{ status: number; pending: boolean }> {
  const body = new FormData()
  body.append('file', new File([`<title>x</title><p>${text}</p>`], 'index.html'))
  const answer = await fleet.fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
  return { status: answer.status, pending: answer.header('dropway-propagation') === 'pending' }
}

/** Calls that met the moment of the restore are refused; the owner asks again. */
async function uploadSoon(site: Published, text: string): Promise<void> {
  for (let attempt = 0; attempt < 60; attempt++) {
    const { status, pending } = await upload(site, text)
    if (status === 201 && !pending) return
    await sleep(500)
  }
  throw new Error('no upload is acknowledged any more')
}

describe('a restored Postgres wins', () => {
  test(
    'over edges with newer revisions, without being told, without a failed visit',
    { timeout: 240_000 },
    async () => {
      const steady = await seedDrops(fleet, account, 4)
      const [restored, ordinary] = await seedDrops(fleet, account, 2)
      await uploadSoon(restored!, 'before the backup')
      await takeDump('backup_one', ordinary!)
      await uploadSoon(restored!, 'after the backup')
      const [orphan] = await seedDrops(fleet, account, 1)
      for (let count = 0; count < 20; count++) await uploadSoon(ordinary!, `later ${count}`)

      const traffic = startTraffic({ ...watchDrops(fleet, steady), perSecond: 50 })
      await restoreDump('backup_one')
      await expect.poll(() => textAt(restored!.slug), { timeout: 30_000 }).toContain('before the backup')
      // What the database does not know any more is taken from the edges.
      await expect.poll(() => statusesAt(orphan!.slug), { timeout: 30_000 }).toEqual(Array(8).fill(404))
      await uploadSoon(ordinary!, 'after the restore')
      for (let count = 0; count < 8; count++) expect(await textAt(ordinary!.slug)).toContain('after the restore')
      const taken = await fleet.admin('takedown', restored!.slug, '--reason', 'phishing')
      expect(taken, taken.stderr).toMatchObject({ code: 0 })
      expect(await statusesAt(restored!.slug)).toEqual(Array(8).fill(410))

      const wrong = await randomOperations(OPERATIONS)
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
    expect(await statusesAt(orphans[0]!.slug)).toEqual(Array(8).fill(410))
    // More than a moment's changes: nobody removes them unasked.
    expect(await statusesAt(orphans[1]!.slug)).toEqual(Array(8).fill(200))
    const refused = await fleet.admin('republish', '--remove-unknown', '5')
    expect(JSON.parse(refused.stdout)).toMatchObject({ unknown: 29, removed: 0, pending: false })
    const removed = await fleet.admin('republish', '--new-history', '--remove-unknown', 'all')
    expect(JSON.parse(removed.stdout)).toMatchObject({ unknown: 29, removed: 29, pending: false })
    for (const { slug } of orphans.slice(1)) expect(await statusAt(slug)).toBe(404)
  }, 180_000)
})

/** Each is looked at on both edges as soon as it is acknowledged. Returns what was not as acknowledged. */
async function randomOperations(count: number): Promise<string[]> {
  const wrong: string[] = []
  const sites = await seedDrops(fleet, account, 5)
  const lanes = sites.map(async (site, lane) => {
    for (let index = 0; index < count / sites.length; index++) {
      const what = await operate(site, `${lane} ${index}`)
      if (what !== undefined) wrong.push(what)
    }
  })
  await Promise.all(lanes)
  return wrong
}

async function operate(site: Published, marker: string): Promise<string | undefined> {
  if (Math.random() < 0.7) {
    const { status, pending } = await upload(site, `operation ${marker}.`)
    if (status !== 201) return `upload ${marker}: ${status}`
    if (pending) return undefined
    const seen = await Promise.all([textAt(site.slug), textAt(site.slug)])
    return seen.every((text) => text.includes(`operation ${marker}.`)) ? undefined : `${marker} is not served`
  }
  const password = Math.random() < 0.5 ? null : `secret ${marker}`
  const answer = await fleet.fetch(`/api/v1/sites/${site.id}`, {
    method: 'PATCH',
    token: account.token,
    json: { password },
  })
  if (answer.status !== 200) return `password ${marker}: ${answer.status}`
  if (answer.header('dropway-propagation') === 'pending') return undefined
  const seen = await Promise.all([statusAt(site.slug), statusAt(site.slug)])
  const wanted = password === null ? 200 : 401
  const undone = await fleet.fetch(`/api/v1/sites/${site.id}`, {
    method: 'PATCH',
    token: account.token,
    json: { password: null },
  })
  if (undone.status !== 200) return `password ${marker}: ${undone.status}`
  return seen.every((status) => status === wanted) ? undefined : `${marker}: ${seen.join()} instead of ${wanted}`
}
