/** `/account/plan`: what is used, and the way to pay. Money itself is the payment processor's. */
import { ApiError } from '../../../../shared/contracts/errors.ts'
import { safeUrl, html } from '../../../../shared/pages/html.ts'
import { isPaid, plans, type PlanName } from '../../../ground/terms/plans.ts'
import { type Actor, may } from '../../../ground/actor.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { Answer } from '../frame/returned-forms.ts'
import type { Flash } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { accountPage } from './account-view.ts'
import { messagePage } from '../parts/message-page.ts'
import { usageBody, type UsagePage } from './plan-view.ts'

const FORM = { on: '/account/plan', verified: true } as const

export function planRoutes({ sites, domains, billing, config }: DashboardServices, handlers: Handlers): Route[] {
  /** As of now: the payment that the caller is back from may have changed the plan. */
  async function pageOf(caller: Actor): Promise<UsagePage> {
    const overview = await billing.overview(caller)
    const actor: Actor = { ...caller, plan: overview.plan as PlanName }
    return {
      plan: actor.plan,
      usage: await sites.usage(actor),
      customDomains: await domains.count(actor.orgId),
      drops: (await sites.list(actor)).filter(({ state }) => state !== 'removed' && state !== 'expired'),
      billing: overview,
      mayManage: may(actor.role, 'manage_billing'),
      lifetimes: config,
    }
  }

  return [
    handlers.accountPage('/account/plan', async ({ request, viewer, actor }) => {
      const isBack = request.query.get('checkout') === 'done'
      if (isBack) await billing.returned(actor)
      const view = await pageOf(actor)
      const flash = isBack ? { flash: afterCheckout(view.plan) } : flashOf(request)
      return accountPage('/plan', usageBody(viewer, view), flash)
    }),
    handlers.accountForm('/account/plan/checkout', FORM, async ({ actor, form }) => {
      const plan = form.get('plan') === 'business' ? 'business' : 'plus'
      const interval = form.get('interval') === 'annual' ? 'annual' : 'monthly'
      try {
        return onwards((await billing.checkout(actor, { plan, interval })).url, 'Continue to the payment page')
      } catch (error) {
        const portal = error instanceof ApiError && error.code === 'subscription_exists' && error.fields['portal_url']
        if (typeof portal !== 'string') throw error
        return onwards(portal, 'You have a plan already: continue to the billing portal')
      }
    }),
    handlers.accountForm('/account/plan/staying-live', FORM, async ({ actor, form }) => {
      await sites.choose(actor, form.getAll('site'))
      return seeOther('/account/plan?done=chosen')
    }),
    handlers.accountForm('/account/plan/portal', FORM, async ({ actor }) => {
      return onwards((await billing.portal(actor)).url, 'Continue to the billing portal')
    }),
  ]
}

function afterCheckout(plan: PlanName): Flash {
  return isPaid(plan)
    ? { tone: 'good', text: `Thank you. You are on ${plans[plan].label} now.` }
    : { tone: 'warn', text: 'The payment is not confirmed yet. Your plan changes by itself as soon as it is.' }
}

/** Our policy lets no form lead to another origin, redirects included: the last step is a link of its own. */
function onwards(url: string, label: string): Answer {
  const target = safeUrl(url)
  if (target === undefined) return seeOther('/account/plan')
  return {
    ...messagePage({
      title: label,
      lead: 'It is run by our payment processor; we never see your card.',
      actions: html`<a class="button primary" href="${target}">Continue</a>`,
    }),
    headers: { refresh: `0; url=${target}` },
  }
}
