/** Everything an organisation has published, as one streamed zip. */
import type { Readable } from 'node:stream'
import type { Actor } from '../accounts/actor.ts'
import type { Pool } from '../database/sql.ts'
import type { Publishing } from '../publishing/contract.ts'
import { listSites } from './queries.ts'
import type { Versions } from './versions.ts'

export type SiteExport = (actor: Actor) => Promise<Readable>

export function createSiteExport({
  sql,
  versions,
  publishing,
}: {
  sql: Pool
  versions: Pick<Versions, 'liveManifest'>
  publishing: Pick<Publishing, 'exportZip'>
}): SiteExport {
  return async (actor) => {
    const own = await listSites(sql, actor.orgId)
    async function* entries() {
      for (const site of own) {
        const manifest = await versions.liveManifest(site.id, site.live_version_id)
        if (manifest) yield { slug: site.slug, manifest }
      }
    }
    return publishing.exportZip(entries())
  }
}
