/** Plan, consumption and payment. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { isUnlimited } from '../../../ground/terms/plan-file.ts'
import { isPaid, plans, sellsPlans, soldPlans, type PlanName, type PricedPlan } from '../../../ground/terms/plans.ts'
import type { BillingOverview } from '../../../plans/billing/billing.ts'
import { isLive } from '../../../plans/billing/rules.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { Sites } from '../../../drops/sites/sites.ts'
import { csrfField, type AccountViewer, type Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { planTable, type Lifetimes } from '../parts/plan-table.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { countInWords, dayInWords, money, nameOf } from '../parts/words.ts'

export interface UsagePage {
  readonly plan: PlanName
  readonly usage: Awaited<ReturnType<Sites['usage']>>
  readonly customDomains: number
  /** Those that a plan's end concerns: what has expired or was taken down takes no place. */
  readonly drops: readonly Pick<ApiSite, 'id' | 'name' | 'title' | 'slug' | 'state' | 'stays_live'>[]
  readonly billing: BillingOverview
  readonly mayManage: boolean
  readonly lifetimes: Lifetimes
}

export function usageBody(viewer: AccountViewer, view: UsagePage): Html {
  const { usage, plan } = view
  return html`
    <section class="card" aria-labelledby="usage">
      <div class="head">
        <h2 id="usage">${plans[plan].label}</h2>
        ${sellsPlans() && html`<span class="soft">${priceOf(view)}</span>`}
      </div>
      ${bar('Active drops', usage.drops.used, usage.drops.limit, String)}
      ${bar('Storage', usage.storage_bytes.used, usage.storage_bytes.limit, bytesInWords)}
      ${
        plan === 'free' &&
        html`<p class="hint">
          The free plan is one per person: all free organisations that you own share its drops and its storage.
        </p>`
      }
      ${
        (plans[plan].customDomains > 0 || view.customDomains > 0) &&
        bar('Custom domains', view.customDomains, plans[plan].customDomains, String)
      }
      <dl class="facts">
        <dt>Size per upload</dt>
        <dd>${isUnlimited(usage.upload_bytes.limit) ? 'unlimited' : bytesInWords(usage.upload_bytes.limit)}</dd>
        <dt>Versions per drop</dt>
        <dd>${isUnlimited(usage.versions_per_drop.limit) ? 'all' : usage.versions_per_drop.limit}</dd>
        <dt>Views in 30 days</dt>
        <dd>${usage.views_30d.toLocaleString('en-GB')}</dd>
      </dl>
    </section>
    ${hasChoiceToMake(view) && stayingLive(viewer, view)}
    ${sellsPlans() && plansAndPayment(viewer, view)}
  `
}

function plansAndPayment(viewer: AccountViewer, view: UsagePage): Html {
  return html`
    ${payment(viewer, view)}
    <section class="section" aria-labelledby="compare">
      <h2 id="compare">All plans</h2>
      ${planTable({ lifetimes: view.lifetimes, currency: view.billing.currency, current: view.plan })}
    </section>
  `
}

/** Above its limit a bar is full and says so in words and colour. */
function bar(label: string, used: number, limit: number, inWords: (value: number) => string): Html {
  if (isUnlimited(limit))
    return html`<p class="cluster spread"><span>${label}</span><span class="soft">${inWords(used)}</span></p>`
  const isOver = used > limit
  return html`
    <div class="stack">
      <div class="cluster spread">
        <span>${label}</span>
        <span class="soft">${inWords(used)} of ${inWords(limit)}${isOver && ', over the limit'}</span>
      </div>
      <progress class="${isOver ? 'over' : ''}" max="${Math.max(1, limit)}"
          value="${isOver ? Math.max(1, limit) : used}" aria-label="${label}"></progress>
    </div>
  `
}

/** Which drops stay live is a question when the end of a plan is in sight, or has come. */
function hasChoiceToMake({ drops, billing }: Pick<UsagePage, 'drops' | 'billing'>): boolean {
  const isEnding = billing.cancel_at_period_end || billing.grace_ends_at !== null
  const isOver = drops.some(({ state }) => state === 'paused')
  return drops.length > plans.free.activeDrops && (isEnding || isOver)
}

/** Before a plan ends and afterwards: which of the drops stay live. One form, without a script. */
function stayingLive(viewer: Viewer, { drops, plan }: UsagePage): Html {
  const form = formAt(viewer, '/account/plan/staying-live')
  const paused = drops.filter((drop) => drop.state === 'paused').length
  const kept = plans.free.activeDrops
  return html`
    <form class="card" method="post" action="${form.action}">
      <h2 id="staying">
        ${paused > 0 ? `${countInWords(paused, 'drop is', 'drops are')} paused` : 'When the plan ends'}
      </h2>
      <p>
        ${
          paused > 0
            ? html`${plans[plan].label} has room for ${countInWords(plans[plan].activeDrops, 'drop')}. Nothing is
              deleted, and paused drops have no clock: ${sellsPlans() && 'upgrade, or '}delete others, and they return at
              the same addresses. Or swap: those that you tick here are live, in the place of others.`
            : html`The free plan keeps ${kept} drops live; the others pause, and nothing is deleted. Tick those
              that should stay. What was published last fills the places that you leave.`
        }
      </p>
      ${form.start}
      <fieldset class="stack">
        <legend class="visually-hidden">Drops that stay live, at most ${kept}</legend>
        ${drops.map(
          (drop) => html`<label class="check">
            <input type="checkbox" name="site" value="${drop.id}"${
              form.isTicked('site', drop.id, drop.stays_live) ? html` checked` : ''
            }>
            <span>${nameOf(drop)}</span>
            ${drop.state === 'paused' && html`<span class="tag warn">Paused</span>`}
          </label>`,
        )}
      </fieldset>
      <div><button class="button">Keep these live</button></div>
    </form>
  `
}

