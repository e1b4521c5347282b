/** What goes from a place of backups: snapshots that are old or have no end, and content that no snapshot needs any more. */
import { blobList, hasFile, type BackupPlace } from './place.ts'
import { linesIn } from './restore.ts'
import { BACKUP_TAKES_MS, expiredSnapshots, sortUnfinished } from './rules.ts'

export interface Pruned {
  readonly snapshots: number
  readonly blobs: number
}

export async function prunePlace(place: BackupPlace, keepMs: number, nowMs: number): Promise<Pruned> {
  const expired = expiredSnapshots(await place.snapshots(), keepMs, nowMs)
  return removeAll(place, [...expired, ...(await abandonedIn(place, nowMs))], nowMs)
}

/** Takes away what killed backups left, and nothing else: at a place where backups are taken by hand, too. */
export async function pruneAbandoned(place: BackupPlace, nowMs: number): Promise<Pruned> {
  return removeAll(place, await abandonedIn(place, nowMs), nowMs)
}

async function abandonedIn(place: BackupPlace, nowMs: number): Promise<string[]> {
  return sortUnfinished(await place.unfinished(), nowMs).abandoned
}

async function removeAll(place: BackupPlace, gone: readonly string[], nowMs: number): Promise<Pruned> {
  for (const name of gone) await place.remove(name)
  return { snapshots: gone.length, blobs: gone.length === 0 ? 0 : await pruneBlobs(place, nowMs) }
}

/**
 * Removes what no snapshot needs, nor one that is being taken: that one copies only what it does not find. Nothing goes
 * while one of them does not say what it needs: one of an earlier release has no list, one that has just begun has none yet.
 */
async function pruneBlobs(place: BackupPlace, nowMs: number): Promise<number> {
  // Those under way first: one that ends in between is among the others.
  const { underWay } = sortUnfinished(await place.unfinished(), nowMs)
  const needed = new Set<string>()
  for (const name of [...underWay, ...(await place.snapshots())]) {
    if (!(await hasFile(place, blobList(name)))) return 0
    for await (const hash of linesIn(place, blobList(name))) needed.add(hash)
  }
  let removed = 0
  for await (const { hash, modifiedAt } of place.blobs.list()) {
    if (needed.has(hash) || nowMs - modifiedAt < BACKUP_TAKES_MS) continue
    await place.blobs.remove(hash)
    removed++
  }
  return removed
}
