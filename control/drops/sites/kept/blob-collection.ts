/** Removes the bytes that no version, no upload and no edge needs any more. */
import { DAY_MS, type Clock } from '../../../../shared/running/clock.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { mayNotRemove } from '../../../ground/terms/removals.ts'
import type { Collected, Publishing } from '../../publishing/contract.ts'
import { deleteEndedKeptBlobs } from './queries.ts'
import { deleteEndedSpans, hasVersions, knownBlobs, referencedBlobs } from '../queries.ts'

/** A blob that nothing references is kept this long: an upload that is still under way may be about to name it. */
const BLOB_GRACE_MS = DAY_MS

export interface BlobCollection {
  /**
   * Removes nothing while the database knows no version, or has never known most of the store: it is new, or another
   * installation's. `unbounded`: it removes all the same.
   */
  run(options?: { readonly unbounded?: boolean }): Promise<Collected>
}

export interface BlobCollectionDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly publishing: Pick<Publishing, 'collectGarbage'>
}

export function createBlobCollection({ sql, clock, publishing }: BlobCollectionDependencies): BlobCollection {
  return {
    async run({ unbounded = false } = {}) {
      const now = clock.now()
      const collected = await publishing.collectGarbage({
        isReferenced: (hashes) => referencedBlobs(sql, hashes, new Date(now)),
        isKnown: (hashes) => knownBlobs(sql, hashes),
        mayRemove: async ({ unknown, blobs }) =>
          unbounded || ((await hasVersions(sql)) && !mayNotRemove('blobs', unknown, blobs)),
        graceMs: BLOB_GRACE_MS,
        now,
      })
      if (collected.held > 0) return collected
      // Rows go after their blobs: until then they tell these from what the database has never known.
      await deleteEndedSpans(sql, new Date(now))
      await deleteEndedKeptBlobs(sql, new Date(now))
      return collected
    },
  }
}
