/** Everything an organisation has published, as one streamed zip. */
import type { Readable } from 'node:stream'
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import type { Actor } from '../../../ground/actor.ts'
import type { Pool } from '../../../ground/database/sql.ts'
import type { Publishing } from '../../publishing/contract.ts'
import { exportThreads, reviewUrlOf } from '../../threads/threads.ts'
import { retainedVersions } from '../queries.ts'
import { listReached, type Sites } from '../sites.ts'
import type { Versions } from './versions.ts'

export type SiteExport = (actor: Actor) => Promise<Readable>

export function createSiteExport({
  sql,
  sites,
  versions,
  publishing,
  baseUrl,
}: {
  sql: Pool
  sites: Pick<Sites, 'showAll'>
  versions: Pick<Versions, 'liveManifest'>
  publishing: Pick<Publishing, 'exportZip'>
  baseUrl: string
}): SiteExport {
  return async (actor) => {
    const own = await listReached(sql, actor)
    const metadata = await sites.showAll(own)
    async function* entries() {
      for (const [site, facts] of sideBySide(own, metadata)) {
        // A drop that has only previews is what the newest of them shows.
        const shown = site.live_version_id ?? (await retainedVersions(sql, site.id))[0]?.id ?? null
        const manifest = await versions.liveManifest(site.id, shown)
        const threads = await exportThreads(sql, site.id, reviewUrlOf(baseUrl, site.slug))
        if (manifest || threads.length > 0) yield { slug: site.slug, manifest, metadata: facts, threads }
      }
    }
    return publishing.exportZip(entries())
  }
}
