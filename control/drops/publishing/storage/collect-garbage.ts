/**
 * Removes blobs that nothing needs, and what dead writers left half-written. A blob is written before the transaction that refers to it, so a young one is left
 * alone; and one that an upload keeps at the very moment it is looked at is not as old as it was listed (`discard`).
 */
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { sweepDrafts } from '../../../../shared/blobs/drafts.ts'

/** One question to the database. */
const BATCH_BLOBS = 1000

export interface GarbageOptions {
  readonly blobs: BlobStore
  /** Where archives lie while they are read; a control that was killed leaves them there. */
  readonly scratchDir: string
  /** Which of these hashes a version still needs. */
  isReferenced(hashes: readonly string[]): Promise<Set<string>>
  readonly graceMs: number
  readonly now: number
}

/** Returns how many blobs were removed. */
export async function collectGarbage({
  blobs,
  scratchDir,
  isReferenced,
  graceMs,
  now,
}: GarbageOptions): Promise<number> {
  let removed = 0
  let batch: Required<StoredBlob>[] = []

  async function flush(): Promise<void> {
    const needed = await isReferenced(batch.map((blob) => blob.hash))
    for (const blob of batch) {
      if (!needed.has(blob.hash) && (await blobs.discard(blob.hash, blob.modifiedAt))) removed++
    }
    batch = []
  }

  await blobs.sweep(now - graceMs)
  for await (const blob of blobs.list()) {
    if (blob.modifiedAt > now - graceMs) continue
    batch.push(blob)
    if (batch.length === BATCH_BLOBS) await flush()
  }
  if (batch.length > 0) await flush()
  await sweepDrafts(scratchDir, now - graceMs)
  return removed
}
