/** Guessing codes, from as many networks as one likes, with a clock that the test moves. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Actor } from '../../control/ground/actor.ts'
import { openAdmission } from '../../shared/contracts/admission.ts'
import type { VisitAnswer } from '../../shared/contracts/visit-desk.ts'
import { createVisitDeskFixture, type VisitDeskFixture } from '../support/visit-desk.ts'

const MINUTE_MS = 60_000
const CODES = 1_000_000

let fixture: VisitDeskFixture
let listed: string
let mailed: readonly string[]
let networks = 0

beforeAll(async () => {
  fixture = await createVisitDeskFixture()
  ;({ listed, mailed } = fixture)
})
afterAll(() => fixture.close())

/** Every question comes from a network of its own. */
const from = (): string => {
  networks += 1
  return `10.${(networks >> 16) & 255}.${(networks >> 8) & 255}.${networks & 255}`
}
const askCode = (email: string): Promise<VisitAnswer> =>
  fixture.desk.answer({ kind: 'code', ...fixture.about, email, next: '/' }, from())
const tryCode = (email: string, code: string): Promise<VisitAnswer> =>
  fixture.desk.answer({ kind: 'try', ...fixture.about, email, code }, from())

async function nextCode(before: number): Promise<string> {
  await fixture.idle()
  expect(mailed.length).toBeGreaterThan(before)
  return mailed.at(-1)!
}

test('the right code lets in once', async () => {
  expect(await askCode(listed)).toEqual({ kind: 'sent' })
  const answer = await tryCode(listed, await nextCode(0))
  if (answer.kind !== 'admitted') throw new Error(answer.kind)
  expect(openAdmission(fixture.secrets, answer.admission)).toMatchObject({
    siteId: fixture.about.site_id,
    subject: 'vw_1',
    generation: 1,
  })
  expect(await tryCode(listed, mailed.at(-1)!)).toEqual({ kind: 'refused', reason: 'code' })
})

test('a code is over after ten minutes', async () => {
  fixture.advance(60 * MINUTE_MS)
  const before = mailed.length
  await askCode(listed)
  await nextCode(before)
  fixture.advance(10 * MINUTE_MS)
  expect(await tryCode(listed, mailed.at(-1)!)).toEqual({ kind: 'refused', reason: 'code' })
})

test('guesses that count are so few that one is right after a hundred thousand at the earliest', async () => {
  fixture.advance(24 * 60 * MINUTE_MS)
  const hours = 2
  const sent = mailed.length
  let looked = 0
  let submitted = 0
  for (let asked = 0; asked < hours * 20; asked++) {
    fixture.advance(3 * MINUTE_MS)
    await askCode(listed)
    await fixture.idle()
    const right = mailed.at(-1)!
    const wrong = String((Number(right) + 1) % CODES).padStart(6, '0')
    const before = await triesOf()
    for (let guess = 0; guess < 7; guess++) {
      const answer = await tryCode(listed, wrong)
      expect(answer.kind).toBe('refused')
      submitted += 1
    }
    const after = await triesOf()
    expect(after).toBeLessThanOrEqual(5)
    looked += Math.max(0, after - before)
    // No try is left: not even the right one counts.
    expect((await tryCode(listed, right)).kind).toBe('refused')
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
})

test('an address that is not listed leaves the same row and gets no mail', async () => {
  const before = mailed.length
  expect(await askCode('stranger@example.com')).toEqual({ kind: 'sent' })
  await fixture.idle()
  expect(mailed.length).toBe(before)
  expect(await countCodes()).toBe(2)
  expect(await tryCode('stranger@example.com', '000000')).toEqual({ kind: 'refused', reason: 'code' })
})

test('a viewer may ask five times in ten minutes, and gets twelve mails an hour', async () => {
  fixture.advance(24 * 60 * MINUTE_MS)
  const before = mailed.length
  for (let asked = 0; asked < 5; asked++) {
    expect(await askCode(listed)).toEqual({ kind: 'sent' })
    await fixture.idle()
  }
  expect(mailed.length - before).toBe(5)
  for (let asked = 5; asked < 15; asked++) {
    expect(await askCode(listed)).toEqual({ kind: 'sent' })
    await fixture.idle()
  }
  expect(mailed.length - before).toBe(12)
})

test('one network asks so often, and then is told when to come back', async () => {
  let last: VisitAnswer = { kind: 'sent' }
  for (let asked = 0; asked < 61; asked++)
    last = await fixture.desk.answer({ kind: 'code', ...fixture.about, email: 'x@example.com', next: '/' }, '192.0.2.1')
  expect(last).toMatchObject({ kind: 'refused', reason: 'limited' })
})

test('what a token opened is over within a minute, and a token that was revoked opens nothing again', async () => {
  const question = { kind: 'machine', ...fixture.about, bearer: 'dw_token' } as const
  expect(await fixture.desk.answer(question, from())).toEqual({ kind: 'refused', reason: 'machine' })
  fixture.setMachine(machineOf('org_2'))
  expect(await fixture.desk.answer(question, from())).toEqual({ kind: 'refused', reason: 'machine' })
  fixture.setMachine(machineOf('org_1'))
  const opened = await fixture.desk.answer(question, from())
  if (opened.kind !== 'admitted') throw new Error(opened.kind)
  const admission = openAdmission(fixture.secrets, opened.admission)
  expect(admission).toMatchObject({ subject: 'tok_1' })
  expect(admission!.endsAt - fixture.now()).toBeLessThanOrEqual(MINUTE_MS)
  fixture.setMachine(undefined)
  expect(await fixture.desk.answer(question, from())).toEqual({ kind: 'refused', reason: 'machine' })
})

function machineOf(orgId: string): Actor {
  return {
    userId: 'usr_1',
    email: 'o@example.com',
    emailVerified: true,
    isStaff: false,
    orgId,
    role: 'owner',
    plan: 'plus',
    reach: { scope: 'read', sites: undefined },
    via: { kind: 'token', tokenId: 'tok_1' },
    ip: '192.0.2.1',
  }
}

async function triesOf(): Promise<number> {
  const rows = await fixture.database.sql<{ tries: number }[]>`select tries from viewer_codes where subject = 'vw_1'`
  return rows[0]?.tries ?? 0
}

async function countCodes(): Promise<number> {
  const [row] = await fixture.database.sql<{ count: number }[]>`select count(*)::int as count from viewer_codes`
  return row!.count
}
