/** What texts about the service may name, so that none of it is written twice: `{{base_url}}` in a Markdown file. */
import { durationInWords } from '../../../../shared/durations.ts'
import { addressOf } from '../../../../shared/settings.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Facts } from './markdown-text.ts'

export function factsOf(
  config: Pick<
    ControlConfig,
    'anonymousLifetimeMs' | 'baseUrl' | 'freeIdleLifetimeMs' | 'personalDataKeptMs' | 'publicPort' | 'sitesDomain'
  >,
): Facts {
  return {
    base_url: config.baseUrl,
    sites_domain: config.sitesDomain,
    /** `https://*.…` as people see it; the star is the slug. */
    drops_address: addressOf(config, `*.${config.sitesDomain}`).replace('https://*.', ''),
    anonymous_lifetime: durationInWords(config.anonymousLifetimeMs),
    free_idle_lifetime: durationInWords(config.freeIdleLifetimeMs),
    personal_data_kept: durationInWords(config.personalDataKeptMs),
  }
}
