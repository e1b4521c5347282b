/** `/sites/<id>/domains`. */
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import type { AccountRequest } from '../frame/callers.ts'
import type { AccountFormRequest, Handlers } from '../frame/handlers.ts'
import type { Answer } from '../frame/returned-forms.ts'
import type { DashboardServices } from '../frame/services.ts'
import { removeDomainPage, siteDomainsPage } from './domains-view.ts'

const FORM = { on: '/sites/:id/domains', verified: true } as const
const REMOVAL = { on: '/sites/:id/domains/remove', keeps: ['domain'], verified: true } as const

interface OfSite {
  readonly params: { readonly id: string }
}

export function siteDomainsRoutes({ sites, domains, clock }: DashboardServices, handlers: Handlers): Route[] {
  async function show({ request, viewer, actor, params: { id } }: AccountRequest & OfSite): Promise<Answer> {
    const [site, list, used] = await Promise.all([
      sites.get(actor, id),
      domains.list(actor, id),
      domains.count(actor.orgId),
    ])
    const view = {
      site,
      domains: list,
      used,
      plan: actor.plan,
      offersWildcards: domains.offersWildcards,
      now: clock.now(),
    }
    return siteDomainsPage(viewer, { ...view, ...flashOf(request) })
  }

  const change = (
    name: '' | '/check' | '/main' | '/remove',
    done: string,
    act: (asked: AccountFormRequest & OfSite, domain: string) => Promise<unknown>,
  ): Route =>
    handlers.accountForm(`/sites/:id/domains${name}`, name === '/remove' ? REMOVAL : FORM, async (asked) => {
      await act(asked, (asked.form.get('domain') ?? '').trim())
      return seeOther(`/sites/${asked.params.id}/domains?done=${done}`)
    })

  return [
    handlers.accountPage('/sites/:id/domains', (asked) => show(asked)),
    change('', 'added', ({ actor, params, form }, domain) =>
      domains.add(actor, params.id, { domain, pair: form.has('pair') }),
    ),
    change('/check', 'checked', ({ actor, params }, domain) => domains.check(actor, params.id, domain)),
    change('/main', 'saved', ({ actor, params }, domain) => domains.makeMain(actor, params.id, domain)),
    handlers.accountPage('/sites/:id/domains/remove', async ({ request, viewer, actor, params: { id } }) => {
      const [site, domain] = await Promise.all([
        sites.get(actor, id),
        domains.get(actor, id, request.query.get('domain') ?? ''),
      ])
      return removeDomainPage(viewer, site, domain)
    }),
    change('/remove', 'removed', ({ actor, params }, domain) => domains.remove(actor, params.id, domain)),
  ]
}
