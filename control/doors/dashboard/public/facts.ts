/** What texts about the service may name, so that none of it is written twice: `{{base_url}}` in a Markdown file. */
import { durationInWords } from '../../../ground/terms/durations.ts'
import { isUnlimited } from '../../../ground/terms/plan-file.ts'
import { firstPlan, plans, sellsPlans } from '../../../ground/terms/plans.ts'
import { addressOf } from '../../../../shared/settings/settings.ts'
import { SESSION_IDLE_MS, SESSION_LIFETIME_MS } from '../../../people/access/sessions.ts'
import type { DashboardServices } from '../frame/services.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import type { Facts } from './markdown-text.ts'

export function factsOf(config: DashboardServices['config']): Facts {
  return {
    service: config.look.name,
    base_url: config.baseUrl,
    service_host: new URL(config.baseUrl).host,
    sites_domain: config.sitesDomain,
    /** What follows the slug in the address of a drop. */
    drops_address: addressOf(config, `*.${config.sitesDomain}`).replace('https://*.', ''),
    contact:
      config.contact === undefined
        ? 'The operator of this service has not given a contact address yet.'
        : `Write to [${config.contact}](mailto:${config.contact}).`,
    anonymous_lifetime: durationInWords(config.anonymousLifetimeMs),
    free_idle_lifetime: durationInWords(config.freeIdleLifetimeMs),
    recovery_window: durationInWords(config.recoveryWindowMs),
    slug_cooldown: durationInWords(config.slugCooldownMs),
    unverified_lifetime: durationInWords(config.unverifiedLifetimeMs),
    personal_data_kept: durationInWords(config.personalDataKeptMs),
    session_lifetime: durationInWords(SESSION_LIFETIME_MS),
    session_idle: durationInWords(SESSION_IDLE_MS),
    ...factsOfPlans(config),
  }
}

const PAYMENT_TERMS =
  'Plans are paid for in advance through a payment processor; prices are on [the front page](/#plans). ' +
  'You can cancel at any time; the plan lasts until the end of what was paid.'

/** Where nothing is sold, no text speaks of prices or of a better plan. */
function factsOfPlans(config: DashboardServices['config']): Facts {
  const { uploadBytes } = plans[firstPlan()]
  const cap = isUnlimited(uploadBytes) ? 'as much as there is room for' : bytesInWords(uploadBytes)
  if (!sellsPlans())
    return {
      upload_cap: `an account takes ${cap} at once`,
      payment_terms: 'Nothing is paid for here.',
      where_plans_are: 'What your account may use is under *Account → Usage*.',
      lifetimes: '| an account | live until you delete them |',
      clocks: 'Drops of an account live until they are deleted.',
      limits: '- Going over a limit never deletes what is live.',
      visitors_can: 'Visitors can',
      owners_can: 'You can',
      drop_answers: 'A drop answers',
    }
  const idle = durationInWords(config.freeIdleLifetimeMs)
  return {
    upload_cap: `a free account takes ${cap} at once; [paid plans](/#plans) take more`,
    payment_terms: PAYMENT_TERMS,
    where_plans_are: 'What each plan allows is [on the front page](/#plans).',
    lifetimes: [
      `| a free account | live as long as you sign in or publish once in ${idle} |`,
      '| a paid plan | live until you delete them |',
    ].join('\n'),
    clocks:
      `Drops of a free account live as long as its owner signs in, or someone publishes to them, once in ${idle}; ` +
      `a mail comes before they expire, and for ${durationInWords(config.recoveryWindowMs)} after that signing in ` +
      'brings them back. Paid drops have no such clock.',
    limits: [
      '- The free plan is one per person: all free organisations that you own share its drops and its storage.',
      '- Going over a limit of your plan never deletes what is live. When a paid plan ends, drops beyond the free plan ' +
        'are paused, not deleted.',
    ].join('\n'),
    visitors_can: 'On paid plans visitors can',
    owners_can: 'Paid plans can',
    drop_answers: 'With a paid plan a drop answers',
  }
}
