import { describe, expect, test } from 'vitest'
import { nextStep } from '../../../control/people/accounts/closing.ts'
import { actsAt, dueNotice, nextNoticeAt, noticesOf } from '../../../control/plans/lifecycle/rules.ts'
import { DAY_MS } from '../../../shared/running/clock.ts'
import { leadsOf } from '../../../control/ground/terms/warnings.ts'

const settings = {
  freeIdleLifetimeMs: 30 * DAY_MS,
  recoveryWindowMs: 30 * DAY_MS,
  expiryWarningsMs: [7 * DAY_MS, DAY_MS],
  removalWarningMs: 7 * DAY_MS,
}
const notices = noticesOf(settings)
const END = Date.UTC(2027, 0, 31)
const drop = (told: string[] = [], endsInMs = 0) => ({ expires_at: new Date(END + endsInMs), told })
const kindAt = (days: number, told: string[] = []): string | undefined =>
  dueNotice(notices, [drop(told)], END + days * DAY_MS)?.notice.kind

test.each([
  [-8, [], undefined],
  [-7 - 1 / DAY_MS, [], undefined],
  [-7, [], 'expiring_1'],
  [-6, ['expiring_1'], undefined],
  // Nothing was sent a week before: the later warning says it better.
  [-0.5, [], 'expiring_2'],
  [0, ['expiring_1', 'expiring_2'], 'expired'],
  [22, ['expired'], undefined],
  [23, ['expired'], 'removal'],
  [400, [], 'expired'],
  [400, ['expired'], 'removal'],
  [400, ['expired', 'removal'], undefined],
])('%d days after the end, told of %j: %s', (days, told, kind) => {
  expect(kindAt(days, told)).toBe(kind)
})

test('a warning is sent until the moment at which the next mail says it better', () => {
  expect(kindAt(-1 - 1 / DAY_MS)).toBe('expiring_1')
  expect(kindAt(-1)).toBe('expiring_2')
  expect(kindAt(-1 / DAY_MS)).toBe('expiring_2')
  expect(kindAt(0)).toBe('expired')
})

test.each([
  ['expiring_1', 'expiring', -7, 0],
  ['expiring_2', 'expiring', -1, 0],
  ['expired', 'expired', 0, 30],
  ['removal', 'removal', 23, 30],
])('%s is written as %s and, sent on day %d, names day %d', (kind, template, sentOn, acts) => {
  const notice = notices.find((candidate) => candidate.kind === kind)!
  expect(notice.template).toBe(template)
  expect(actsAt(notice, drop(), END + sentOn * DAY_MS)).toEqual(new Date(END + acts * DAY_MS))
})

test('a warning that is late names the end itself', () => {
  for (const late of [DAY_MS, 0]) expect(actsAt(notices[0]!, drop(), END - late)).toEqual(new Date(END))
})

test.each([
  ['expiring_1', [], -7, 1],
  ['expiring_2', ['expiring_1'], -1, 1 / 7],
  ['expired', ['expiring_1', 'expiring_2'], 0, 0],
  ['removal', ['expired'], 23, 1],
])('%s gathers drops that are due within a seventh of its lead', (kind, told, day, gatheredDays) => {
  const now = END + day * DAY_MS
  const last = drop(told, gatheredDays * DAY_MS)
  const next = drop(told, gatheredDays * DAY_MS + 1)
  const due = dueNotice(notices, [next, drop(told), last], now)
  expect(due?.notice.kind).toBe(kind)
  expect(due?.drops).toEqual([drop(told), last])
})

test('a mail is about drops whose next notice it is', () => {
  const all = ['expiring_1', 'expiring_2', 'expired', 'removal']
  const due = dueNotice(notices, [drop(all), drop(['expiring_1']), drop(), drop(['expiring_1'], -1)], END - 7 * DAY_MS)
  expect(due).toMatchObject({ notice: { kind: 'expiring_1' }, drops: [drop()] })
  const both = dueNotice(notices, [drop(['expiring_1', 'expiring_2']), drop(['expired'], -23 * DAY_MS)], END)
  expect(both).toMatchObject({ notice: { kind: 'expired' } })
})

test('nothing is due after everything was sent', () => {
  expect(nextNoticeAt(notices, drop(['expired', 'removal']), END + DAY_MS)).toBeNull()
})

test('the date of a late mail leaves its reader the whole lead', () => {
  const removal = notices.at(-1)!
  expect(actsAt(removal, drop(), END + 23 * DAY_MS)).toEqual(new Date(END + 30 * DAY_MS))
  expect(actsAt(removal, drop(), END + 90 * DAY_MS)).toEqual(new Date(END + 97 * DAY_MS))
})

test('a mail gathers what is due soon after, and nothing else', () => {
  const soon = drop([], DAY_MS / 2)
  const late = drop([], 3 * DAY_MS)
  const due = dueNotice(notices, [drop(), soon, late], END - 7 * DAY_MS)
  expect(due?.drops).toEqual([drop(), soon])
  expect(nextNoticeAt(notices, late, END - 7 * DAY_MS)).toEqual(new Date(END - 4 * DAY_MS))
})

test.each([
  [[7, 1], 30, [7, 1]],
  [[7, 1], 10, [5, 1]],
  [[7, 1], 1, [0.5]],
])('warnings %j of a period of %d are due %j before its end', (warnings, period, leads) => {
  expect(leadsOf(warnings, period)).toEqual(leads)
})

describe('an account that was never verified', () => {
  const created = new Date(Date.UTC(2027, 0, 1))
  const times = { unverifiedLifetimeMs: 90 * DAY_MS, unverifiedWarningsMs: [30 * DAY_MS, 7 * DAY_MS] }
  const after = (days: number): Date => new Date(created.getTime() + days * DAY_MS)
  const told = (...days: number[]) =>
    days.map((day, index) => ({ kind: `unverified_${index + 1}`, actsAt: after(day) }))

  test.each([
    [59, told(), { kind: 'wait' }],
    [60, told(), { kind: 'tell', notice: 'unverified_1', actsAt: after(90) }],
    [61, told(90), { kind: 'wait' }],
    [83, told(90), { kind: 'tell', notice: 'unverified_2', actsAt: after(90) }],
    [89, told(90, 90), { kind: 'wait' }],
    [90, told(90, 90), { kind: 'close' }],
    [400, told(), { kind: 'tell', notice: 'unverified_1', actsAt: after(430) }],
    [400, told(430), { kind: 'wait' }],
  ])('after %d days, told %j', (days, notices_, step) => {
    expect(nextStep(created, notices_, after(days).getTime(), times)).toEqual(step)
  })
})
