import { previewHost, siteHost } from '../../../../shared/hosts.ts'
import { addressOf } from '../../../../shared/settings.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { VersionRow } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiVersion, PublishReport } from '../schemas.ts'

/** A version as the API shows it. */
export function showVersion(
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>,
  site: Pick<SiteFacts, 'slug'>,
  version: Omit<VersionRow, 'created_by_email' | 'site_id' | 'created_at' | 'title'>,
): ApiVersion {
  const preview = previewHost(version.number, site.slug, config.sitesDomain)
  return {
    version_id: version.id,
    version_number: version.number,
    byte_size: version.byte_size,
    file_count: version.file_count,
    message: version.message,
    url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
    preview_url: preview === undefined ? null : addressOf(config, preview),
    // Versions of earlier releases have no list of what was kept back: nothing was.
    report: { blocked: [], ...(version.report as Pick<PublishReport, 'warnings'>) },
  }
}
