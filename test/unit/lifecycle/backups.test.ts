import { expect, test } from 'vitest'
import {
  expiredSnapshots,
  isBackupDue,
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
  ['one was under way, and its control died', run(HOUR_MS, { aliveAgoMs: 300_000 }), good(2 * DAY_MS), true],
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

test('a snapshot is named after its time', () => {
  expect(snapshotName(NOW_MS)).toBe('2030-06-15T12-00-00.000Z')
  expect(snapshotTime(snapshotName(NOW_MS))).toBe(NOW_MS)
  expect(snapshotTime('lost+found')).toBeUndefined()
})

test('old snapshots go; the newest two and strangers stay', () => {
  const names = [1, 20, 40, 60].map((days) => snapshotName(NOW_MS - days * DAY_MS))
  expect(expiredSnapshots([...names, 'by-hand'], 30 * DAY_MS, NOW_MS)).toEqual([names[2], names[3]])
  expect(expiredSnapshots(names.slice(2), 30 * DAY_MS, NOW_MS)).toEqual([])
})

test('a snapshot without an end is abandoned after two days; strangers are no one’s', () => {
  const [young, old] = [1, 3].map((days) => snapshotName(NOW_MS - days * DAY_MS))
  expect(sortUnfinished([old!, young!, 'by-hand'], NOW_MS)).toEqual({ underWay: [young], abandoned: [old] })
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
