import { previewHost, siteHost } from '../../../../shared/http/hosts.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
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
    report: readReport(version.report as StoredReport),
  }
}

/** As earlier releases stored it: without a list of what was kept back, since nothing was, and a remark for each file. */
interface StoredReport {
  readonly warnings: readonly (Omit<PublishReport['warnings'][number], 'count'> & { readonly count?: number })[]
  readonly blocked?: PublishReport['blocked']
  readonly kept?: PublishReport['kept']
}

const NOTHING_KEPT: PublishReport['kept'] = { files: 0, bytes: 0, until: null }

function readReport({ warnings, blocked = [], kept = NOTHING_KEPT }: StoredReport): PublishReport {
  return { blocked, kept, warnings: warnings.map((warning) => ({ ...warning, count: warning.count ?? 1 })) }
}
