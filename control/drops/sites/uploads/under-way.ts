/**
 * Uploads under way: lists of files that are being sent, and files that are sent ahead of a publish. Their bytes lie in
 * the store before any version has them, so they have a number, an age and a share of the plan's storage.
 */
import { HOUR_MS } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import { uploadsUnderWay } from '../queries.ts'

/** Long enough for a slow line and a lunch break, shorter than the grace period of garbage collection. */
export const UPLOAD_LIFETIME_MS = 12 * HOUR_MS
/** A site of several large files, and a few deploys that broke off. */
export const MAX_UPLOADS_UNDER_WAY = 20

/** Refuses one more. The organisation is locked, so that two callers do not take the last place both. */
export async function requireFewUnderWay(tx: Sql, orgId: string, now: Date): Promise<void> {
  const { uploads } = await uploadsUnderWay(tx, orgId, now)
  if (uploads >= MAX_UPLOADS_UNDER_WAY)
    throw errors.planLimit(
      `${MAX_UPLOADS_UNDER_WAY} uploads are under way. Finish one of them, or wait: each ends 12 hours after its start.`,
    )
}
