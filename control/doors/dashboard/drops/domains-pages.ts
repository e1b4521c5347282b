/** `/sites/<id>/domains`. */
import { seeOther } from '../../../ground/http/reply.ts'
import type { Route } from '../../../ground/http/route.ts'
import { flashOf } from '../frame/flash.ts'
import {
  orShow,
  problemText,
  type AccountFormRequest,
  type AccountRequest,
  type Answer,
  type Handlers,
} from '../frame/handlers.ts'
import type { DashboardServices } from '../frame/services.ts'
import { removeDomainPage, siteDomainsPage } from './domains-view.ts'

interface OfSite {
  readonly params: { readonly id: string }
}

export function siteDomainsRoutes({ sites, domains, clock }: DashboardServices, handlers: Handlers): Route[] {
  async function show(
    { request, viewer, actor, params: { id } }: AccountRequest & OfSite,
    refused: { problem?: string; typed?: string } = {},
  ): Promise<Extract<Answer, { title: string }>> {
    const [site, list] = await Promise.all([sites.get(actor, id), domains.list(actor, id)])
    return siteDomainsPage(viewer, {
      site,
      domains: list,
      plan: actor.plan,
      now: clock.now(),
      ...refused,
      ...flashOf(request),
    })
  }

  const change = (
    name: '' | '/check' | '/main' | '/remove',
    done: string,
    act: (asked: AccountFormRequest & OfSite, domain: string) => Promise<unknown>,
  ): Route =>
    handlers.accountForm(`/sites/:id/domains${name}`, { verified: true }, (asked) => {
      const typed = (asked.form.get('domain') ?? '').trim()
      return orShow(
        async () => {
          await act(asked, typed)
          return seeOther(`/sites/${asked.params.id}/domains?done=${done}`)
        },
        async (problem) => {
          if (problem.status === 404) throw problem
          return { ...(await show(asked, { problem: problemText(problem), typed })), status: problem.status }
        },
      )
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
