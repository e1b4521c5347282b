import { siteHost } from '../../../../shared/http/hosts.ts'
import { plans } from '../../../ground/terms/plans.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { stateOf, type SiteFacts } from '../rules.ts'
import type { ApiSite } from '../schemas.ts'

/** A site as the API shows it. */
export function showSite(
  config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>,
  site: SiteFacts,
  views: number,
  now: number,
): ApiSite {
  return {
    id: site.id,
    slug: site.slug,
    name: site.name,
    title: site.title,
    url: addressOf(config, siteHost(site.slug, config.sitesDomain)),
    state: stateOf(site, now),
    access_mode: site.password_hash ? 'password' : 'public',
    has_password: site.password_hash !== null,
    branding_enabled: plans[site.plan].badge,
    spa_fallback: site.spa_fallback,
    gallery: site.in_gallery,
    stays_live: site.stays_live,
    analytics: site.analytics,
    live_version_id: site.live_version_id,
    expires_at: site.expires_at?.toISOString() ?? null,
    created_at: site.created_at.toISOString(),
    updated_at: site.updated_at.toISOString(),
    published_at: site.published_at?.toISOString() ?? null,
    views_30d: views,
    previews: site.previews,
    keep_old_files_days: site.keep_old_files_days,
    kept: { files: site.kept_files, bytes: site.kept_bytes, until: site.kept_until?.toISOString() ?? null },
  }
}
