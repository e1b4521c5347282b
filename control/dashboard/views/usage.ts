/** Plan, consumption and payment. */
import { html, type Html } from '../../../shared/pages/html.ts'
import { isPaid, plans, type Plan, type PlanName } from '../../../shared/plans.ts'
import type { BillingOverview } from '../../billing/billing.ts'
import type { Sites } from '../../sites/sites.ts'
import { csrfField, type Viewer } from '../layout.ts'
import { planTable, priceInWords } from './plans.ts'
import { bytesInWords, countInWords, dayInWords } from './words.ts'

export interface UsageView {
  readonly plan: PlanName
  readonly usage: Awaited<ReturnType<Sites['usage']>>
  readonly billing: BillingOverview
  readonly mayManage: boolean
}

export function usageBody(viewer: Viewer, view: UsageView): Html {
  const { usage, plan } = view
  return html`<section class="card" aria-labelledby="usage"><div class="head"><h2 id="usage">${plans[plan].label}</h2><span class="soft">${priceInWords(plans[plan])}</span></div>
${bar('Active drops', usage.drops.used, usage.drops.limit, String)}
${bar('Storage', usage.storage_bytes.used, usage.storage_bytes.limit, bytesInWords)}
<dl class="facts"><dt>Size per upload</dt><dd>${bytesInWords(usage.upload_bytes.limit)}</dd><dt>Versions per drop</dt><dd>${usage.versions_per_drop.limit}</dd><dt>Views in 30 days</dt><dd>${usage.views_30d.toLocaleString('en-GB')}</dd></dl>
${usage.paused_drops > 0 && html`<p class="notice warn">${countInWords(usage.paused_drops, 'drop is', 'drops are')} paused because the plan allows fewer. Upgrade, or delete others, and they return.</p>`}
</section>
${payment(viewer, view)}
<section class="section" aria-labelledby="compare"><h2 id="compare">All plans</h2>${planTable()}</section>`
}

/** Above its limit a bar is full and says so in words and colour. */
function bar(label: string, used: number, limit: number, inWords: (value: number) => string): Html {
  const isOver = used > limit
  return html`<div class="stack"><div class="cluster spread"><span>${label}</span><span class="soft">${inWords(used)} of ${inWords(limit)}${isOver && ', over the limit'}</span></div><progress class="${isOver ? 'over' : ''}" max="${limit}" value="${Math.min(used, limit)}" aria-label="${label}"></progress></div>`
}

function payment(viewer: Viewer, view: UsageView): Html {
  if (!view.billing.configured)
    return html`<p class="notice">Payments are not configured on this service. Ask its operator to change your plan.</p>`
  if (!view.mayManage) return html`<p class="notice">The owner of the organisation manages the plan.</p>`
  if (isPaid(view.plan) || view.billing.past_due_since !== null) {
    return html`<form class="card" method="post" action="/account/plan/portal">${csrfField(viewer)}<h2>Billing</h2>${subscription(view.billing)}<p class="soft">Change or cancel the plan, update the card and find invoices in the billing portal.</p><div><button class="button primary">Open the billing portal</button></div></form>`
  }
  return html`<section class="section" aria-labelledby="upgrade"><h2 id="upgrade">Upgrade</h2><div class="grid">${[plans.plus, plans.business].map((plan) => upgradeCard(viewer, plan))}</div></section>`
}

function upgradeCard(viewer: Viewer, plan: Plan): Html {
  return html`<form class="card" method="post" action="/account/plan/checkout">${csrfField(viewer)}<input type="hidden" name="plan" value="${plan.name}"><h3>${plan.label}</h3><p class="soft">${plan.activeDrops} drops, ${bytesInWords(plan.storageBytes)}, ${countInWords(plan.customDomains, 'custom domain')}, passwords, analytics, no badge.</p>
<div class="cluster"><button class="button primary" name="interval" value="monthly">${plan.price!.monthly} a month</button><button class="button" name="interval" value="annual">${plan.price!.annual} a year</button></div></form>`
}

function subscription({ current_period_end, cancel_at_period_end, past_due_since }: BillingOverview): Html | undefined {
  if (past_due_since !== null)
    return html`<p class="notice bad">The last payment did not go through. Please check your card in the portal.</p>`
  if (current_period_end === null) return undefined
  return html`<p>${cancel_at_period_end ? 'Cancelled; the plan stays until' : 'Paid until'} ${dayInWords(current_period_end)}.</p>`
}
