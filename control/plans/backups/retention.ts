/** What goes from a place of backups: snapshots that are old or have no end, and content that no snapshot needs any more. */
import { blobList, hasFile, type BackupPlace } from './place.ts'
import { linesIn } from './restore.ts'
import { BACKUP_TAKES_MS, expiredSnapshots, sortUnfinished } from './rules.ts'

export interface Pruned {
  readonly snapshots: number
  readonly blobs: number
}

/** So much content goes before the place is looked at again: in a bucket each look is a list of all files of snapshots. */
const REMOVED_AT_ONCE = 100

export async function prunePlace(place: BackupPlace, keepMs: number, nowMs: number): Promise<Pruned> {
  const expired = expiredSnapshots(await place.snapshots(), keepMs, nowMs)
  for (const name of expired) await place.remove(name)
  const abandoned = await removeAbandoned(place, nowMs)
  return { snapshots: expired.length + abandoned, blobs: await pruneContent(place, nowMs) }
}

/**
 * Takes away the tables that killed backups left, and returns how many backups these were. Content that they copied stays
 * for the next one, which copies only what it does not find.
 */
export async function removeAbandoned(place: BackupPlace, nowMs: number): Promise<number> {
  const { abandoned } = sortUnfinished(await place.unfinished(), nowMs)
  for (const name of abandoned) await place.remove(name)
  return abandoned.length
}

/**
 * Removes what no snapshot needs, nor one that is being taken: that one copies only what it does not find. Nothing goes
 * while one of them does not say what it needs: one of an earlier release has no list, one that has just begun has none
 * yet. For the same reason nothing more goes once another one has begun.
 */
export async function pruneContent(place: BackupPlace, nowMs: number): Promise<number> {
  const counted = new Set(await namesIn(place, nowMs))
  const needed = new Set<string>()
  for (const name of counted) {
    if (!(await hasFile(place, blobList(name)))) return 0
    for await (const hash of linesIn(place, blobList(name))) needed.add(hash)
  }
  const unneeded: string[] = []
  for await (const { hash, modifiedAt } of place.blobs.list())
    if (!needed.has(hash) && nowMs - modifiedAt >= BACKUP_TAKES_MS) unneeded.push(hash)
  for (const [index, hash] of unneeded.entries()) {
    const looksAgain = index % REMOVED_AT_ONCE === 0
    if (looksAgain && (await namesIn(place, nowMs)).some((name) => !counted.has(name))) return index
    await place.blobs.remove(hash)
  }
  return unneeded.length
}

/** Snapshots that count. Those under way first: one that ends in between is among the complete ones. */
async function namesIn(place: BackupPlace, nowMs: number): Promise<string[]> {
  const { underWay } = sortUnfinished(await place.unfinished(), nowMs)
  return [...underWay, ...(await place.snapshots())]
}
