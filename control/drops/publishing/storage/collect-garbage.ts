/**
 * Removes blobs that nothing needs, and what dead writers left half-written. A blob is written before the transaction that refers to it, so a young one is left
 * alone; and one that an upload keeps at the very moment it is looked at is not as old as it was listed (`discard`).
 *
 * The whole store is looked through before anything goes, so that the caller can hold a run back that would remove too much.
 */
import type { BlobStore, StoredBlob } from '../../../../shared/blobs/blob-store.ts'
import { sweepDrafts } from '../../../../shared/blobs/drafts.ts'
import type { Collected, GarbageFound, GarbageQuestions } from '../contract.ts'

/** One question to the database. */
const BATCH_BLOBS = 1000
/** Blobs that are remembered from one look through the store, some 15 MB of them; more are found by another look. */
const MAX_REMEMBERED_BLOBS = 100_000

export interface GarbageOptions extends GarbageQuestions {
  readonly blobs: BlobStore
  /** Where archives lie while they are read; a control that was killed leaves them there. */
  readonly scratchDir: string
  readonly maxRemembered?: number
}

type Listed = Required<StoredBlob>

export async function collectGarbage(options: GarbageOptions): Promise<Collected> {
  const { blobs, scratchDir, graceMs, now } = options
  await blobs.sweep(now - graceMs)
  await sweepDrafts(scratchDir, now - graceMs)
  let found = await lookThrough(options)
  if (found.unneeded > 0 && !(await options.mayRemove(found))) return { removed: 0, held: found.unneeded }
  let removed = 0
  for (;;) {
    const removedNow = await removeAll(options, found.remembered)
    removed += removedNow
    if (found.unneeded === found.remembered.length || removedNow === 0) return { removed, held: 0 }
    found = await lookThrough(options)
  }
}

async function lookThrough({
  blobs,
  isReferenced,
  isKnown,
  knownSince,
  graceMs,
  now,
  maxRemembered = MAX_REMEMBERED_BLOBS,
}: GarbageOptions): Promise<GarbageFound & { remembered: Listed[] }> {
  const found = { blobs: 0, unneeded: 0, known: 0, unknown: 0 }
  const remembered: Listed[] = []
  let batch: Listed[] = []

  async function judge(): Promise<void> {
    const needed = await isReferenced(hashesOf(batch))
    const unneeded = batch.filter(({ hash }) => !needed.has(hash))
    const known = unneeded.length > 0 ? await isKnown(hashesOf(unneeded)) : needed
    const strange = unneeded.filter(({ hash }) => !known.has(hash))
    found.unneeded += unneeded.length
    found.known += batch.length - strange.length
    found.unknown += strange.filter(({ modifiedAt }) => modifiedAt < knownSince).length
    remembered.push(...unneeded.slice(0, maxRemembered - remembered.length))
    batch = []
  }

  for await (const blob of blobs.list()) {
    found.blobs++
    if (blob.modifiedAt > now - graceMs) continue
    batch.push(blob)
    if (batch.length === BATCH_BLOBS) await judge()
  }
  if (batch.length > 0) await judge()
  return { ...found, remembered }
}

/** Asks again before each part goes: looking through a large store takes a while. */
async function removeAll({ blobs, isReferenced }: GarbageOptions, unneeded: readonly Listed[]): Promise<number> {
  let removed = 0
  for (let at = 0; at < unneeded.length; at += BATCH_BLOBS) {
    const batch = unneeded.slice(at, at + BATCH_BLOBS)
    const needed = await isReferenced(hashesOf(batch))
    for (const { hash, modifiedAt } of batch) {
      if (!needed.has(hash) && (await blobs.discard(hash, modifiedAt))) removed++
    }
  }
  return removed
}

function hashesOf(blobs: readonly Listed[]): string[] {
  return blobs.map(({ hash }) => hash)
}
