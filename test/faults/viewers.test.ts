/** Who may see a drop, on two edges: what is taken back, what a restored database knows, and who is in without services. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../control/ground/database/sql.ts'
import { nextAddress } from '../support/addresses.ts'
import { fileForm } from '../support/api.ts'
import { startFleet, type Fleet } from '../support/fleet.ts'
import { createOwner, type Owner } from '../support/owner.ts'
import type { Account, Published } from '../support/stack.ts'
import { viewerMail, viewerMails } from '../support/viewer-mail.ts'

let fleet: Fleet
let account: Account
let owner: Owner

beforeAll(async () => {
  fleet = await startFleet({ edges: 2, controls: 1, env: { EDGE_WORKERS: '2' } })
  account = await fleet.createAccount('business')
  owner = createOwner(fleet, account)
}, 120_000)
afterAll(() => fleet?.stop(), 60_000)

const email = (name: string): string => `${name}-${process.pid}@example.com`

async function sharedDrop(viewers: readonly string[]): Promise<Published> {
  const site = (await fleet.fetch('/api/v1/sites', { token: account.token, json: {} })).json<Published>()
  const fields = { access_mode: 'viewers', viewers: viewers.join(), invite: 'false' }
  const body = fileForm('index.html', '<p>inside</p>', fields)
  const answer = await fleet.fetch(`/api/v1/sites/${site.id}/upload`, { token: account.token, body })
  expect(answer.status, answer.text()).toBe(201)
  return site
}

const post = (site: Published, form: Record<string, string>) =>
  fleet.visit(site.slug, '/.dropway/visit', {
    method: 'POST',
    from: nextAddress(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })

async function comeIn(site: Published, address: string): Promise<string> {
  const before = viewerMails(fleet, address).length
  await post(site, { do: 'code', email: address, next: '/' })
  const { code = '' } = await viewerMail(fleet, address, before + 1)
  const answer = await post(site, { do: 'try', email: address, code, next: '/' })
  expect(answer.status, answer.text()).toBe(303)
  return answer.cookies.join('; ')
}

/** Often enough that every worker of both edges is asked. */
async function statuses(site: Published, cookie: string): Promise<number[]> {
  const answers = Array.from({ length: 40 }, () => fleet.visit(site.slug, '/', { headers: { cookie } }))
  return [...new Set((await Promise.all(answers)).map(({ status }) => status))]
}

async function remove(site: Published, address: string): Promise<void> {
  const list = await fleet.fetch(`/api/v1/sites/${site.id}/viewers`, { token: account.token })
  const viewer = list
    .json<{ viewers: { id: string; value: string }[] }>()
    .viewers.find(({ value }) => value === address)
  const answer = await fleet.fetch(`/api/v1/sites/${site.id}/viewers/${viewer?.id}`, {
    token: account.token,
    method: 'DELETE',
  })
  expect([answer.status, answer.header('dropway-propagation')]).toEqual([204, undefined])
}

test('what is acknowledged as taken back is refused by every worker of both edges', { timeout: 120_000 }, async () => {
  const site = await sharedDrop(Array.from({ length: 5 }, (_, index) => email(`viewer${index}`)))
  for (let index = 0; index < 5; index++) {
    const cookie = await comeIn(site, email(`viewer${index}`))
    expect(await statuses(site, cookie)).toEqual([200])
    await remove(site, email(`viewer${index}`))
    expect(await statuses(site, cookie)).toEqual([401])
  }
})

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

test('a restored database readmits no one', { timeout: 240_000 }, async () => {
  const site = await sharedDrop([email('restored')])
  const other = await sharedDrop([])
  const cookie = await comeIn(site, email('restored'))
  const dump = `dump_${randomBytes(4).toString('hex')}`
  await alone(async (sql) => void (await sql.unsafe(`create database ${dump} template dropway`)))
  await owner.uploadSoon(other, 'the database is back')
  await remove(site, email('restored'))
  expect(await statuses(site, cookie)).toEqual([401])
  await alone(async (sql) => {
    await sql.unsafe(`alter database dropway rename to lost_${randomBytes(4).toString('hex')}`)
    await sql.unsafe(`create database dropway template ${dump}`)
  })
  // The list of that day names the viewer again; the cookie of that day opens nothing.
  await owner.uploadSoon(other, 'the restored database publishes')
  expect(await statuses(site, cookie)).toEqual([401])
  expect(await statuses(site, await comeIn(site, email('restored')))).toEqual([200])
})

test('who is in stays in without control, Redis and Postgres', { timeout: 120_000 }, async () => {
  const site = await sharedDrop([email('inside')])
  const cookie = await comeIn(site, email('inside'))
  for (const control of fleet.controls) await control.stop()
  await fleet.redis.stop()
  await fleet.postgres.stop()
  expect(await statuses(site, cookie)).toEqual([200])
  expect(await statuses(site, '')).toEqual([401])
  expect((await post(site, { do: 'code', email: email('late'), next: '/' })).status).toBe(502)
})
