/** How a version gets the name of a preview, and loses it. */
import { DAY_MS } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { orUpgrade, plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import { joinPreview, partPreview } from '../../threads/threads.ts'
import type { DroppedVersion } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import * as queries from './queries.ts'

/** A preview lives this long after its last publish. */
const PREVIEW_LIFETIME_MS = 30 * DAY_MS

/**
 * nameVersion gives a name to a version, in the transaction of its publish. What the name showed before goes; resolves to
 * it, or to undefined where there was none or it stays.
 */
export async function nameVersion(
  tx: Sql,
  site: SiteFacts,
  name: string,
  versionId: string,
  now: Date,
): Promise<DroppedVersion | undefined> {
  await requireRoomForName(tx, site, name)
  const before = await queries.findPreview(tx, site.id, name)
  const expires_at = new Date(now.getTime() + PREVIEW_LIFETIME_MS)
  await queries.setPreview(tx, { site_id: site.id, name, version_id: versionId, published_at: now, expires_at })
  return before && queries.dropUnnamed(tx, before.version_id, now)
}

/** Refuses a name beyond those that the plan has, of a drop or of one that would be made (without an id). */
export async function requireRoomForName(
  sql: Sql,
  { id, plan }: { id?: string | undefined; plan: PlanName },
  name: string,
): Promise<void> {
  const named = id === undefined ? [] : await queries.listPreviews(sql, id)
  const cap = plans[plan].namedPreviews
  if (named.filter((preview) => preview.name !== name).length >= cap)
    throw errors.planLimit(
      `Your plan allows ${cap === 1 ? 'one named preview' : `${cap} named previews`} of a drop. Remove one${orUpgrade()}.`,
    )
}

/** What went with the name of a preview. */
export interface Unnamed {
  readonly preview: queries.PreviewRow
  /** The version that only had this name; undefined while it stays. */
  readonly dropped: DroppedVersion | undefined
  /** Threads that were about the preview. */
  readonly threads: readonly string[]
}

/** unnameVersion gives a name up. The version goes with it unless it was live or has another name. */
export async function unnameVersion(tx: Sql, preview: queries.PreviewRow, now: Date): Promise<Unnamed> {
  await queries.deletePreview(tx, preview)
  const dropped = await queries.dropUnnamed(tx, preview.version_id, now)
  return { preview, dropped, threads: await joinPreview(tx, preview.site_id, preview.name) }
}

/**
 * nameAgain takes that back, once the caller has retained the versions again. A name that was published anew since then
 * stays where it is; a version that has no name left goes once more. Threads are about the name, whatever it shows.
 */
export async function nameAgain(tx: Sql, unnamed: readonly Unnamed[], now: Date): Promise<void> {
  for (const { preview, threads } of unnamed) {
    const { site_id, name, version_id, published_at, expires_at } = preview
    await queries.addPreview(tx, { site_id, name, version_id, published_at, expires_at })
    await partPreview(tx, name, threads)
  }
  for (const { preview } of unnamed) await queries.dropUnnamed(tx, preview.version_id, now)
}
