/** Guessing codes, from as many networks as one likes, with a clock that the test moves. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createVisitDesk, type VisitDesk } from '../../control/drops/visiting/visit-desk.ts'
import { createEnqueueMail } from '../../control/ground/mail/mail.ts'
import { openAdmission } from '../../shared/contracts/admission.ts'
import type { VisitAnswer } from '../../shared/contracts/visit-desk.ts'
import { silentLog } from '../../shared/running/log.ts'
import { createSecrets } from '../../shared/secrets/secrets.ts'
import { createTestDatabase } from '../support/postgres.ts'

const MINUTE_MS = 60_000
const CODES = 1_000_000
const SITE = 'st_1'
const LISTED = 'ada@example.com'
const secrets = createSecrets('a secret key for tests, 32 chars or more')

let database: Awaited<ReturnType<typeof createTestDatabase>>
let desk: VisitDesk
let nowMs = Date.UTC(2026, 2, 1, 12)
let networks = 0
const clock = { now: () => nowMs }
/** Codes as they went out, the newest last. */
const mailed: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  const { sql } = database
  await sql`insert into users (id, email, password_hash, email_verified_at) values ('usr_1', 'o@example.com', '', now())`
  await sql`insert into organisations (id, name, owner_id) values ('org_1', 'o', 'usr_1')`
  await sql`
    insert into sites (id, org_id, slug, dns_target, password_hash, password_generation)
    values (${SITE}, 'org_1', 'plan', 't-1', 'viewers', 1)`
  await sql`
    insert into viewers (id, site_id, kind, value, created_at) values ('vw_1', ${SITE}, 'email', ${LISTED}, now())`
  const enqueue = createEnqueueMail({ secrets, clock })
  desk = createVisitDesk({
    sql,
    clock,
    log: silentLog,
    secrets,
    enqueueMail: async (tx, mail) => {
      if (mail.template === 'viewer_code') mailed.push((mail.data as { code: string }).code)
      await enqueue(tx, mail)
    },
    config: {
      baseUrl: 'https://dropway.test',
      sitesDomain: 'dropway.test',
      publicPort: undefined,
      viewerCodeLifetimeMs: 10 * MINUTE_MS,
      viewerAdmissionMs: 30 * 24 * 60 * MINUTE_MS,
    },
    machineActor: async () => undefined,
  })
})

afterAll(() => database.close())

const about = { site_id: SITE, host: 'plan.dropway.test' }
/** Every question comes from a network of its own. */
const from = (): string => {
  networks += 1
  return `10.${(networks >> 16) & 255}.${(networks >> 8) & 255}.${networks & 255}`
}
const askCode = (email: string): Promise<VisitAnswer> =>
  desk.answer({ kind: 'code', ...about, email, next: '/' }, from())
const tryCode = (email: string, code: string): Promise<VisitAnswer> =>
  desk.answer({ kind: 'try', ...about, email, code }, from())

/** Mails are written after the answer. */
async function settled(): Promise<void> {
  for (let quiet = 0, last = -1; quiet < 5; quiet++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    if (mailed.length !== last) quiet = 0
    last = mailed.length
  }
}

test('the right code lets in once', async () => {
  expect(await askCode(LISTED)).toEqual({ kind: 'sent' })
  await settled()
  const answer = await tryCode(LISTED, mailed.at(-1)!)
  if (answer.kind !== 'admitted') throw new Error(answer.kind)
  expect(openAdmission(secrets, answer.admission)).toMatchObject({ siteId: SITE, subject: 'vw_1', generation: 1 })
  expect(await tryCode(LISTED, mailed.at(-1)!)).toEqual({ kind: 'refused', reason: 'code' })
})

test('a code is over after ten minutes', async () => {
  nowMs += 60 * MINUTE_MS
  await askCode(LISTED)
  await settled()
  nowMs += 10 * MINUTE_MS
  expect(await tryCode(LISTED, mailed.at(-1)!)).toEqual({ kind: 'refused', reason: 'code' })
})

test('guesses that count are so few that one is right after a hundred thousand at the earliest', async () => {
  nowMs += 24 * 60 * MINUTE_MS
  const hours = 2
  const sent = mailed.length
  let looked = 0
  let submitted = 0
  for (let asked = 0; asked < hours * 20; asked++) {
    nowMs += 3 * MINUTE_MS
    await askCode(LISTED)
    await settled()
    const right = mailed.at(-1)!
    const wrong = String((Number(right) + 1) % CODES).padStart(6, '0')
    const before = await triesOf()
    for (let guess = 0; guess < 7; guess++) {
      const answer = await tryCode(LISTED, wrong)
      expect(answer.kind).toBe('refused')
      submitted += 1
    }
    const after = await triesOf()
    expect(after).toBeLessThanOrEqual(5)
    looked += Math.max(0, after - before)
    // No try is left: not even the right one counts.
    expect((await tryCode(LISTED, right)).kind).toBe('refused')
  }
  expect(mailed.length - sent).toBeLessThanOrEqual(hours * 12 + 12)
  expect(looked).toBeGreaterThan(0)
  expect(looked).toBeLessThanOrEqual((hours * 12 + 12) * 5)
  // One code counts at a time, so each guess that was looked at is right once in a million times.
  expect(await countCodes()).toBe(1)
  const codes = mailed.slice(sent)
  expect(codes.every((code) => /^\d{6}$/.test(code))).toBe(true)
  expect(new Set(codes).size).toBeGreaterThan(codes.length - 2)
  // How often one has to try, whoever tries from however many networks, until a guess is right.
  expect(submitted / (looked / CODES)).toBeGreaterThanOrEqual(100_000)
}, 120_000)

test('an address that is not listed leaves the same row and gets no mail', async () => {
  const before = mailed.length
  expect(await askCode('stranger@example.com')).toEqual({ kind: 'sent' })
  await settled()
  expect(mailed.length).toBe(before)
  expect(await countCodes()).toBe(2)
  expect(await tryCode('stranger@example.com', '000000')).toEqual({ kind: 'refused', reason: 'code' })
})

test('a viewer may ask five times in ten minutes', async () => {
  nowMs += 24 * 60 * MINUTE_MS
  const before = mailed.length
  for (let asked = 0; asked < 5; asked++) {
    expect(await askCode(LISTED)).toEqual({ kind: 'sent' })
    await settled()
  }
  expect(mailed.length - before).toBe(5)
})

test('one network asks so often, and then is told when to come back', async () => {
  let last: VisitAnswer = { kind: 'sent' }
  for (let asked = 0; asked < 61; asked++)
    last = await desk.answer({ kind: 'code', ...about, email: 'x@example.com', next: '/' }, '192.0.2.1')
  expect(last).toMatchObject({ kind: 'refused', reason: 'limited' })
})

async function triesOf(): Promise<number> {
  const rows = await database.sql<{ tries: number }[]>`select tries from viewer_codes where subject = 'vw_1'`
  return rows[0]?.tries ?? 0
}

async function countCodes(): Promise<number> {
  const [row] = await database.sql<{ count: number }[]>`select count(*)::int as count from viewer_codes`
  return row!.count
}
