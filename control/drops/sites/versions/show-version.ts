import { previewHost, siteHost } from '../../../../shared/http/hosts.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import type { WorkflowRun } from '../../../ground/actor.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { VersionRow } from '../queries.ts'
import type { SiteFacts } from '../rules.ts'
import type { ApiVersion, PublishReport, VersionEntry } from '../schemas.ts'

/** A version as the API shows it. */
export function showVersion(
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>,
  site: Pick<SiteFacts, 'slug'>,
  version: Omit<VersionRow, 'created_by_email' | 'site_id' | 'created_at' | 'title' | 'source'>,
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
}

function readReport({ warnings, blocked = [] }: StoredReport): PublishReport {
  return { blocked, warnings: warnings.map((warning) => ({ ...warning, count: warning.count ?? 1 })) }
}