function payment(viewer: AccountViewer, view: UsagePage): Content {
  const { billing } = view
  if (!billing.configured)
    return html`<p class="notice">Payments are not configured on this service. Ask its operator to change your plan.</p>`
  if (!view.mayManage) return html`<p class="notice">The owner of the organisation manages the plan.</p>`
  const hasSubscription = billing.status !== null && isLive(billing.status)
  if (hasSubscription) return portalCard(viewer, view)
  if (isPaid(view.plan))
    return html`<p class="notice">This plan was given to you by the operator of the service. Nothing is billed.</p>`
  return html`${upgrade(viewer, view)}${billing.status === 'canceled' && pastSubscription(viewer, billing)}`
}

function portalCard(viewer: Viewer, { billing, plan }: UsagePage): Html {
  return html`
    <form class="card" method="post" action="/account/plan/portal">
      ${csrfField(viewer)}
      <h2>Billing</h2>
      ${subscription(billing, plan)}
      <p class="soft">Change or cancel the plan, update the card and find invoices in the billing portal.</p>
      <div><button class="button primary">Open the billing portal</button></div>
    </form>
  `
}

function subscription(billing: BillingOverview, plan: PlanName): Html | undefined {
  const { current_period_end, cancel_at_period_end, grace_ends_at, status, interval } = billing
  if (status === 'past_due' && isPaid(plan) && grace_ends_at !== null)
    return html`
      <p class="notice warn">
        <strong>A payment is missing.</strong> ${plans[plan].label} stays until ${dayInWords(grace_ends_at)}.
        Please check your card in the portal before then.
      </p>
    `
  if (status !== 'active' && status !== 'trialing')
    return html`
      <p class="notice bad">
        <strong>A payment is missing.</strong> The account is on the free plan until the open invoice is paid
        in the portal.
      </p>
    `
  if (current_period_end === null) return undefined
  const end = html`<time datetime="${current_period_end}">${dayInWords(current_period_end)}</time>`
  return cancel_at_period_end
    ? html`
      <p class="notice warn">
        <strong>Ends on ${end}.</strong> Everything stays as it is until then; afterwards the account is free.
        You can take the cancellation back in the portal.
      </p>
    `
    : html`<p>Billed ${interval === 'annual' ? 'every year' : 'every month'}. <strong>Renews on ${end}.</strong></p>`
}

function pastSubscription(viewer: Viewer, { current_period_end }: BillingOverview): Html {
  return html`
    <form class="card" method="post" action="/account/plan/portal">
      ${csrfField(viewer)}
      <h2>Past subscription</h2>
      <p class="soft">
        ${
          current_period_end === null ? 'It has ended.' : html`It was paid until ${dayInWords(current_period_end)}.`
        } Its invoices stay in the billing portal.
      </p>
      <div><button class="button">Open the billing portal</button></div>
    </form>
  `
}

function upgrade(viewer: AccountViewer, { billing }: UsagePage): Html {
  return html`
    <section class="section" aria-labelledby="upgrade">
      <h2 id="upgrade">Upgrade</h2>
      ${
        !viewer.signedIn.emailVerified &&
        html`<p class="notice warn">Verify your e-mail address first; then you can choose a plan.</p>`
      }
      <div class="grid">
        ${soldPlans().map((plan) => upgradeCard(viewer, plan, billing.currency))}
      </div>
      <p class="soft small">
        VAT is added where it applies; a VAT number can be entered at the checkout. Cancel at any time: a plan
        lasts to the end of the paid period.
      </p>
    </section>
  `
}

function upgradeCard(viewer: AccountViewer, plan: PricedPlan, currency: string): Html {
  const { monthly, annual } = plan.price
  const isLocked = !viewer.signedIn.emailVerified
  const button = (interval: string, kind: string, label: string) =>
    html`<button class="button ${kind}" name="interval" value="${interval}"${
      isLocked ? html` disabled` : ''
    }><span class="visually-hidden">${plan.label}: </span>${label}</button>`
  return html`
    <form class="card" method="post" action="/account/plan/checkout">
      ${csrfField(viewer)}
      <input type="hidden" name="plan" value="${plan.name}">
      <h3>${plan.label}</h3>
      <ul class="soft">
        <li>${plan.activeDrops} drops that stay for good</li>
        <li>${bytesInWords(plan.storageBytes)} of storage, ${bytesInWords(plan.uploadBytes)} per upload</li>
        <li>${countInWords(plan.customDomains, 'custom domain')}</li>
        <li>${countInWords(plan.viewersPerDrop, 'viewer')} per drop</li>
        <li>Passwords and analytics, no badge</li>
      </ul>
      <div class="cluster">
        ${button('monthly', 'primary', `${money(monthly, currency)} a month`)}
        ${button('annual', '', `${money(annual, currency)} a year`)}
      </div>
      <p class="small soft">
        A year costs ${money(monthly * 12 - annual, currency)} less than twelve months.
      </p>
    </form>
  `
}

/** What this account pays, or would: its currency never changes. */
function priceOf({ plan, billing }: UsagePage): string {
  const { price } = plans[plan]
  if (!price) return 'no longer sold, yours while it lasts'
  if (price.monthly === 0) return 'nothing to pay'
  return billing.interval === 'annual'
    ? `${money(price.annual, billing.currency)} a year`
    : `${money(price.monthly, billing.currency)} a month`
}
