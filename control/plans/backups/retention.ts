/** What goes from a place of backups: snapshots that are old, and content that no snapshot needs any more. */
import { DAY_MS } from '../../../shared/running/clock.ts'
import { inSnapshot, type BackupPlace } from './place.ts'
import { linesIn } from './restore.ts'
import { expiredSnapshots } from './rules.ts'

/** A backup that is being taken by hand may have copied this content already, and has no end yet. */
const GRACE_MS = 2 * DAY_MS

export interface Pruned {
  readonly snapshots: number
  readonly blobs: number
}

export async function prunePlace(place: BackupPlace, keepMs: number, nowMs: number): Promise<Pruned> {
  const expired = expiredSnapshots(await place.snapshots(), keepMs, nowMs)
  for (const name of expired) await place.remove(name)
  return { snapshots: expired.length, blobs: expired.length === 0 ? 0 : await pruneBlobs(place, nowMs) }
}

/** Nothing goes while a snapshot does not say what it needs: one of an earlier release has no list. */
async function pruneBlobs(place: BackupPlace, nowMs: number): Promise<number> {
  const needed = new Set<string>()
  for (const name of await place.snapshots()) {
    const list = inSnapshot(name, 'blobs.gz')
    const file = await place.read(list)
    if (file === undefined) return 0
    file.destroy()
    for await (const hash of linesIn(place, list)) needed.add(hash)
  }
  let removed = 0
  for await (const { hash, modifiedAt } of place.blobs.list()) {
    if (needed.has(hash) || nowMs - modifiedAt < GRACE_MS) continue
    await place.blobs.remove(hash)
    removed++
  }
  return removed
}
