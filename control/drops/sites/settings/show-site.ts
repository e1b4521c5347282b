import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../../shared/running/clock.ts'
import { siteHost } from '../../../../shared/http/hosts.ts'
import { plans } from '../../../ground/terms/plans.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { accessModeOf } from '../../viewers/access.ts'
import { cardTarget } from '../../../../shared/contracts/route-record.ts'
import { cardOf, stateOf, type SiteFacts } from '../rules.ts'
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
    access_mode: accessModeOf(site),
    has_password: accessModeOf(site) === 'password',
    access_until: site.access_until?.toISOString() ?? null,
    access_requests: site.access_requests,
    viewer_admission: site.admission_ms === null ? null : durationText(site.admission_ms),
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
    threads_visible: site.threads_visible,
    thread_mails: site.thread_mails,
    keep_old_files_days: site.keep_old_files_days,
    llms_txt: site.llms_txt,
    ai: site.ai,
    card: site.card,
    card_url: cardUrl(config, site),
    kept: { files: site.kept_files, bytes: site.kept_bytes, until: site.kept_until?.toISOString() ?? null },
  }
}

/** Where its card is; null while there is none. */
function cardUrl(config: Pick<ControlConfig, 'sitesDomain' | 'publicPort'>, site: SiteFacts): string | null {
  const { card } = cardOf(site)
  return card === undefined ? null : addressOf(config, siteHost(site.slug, config.sitesDomain)) + cardTarget(card[0])
}

/** `12h` or `90s`: what a caller may send again. */
function durationText(ms: number): string {
  const [unit, size] = (
    [
      ['d', DAY_MS],
      ['h', HOUR_MS],
      ['m', MINUTE_MS],
      ['s', SECOND_MS],
    ] as const
  ).find(([, each]) => ms % each === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
