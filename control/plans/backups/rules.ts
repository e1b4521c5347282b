/** Decisions about backups: no I/O, no clock. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../shared/running/clock.ts'

/** A control that takes a backup says this often that it lives; one that has not for longer than STALE_MS has died. */
export const SIGN_OF_LIFE_MS = 20_000
const STALE_MS = 2 * MINUTE_MS
/** After a failure there is another try, this much later at most. */
const MAX_RETRY_MS = HOUR_MS
/** However old they are, so many snapshots stay: a service that could not take backups for long loses none. */
const MIN_SNAPSHOTS = 2
/** A backup that is being taken beside others, by hand for one, is left alone for so long, with the content that it copied. */
export const BACKUP_TAKES_MS = 2 * DAY_MS

export interface BackupRun {
  readonly started_at: Date
  readonly alive_at: Date
  readonly ended_at: Date | null
  readonly error: string | null
}

/** Is it time for a backup? `last` is the newest run of any control, `lastGood` the newest that succeeded. */
export function isBackupDue(
  last: BackupRun | undefined,
  lastGood: BackupRun | undefined,
  everyMs: number,
  nowMs: number,
): boolean {
  if (last && last.ended_at === null && nowMs - last.alive_at.getTime() < STALE_MS) return false
  const isOverdue = lastGood === undefined || nowMs - lastGood.started_at.getTime() >= everyMs
  const failedAt = last?.error == null ? undefined : last.ended_at?.getTime()
  return isOverdue && (failedAt === undefined || nowMs - failedAt >= Math.min(MAX_RETRY_MS, everyMs / 10))
}

/** `2026-11-17T14-20-00.000Z` → its time; undefined for what is not a snapshot of ours. */
export function snapshotTime(name: string): number | undefined {
  const ms = Date.parse(name.replace(/T(\d{2})-(\d{2})-/, 'T$1:$2:'))
  return Number.isNaN(ms) ? undefined : ms
}

export function snapshotName(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(':', '-')
}

/** Snapshots by name, the newest first; what bears another name is not ours. */
function timed(names: readonly string[]): { name: string; at: number }[] {
  const ours = names.flatMap((name) => {
    const at = snapshotTime(name)
    return at === undefined ? [] : [{ name, at }]
  })
  return ours.toSorted((a, b) => b.at - a.at)
}

/** Those that are older than they are kept for, but never the newest ones, nor what bears another name. */
export function expiredSnapshots(names: readonly string[], keepMs: number, nowMs: number): string[] {
  return timed(names)
    .slice(MIN_SNAPSHOTS)
    .filter(({ at }) => nowMs - at > keepMs)
    .map(({ name }) => name)
}

/** Tells snapshots without an end that may still get one from those whose process must have died. */
export function sortUnfinished(names: readonly string[], nowMs: number): { underWay: string[]; abandoned: string[] } {
  const isAbandoned = ({ at }: { at: number }): boolean => nowMs - at > BACKUP_TAKES_MS
  const ours = timed(names)
  return {
    underWay: ours.filter((each) => !isAbandoned(each)).map(({ name }) => name),
    abandoned: ours.filter(isAbandoned).map(({ name }) => name),
  }
}

/** Making a scratch database and connecting to it takes a drill moments; one without a connection after that is no one's. */
const DRILL_BEGINS_WITHIN_MS = 10 * MINUTE_MS

/** A drill is over by then: at 6 MB a second two days are enough for a terabyte. */
const DRILL_ENDS_WITHIN_MS = 2 * DAY_MS

/** Names a drill, and says when it began. `random` tells drills of the same second apart. */
export function drillId(nowMs: number, random: string): string {
  return (
    Math.floor(nowMs / SECOND_MS)
      .toString(16)
      .padStart(8, '0') + random
  )
}

/** May a drill that no one is connected for have just begun? */
export function mayHaveBegun(id: string, nowMs: number): boolean {
  return ageOfDrill(id, nowMs) < DRILL_BEGINS_WITHIN_MS
}

/** May a drill of which nothing else tells be at work? */
export function mayBeAtWork(id: string, nowMs: number): boolean {
  return ageOfDrill(id, nowMs) < DRILL_ENDS_WITHIN_MS
}

function ageOfDrill(id: string, nowMs: number): number {
  return nowMs - Number.parseInt(id.slice(0, 8), 16) * SECOND_MS
}
