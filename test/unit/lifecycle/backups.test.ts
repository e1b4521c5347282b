import { expect, test } from 'vitest'
import {
  BACKUP_TAKES_MS,
  drillId,
  expiredSnapshots,
  isBackupDue,
  mayBeAtWork,
  mayHaveBegun,
  sortUnfinished,
  snapshotName,
  snapshotTime,
  type BackupRun,
} from '../../../control/plans/backups/rules.ts'
import { readControlConfig } from '../../../control/ground/config.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW_MS = Date.UTC(2030, 5, 15, 12)
const run = (
  startedAgoMs: number,
  rest: Partial<{ aliveAgoMs: number; endedAgoMs: number; error: string }> = {},
): BackupRun => ({
  started_at: new Date(NOW_MS - startedAgoMs),
  alive_at: new Date(NOW_MS - (rest.aliveAgoMs ?? startedAgoMs)),
  ended_at: rest.endedAgoMs === undefined ? null : new Date(NOW_MS - rest.endedAgoMs),
  error: rest.error ?? null,
})
const good = (startedAgoMs: number) => run(startedAgoMs, { endedAgoMs: startedAgoMs - 1000 })

test.each([
  ['there was none', undefined, undefined, true],
  ['the last was an hour ago', good(HOUR_MS), good(HOUR_MS), false],
  ['the last was a day ago', good(DAY_MS), good(DAY_MS), true],
  ['one is under way', run(HOUR_MS, { aliveAgoMs: 10_000 }), good(2 * DAY_MS), false],
  ['one was under way, and its control died', run(HOUR_MS, { aliveAgoMs: 120_000 }), good(2 * DAY_MS), true],
  ['one is under way, and was busy', run(HOUR_MS, { aliveAgoMs: 119_999 }), good(2 * DAY_MS), false],
  ['one failed a minute ago', run(HOUR_MS, { endedAgoMs: 60_000, error: 'x' }), good(2 * DAY_MS), false],
  ['one failed an hour ago', run(2 * HOUR_MS, { endedAgoMs: HOUR_MS, error: 'x' }), good(2 * DAY_MS), true],
  [
    'one failed, and the last good one is young',
    run(HOUR_MS, { endedAgoMs: HOUR_MS, error: 'x' }),
    good(2 * HOUR_MS),
    false,
  ],
])('due when %s: %s', (_, last, lastGood, due) => {
  expect(isBackupDue(last, lastGood, DAY_MS, NOW_MS)).toBe(due)
})

test.each([
  ['a tenth of a short time', 2 * HOUR_MS, 12],
  ['an hour', 30 * HOUR_MS, 60],
])('a failure is tried again after %s', (_, everyMs, minutes) => {
  const dueAfter = (ms: number): boolean =>
    isBackupDue(run(HOUR_MS, { aliveAgoMs: 0, endedAgoMs: ms, error: 'x' }), undefined, everyMs, NOW_MS)
  expect([dueAfter(minutes * 60_000 - 1), dueAfter(minutes * 60_000)]).toEqual([false, true])
})

test('a snapshot is named after its time', () => {
  expect(snapshotName(NOW_MS)).toBe('2030-06-15T12-00-00.000Z')
  expect(snapshotTime(snapshotName(NOW_MS))).toBe(NOW_MS)
  expect(snapshotTime('lost+found')).toBeUndefined()
})

test('old snapshots go; the newest two and strangers stay', () => {
  const names = [1, 20, 40, 60].map((days) => snapshotName(NOW_MS - days * DAY_MS))
  const all = [...names, 'by-hand'].toReversed()
  expect(expiredSnapshots(all, 30 * DAY_MS, NOW_MS)).toEqual([names[2], names[3]])
  expect(expiredSnapshots(all, 40 * DAY_MS, NOW_MS)).toEqual([names[3]])
  expect(expiredSnapshots(names.slice(2), 30 * DAY_MS, NOW_MS)).toEqual([])
})

test('a snapshot without an end is abandoned after two days; strangers are no one’s', () => {
  const [young, old] = [1, 3].map((days) => snapshotName(NOW_MS - days * DAY_MS))
  expect(sortUnfinished([old!, young!, 'by-hand'], NOW_MS)).toEqual({ underWay: [young], abandoned: [old] })
  expect(sortUnfinished([snapshotName(NOW_MS - BACKUP_TAKES_MS)], NOW_MS).abandoned).toEqual([])
  expect(BACKUP_TAKES_MS).toBe(2 * DAY_MS)
})

test('the name of a drill says when it began, to the second', () => {
  expect(drillId(NOW_MS + 999, 'abc')).toBe('71b608c0abc')
  expect(drillId(255_000, 'abc')).toBe('000000ffabc')
})

test.each([
  ['has just begun', mayHaveBegun, 10 * 60_000],
  ['is at work', mayBeAtWork, 2 * DAY_MS],
])('a drill of which nothing else tells may be one that %s, and is none after %3$s ms', (_, may, endsMs) => {
  // What tells drills of one second apart looks like more of the time.
  const id = drillId(NOW_MS, 'fff')
  expect([0, endsMs - 1, endsMs].map((ms) => may(id, NOW_MS + ms))).toEqual([true, true, false])
})

const config = (env: Record<string, string>) => readControlConfig({ SECRET_KEY: 'k'.repeat(32), ...env })

test.each([
  [{ BACKUP_TO: 's3://bucket' }, /BACKUP_TO must be a directory, or look like s3/],
  [{ BACKUP_TO: 'https://backups.example' }, /BACKUP_TO must be a path/],
  [{ BACKUP_TO: '/b', BACKUP_EVERY: '5s' }, /BACKUP_EVERY must be a minute or more/],
  [{ BACKUP_TO: '/b', BACKUP_KEEP: 'ever' }, /BACKUP_KEEP must be a duration/],
] as [Record<string, string>, RegExp][])('%o is refused', (env, words) => {
  expect(() => config(env)).toThrow(words)
})

test('where backups go, how often, and for how long', () => {
  expect(config({ BACKUP_TO: 's3://k:s@b/p?endpoint=https://s3.example' })).toMatchObject({
    backupEveryMs: DAY_MS,
    backupKeepMs: 30 * DAY_MS,
  })
  expect(config({})).toMatchObject({ backupTo: undefined })
})
