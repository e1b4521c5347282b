/** Removes the bytes that no version, no upload and no edge needs any more. */
import { DAY_MS, type Clock } from '../../../../shared/running/clock.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import type { Publishing } from '../../publishing/contract.ts'
import { deleteEndedKeptBlobs } from './queries.ts'
import { deleteEndedSpans, referencedBlobs } from '../queries.ts'

/** A blob that nothing references is kept this long: an upload that is still under way may be about to name it. */
const BLOB_GRACE_MS = DAY_MS

export interface BlobCollection {
  /** Resolves how many blobs were removed. */
  run(): Promise<number>
}

export interface BlobCollectionDependencies {
  readonly sql: Pool
  readonly clock: Clock
  readonly publishing: Pick<Publishing, 'collectGarbage'>
}

export function createBlobCollection({ sql, clock, publishing }: BlobCollectionDependencies): BlobCollection {
  return {
    async run() {
      const now = clock.now()
      await deleteEndedSpans(sql, new Date(now))
      await deleteEndedKeptBlobs(sql, new Date(now))
      return publishing.collectGarbage({
        isReferenced: (hashes) => referencedBlobs(sql, hashes, new Date(now)),
        graceMs: BLOB_GRACE_MS,
        now,
      })
    },
  }
}
