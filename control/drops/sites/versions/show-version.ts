import { previewHost, siteHost } from '../../../../shared/http/hosts.ts'
import { previewLabelOf } from '../../../../shared/secrets/previews.ts'
import { createSecrets } from '../../../../shared/secrets/secrets.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import type { WorkflowRun } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { VersionRow } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiVersion, PublishReport, VersionEntry } from '../schemas.ts'

/** What addresses are made of. */
export type AddressConfig = Pick<ControlConfig, 'sitesDomain' | 'publicPort' | 'secretKey'>

export function previewAddressOf(
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>,
  site: Pick<SiteFacts, 'id' | 'slug'>,
  label: string,
): string {
  return addressOf(config, previewHost(label, site, config.sitesDomain))
}

/** A version as the API shows it. `preview`: the name that it was published to. */
export function showVersion(
  config: AddressConfig,
  site: Pick<SiteFacts, 'id' | 'slug' | 'previews'>,
  version: Omit<VersionRow, 'created_by_email' | 'site_id' | 'created_at' | 'title' | 'is_preview' | 'source'>,
  preview: string | null = null,
): ApiVersion {
  const label = preview ?? previewLabelOf(createSecrets(config.secretKey), site.id, version.number)
  return {
    version_id: version.id,
    version_number: version.number,
    byte_size: version.byte_size,
    file_count: version.file_count,
    message: version.message,
    url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
    preview_url: site.previews === 'off' ? null : previewAddressOf(config, site, label),
    preview,
    report: readReport(version.report as StoredReport),
  }
}

/** The run that a version comes from. */
export function showSource(run: WorkflowRun): NonNullable<VersionEntry['source']> {
  const { provider, repository, workflow, commit, actor } = run
  return { provider, repository, workflow, commit, actor, url: commitUrl(run) ?? null }
}

/** Where the commit can be looked at; undefined where its forge has no such page that we know. */
export function commitUrl({ provider, issuer, repository, commit }: WorkflowRun): string | undefined {
  if (commit === '' || !/^[\w.-]+(?:\/[\w.-]+)+$/.test(repository)) return undefined
  const { origin } = new URL(issuer)
  switch (provider) {
    case 'github':
      return origin === 'https://token.actions.githubusercontent.com'
        ? `https://github.com/${repository}/commit/${commit}`
        : undefined
    case 'gitlab':
      return `${origin}/${repository}/-/commit/${commit}`
    case 'forgejo':
      return `${origin}/${repository}/commit/${commit}`
    default:
      return undefined
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
