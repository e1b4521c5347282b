/** The plan table, straight from control/ground/terms/plans.ts. */
import { durationInWords } from '../../../ground/terms/durations.ts'
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { isUnlimited } from '../../../ground/terms/plan-file.ts'
import { offeredPlans, type Plan, type PlanName } from '../../../ground/terms/plans.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { money } from './words.ts'

export type Lifetimes = Pick<ControlConfig, 'anonymousLifetimeMs' | 'freeIdleLifetimeMs'>

function lifetimeInWords(plan: Plan, lifetimes: Lifetimes): string {
  switch (plan.lifetime) {
    case 'fixed':
      return durationInWords(lifetimes.anonymousLifetimeMs)
    case 'idle':
      return `while you sign in or publish every ${durationInWords(lifetimes.freeIdleLifetimeMs)}`
    case 'permanent':
      return 'permanent'
    default:
      return plan.lifetime satisfies never
  }
}

const ROWS: readonly (readonly [label: string, value: (plan: Plan, lifetimes: Lifetimes) => Content])[] = [
  ['Active drops', (plan) => (plan.name === 'free' ? `${plan.activeDrops} per person` : limit(plan.activeDrops))],
  ['Size per upload', (plan) => bytesInWords(plan.uploadBytes)],
  ['Storage', (plan) => (isUnlimited(plan.storageBytes) ? '–' : bytesInWords(plan.storageBytes))],
  ['Versions kept per drop', (plan) => (plan.name === 'anonymous' ? '–' : limit(plan.versionsKept))],
  ['Named previews per drop', (plan) => (plan.namedPreviews === 0 ? '–' : limit(plan.namedPreviews))],
  ['Lifetime', lifetimeInWords],
  ['Folders and .zip', (plan) => yesNo(plan.bundles)],
  ['Custom domains', (plan) => (plan.customDomains === 0 ? '–' : limit(plan.customDomains))],
  ['Wildcards as custom domains', (plan) => yesNo(plan.wildcardDomains)],
  [
    'Viewers per drop, and as many guest links',
    (plan) => (plan.viewersPerDrop === 0 ? '–' : limit(plan.viewersPerDrop)),
  ],
  ['Password protection', (plan) => yesNo(plan.password)],
  ['Analytics integrations', (plan) => yesNo(plan.analytics)],
  ['No badge', (plan) => yesNo(!plan.badge)],
]

export interface PlanTable {
  readonly lifetimes: Lifetimes
  /** What prices are in: an account's own currency, or what it would be where the visitor is. */
  readonly currency: string
  /** The reader's own plan. */
  readonly current?: PlanName
}

/** All plans side by side, on a phone too: there the name of a row stands above its cells. */
export function planTable({ lifetimes, currency, current }: PlanTable): Html {
  const shown = offeredPlans()
  const mark = (plan: Plan): Content => plan.name === current && html` class="current"`
  return html`
      <table class="table plans">
        <caption class="visually-hidden">Plans</caption>
        <thead>
          <tr>
            <td></td>
            ${shown.map(
              (plan) =>
                html`<th scope="col"${mark(plan)}>${plan.label}${
                  plan.name === current && html`<span class="yours">Your plan</span>`
                }<span class="price">${priceInWords(plan, currency)}</span></th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${ROWS.map(
            ([label, value]) => html`<tr>
                <th scope="row">${label}</th>
                ${shown.map((plan) => html`<td${mark(plan)}>${value(plan, lifetimes)}</td>`)}
              </tr>
              \n`,
          )}
        </tbody>
      </table>
  `
}

function priceInWords(plan: Plan, currency: string): string {
  if (plan.name === 'anonymous') return 'no sign-up'
  if (!plan.price) return 'no longer sold'
  if (plan.price.monthly + plan.price.annual === 0) return 'free'
  return `${money(plan.price.monthly, currency)} a month, or ${money(plan.price.annual, currency)} a year`
}

function limit(value: number): Content {
  return isUnlimited(value) ? '–' : value
}

function yesNo(value: boolean): string {
  return value ? 'yes' : '–'
}
