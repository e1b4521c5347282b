/** How a version gets the name of a preview. */
import { DAY_MS } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { orUpgrade, plans } from '../../../ground/terms/plans.ts'
import type { Sql } from '../../../ground/database/sql.ts'
import type { SiteFacts } from '../rules.ts'
import * as queries from './queries.ts'

/** A preview lives this long after its last publish. */
const PREVIEW_LIFETIME_MS = 30 * DAY_MS

/** nameVersion gives a name to a version, in the transaction of its publish. What the name showed before goes. */
export async function nameVersion(tx: Sql, site: SiteFacts, name: string, versionId: string, now: Date): Promise<void> {
  const others = (await queries.listPreviews(tx, site.id)).filter((preview) => preview.name !== name)
  const cap = plans[site.plan].namedPreviews
  if (others.length >= cap)
    throw errors.planLimit(
      `Your plan allows ${cap === 1 ? 'one named preview' : `${cap} named previews`} of a drop. Remove one${orUpgrade()}.`,
    )
  const before = await queries.findPreview(tx, site.id, name)
  const expires_at = new Date(now.getTime() + PREVIEW_LIFETIME_MS)
  await queries.setPreview(tx, { site_id: site.id, name, version_id: versionId, published_at: now, expires_at })
  if (before) await queries.dropUnnamed(tx, before.version_id, now)
}
