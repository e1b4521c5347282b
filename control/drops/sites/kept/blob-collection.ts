/** Removes the bytes that no version, no upload and no edge needs any more. */
import { DAY_MS, type Clock } from '../../../../shared/running/clock.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import { mayNotRemove } from '../../../ground/terms/removals.ts'
import type { Collected, GarbageFound, Publishing } from '../../publishing/contract.ts'
import { deleteEndedKeptBlobs } from './queries.ts'
import { databaseBeganAt, deleteEndedSpans, hasVersions, knownBlobs, referencedBlobs } from '../queries.ts'

/** A blob that nothing references is kept this long: an upload that is still under way may be about to name it. */
const BLOB_GRACE_MS = DAY_MS

export interface BlobCollection {
  /**
   * Removes nothing when the database seems to be new, or another installation's: most of the store is older than the
   * database, which has never known it, or the store holds nothing of its versions. `unbounded`: it removes all the same.
   */
  run(options?: { readonly unbounded?: boolean }): Promise<Collected>
}

export interface BlobCollectionDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly publishing: Pick<Publishing, 'collectGarbage'>
}

export function createBlobCollection({ sql, clock, publishing }: BlobCollectionDependencies): BlobCollection {
  async function belongsToStore({ blobs, known, unknown }: GarbageFound): Promise<boolean> {
    if (!(await hasVersions(sql))) return unknown === 0
    return known > 0 && !mayNotRemove('blobs', unknown, blobs)
  }

  return {
    async run({ unbounded = false } = {}) {
      const now = clock.now()
      const collected = await publishing.collectGarbage({
        isReferenced: (hashes) => referencedBlobs(sql, hashes, new Date(now)),
        isKnown: (hashes) => knownBlobs(sql, hashes),
        knownSince: (await databaseBeganAt(sql)).getTime(),
        mayRemove: async (found) => unbounded || (await belongsToStore(found)),
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
