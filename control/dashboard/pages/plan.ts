/** `/account/plan`: what is used, and the way to pay. Money itself is the payment processor's. */
import { ApiError } from '../../../shared/errors.ts'
import { safeUrl, html } from '../../../shared/pages/html.ts'
import { seeOther } from '../../http/reply.ts'
import type { Route } from '../../http/route.ts'
import { may } from '../../organisations/rules.ts'
import { flashOf } from '../flash.ts'
import type { Answer, Handlers } from '../handlers.ts'
import type { DashboardServices } from '../services.ts'
import { accountPage } from '../views/account.ts'
import { messagePage } from '../views/auth.ts'
import { usageBody } from '../views/usage.ts'

export function planRoutes({ sites, billing }: DashboardServices, handlers: Handlers): Route[] {
  return [
    handlers.accountPage('/account/plan', async ({ request, viewer, actor }) =>
      accountPage(
        '/plan',
        usageBody(viewer, {
          plan: actor.plan,
          usage: await sites.usage(actor),
          billing: await billing.overview(actor),
          mayManage: may(actor.role, 'manage_billing'),
        }),
        flashOf(request),
      ),
    ),
    handlers.accountForm('/account/plan/checkout', { verified: true }, async ({ actor, form }) => {
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
    handlers.accountForm('/account/plan/portal', { verified: true }, async ({ actor }) => {
      return onwards((await billing.portal(actor)).url, 'Continue to the billing portal')
    }),
  ]
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
