/** Signing in with the operator's provider: away to it, back from it, and what it says when someone leaves. */
import { ApiError, errors } from '../../../../shared/contracts/errors.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import { html } from '../../../../shared/pages/html.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { Reply, Request, Route } from '../../../ground/http/route.ts'
import {
  PROVIDER_COOKIE,
  PROVIDER_PATHS,
  type Errand,
  type Finished,
  type ProviderSignIn,
} from '../../../people/provider/provider-sign-in.ts'
import type { Handlers } from '../frame/handlers.ts'
import type { Page } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { messagePage } from '../parts/message-page.ts'

/** A logout token is a few hundred characters. */
const MAX_LOGOUT_BYTES = 20_000
const MAX_FIELD_CHARS = 1000

export function providerRoutes(services: DashboardServices, handlers: Handlers): Route[] {
  const { providerSignIn, accounts, visitDesk, config } = services
  if (!providerSignIn) return []

  async function goTo(errand: Errand): Promise<Reply> {
    const { location, setCookie } = await providerSignIn!.begin(errand)
    return seeOther(location, { 'set-cookie': setCookie })
  }

  async function arrive(finished: Finished, clearedCookie: string): Promise<Reply> {
    if (finished.kind === 'closed') return seeOther('/goodbye', { 'set-cookie': [finished.setCookie, clearedCookie] })
    if (finished.kind === 'account') {
      const { signedIn, errand } = finished
      return seeOther(safeNext(errand.next, '/sites'), { 'set-cookie': [signedIn.setCookie, clearedCookie] })
    }
    const { siteId, host, next } = finished.errand
    const entry = await visitDesk.provedLink({ siteId, host, next, email: finished.email })
    return seeOther(entry, { 'set-cookie': clearedCookie })
  }

  return [
    handlers.page(PROVIDER_PATHS.begin, async ({ request, actor }) => {
      const next = safeNext(request.query.get('next'), '/sites')
      if (actor) return seeOther(next)
      return goTo({ kind: 'account', next, token: request.query.get('token')?.slice(0, MAX_FIELD_CHARS) })
    }),
    handlers.page(PROVIDER_PATHS.visit, async ({ request }) => {
      const text = (name: string): string => (request.query.get(name) ?? '').slice(0, MAX_FIELD_CHARS)
      const next = safeNext(text('next'), '/')
      // Whoever is signed in there sees nothing of it; for others it is asked again, with its pages.
      return goTo({ kind: 'visit', siteId: text('site'), host: text('host'), next, silently: true })
    }),
    handlers.page(PROVIDER_PATHS.callback, async ({ request }) => {
      const { clearedCookie } = providerSignIn
      const sealed = request.cookie(PROVIDER_COOKIE)
      const callback = new URL(`${config.baseUrl}${PROVIDER_PATHS.callback}?${request.query.toString()}`)
      try {
        return await arrive(
          await providerSignIn.finish(callback, sealed, accounts.circumstancesOf(request)),
          clearedCookie,
        )
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return refused(error, providerSignIn, sealed)
      }
    }),
    {
      method: 'POST',
      path: PROVIDER_PATHS.logout,
      handle: (request) => logOut(request, providerSignIn),
    },
  ]

  async function refused(
    problem: ApiError,
    provider: ProviderSignIn,
    sealed: string | undefined,
  ): Promise<Page | Reply> {
    const cookies = { 'set-cookie': provider.clearedCookie }
    const errand = provider.errandOf(sealed)
    if (errand?.kind === 'visit' && errand.silently && problem.fields['asks'] === true)
      return goTo({ ...errand, silently: false })
    // The drop asks for an address instead, as it would without a provider.
    if (errand?.kind === 'visit') return seeOther(await visitDesk.doorOf(errand), cookies)
    if (errand?.kind === 'closing') return { ...notClosedPage(problem), headers: cookies }
    const next = errand?.kind === 'account' ? errand.next : undefined
    return { ...failedPage(problem, provider.name, next), headers: cookies }
  }
}

/** OpenID Connect Back-Channel Logout 1.0 §2.8. */
async function logOut(request: Request, provider: ProviderSignIn): Promise<Reply> {
  const token = (await request.form(MAX_LOGOUT_BYTES)).get('logout_token') ?? ''
  if (!(await provider.logOut(token))) throw errors.invalidRequest('logout_token: this is not one of the provider.')
  return { status: 200, headers: { 'cache-control': 'no-store' } }
}

function notClosedPage(problem: ApiError): Page {
  return messagePage({
    title: 'Your account is still there',
    lead: problem.message,
    actions: html`<a class="button primary" href="/account/data">Back to your data</a>`,
    status: problem.status,
  })
}

function failedPage(problem: ApiError, name: string, next: string | undefined): Page {
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`
  return messagePage({
    title: problem.code === 'sign_up_closed' ? 'There is no account for you here' : 'Signing in did not work',
    lead: problem.message,
    actions: html`<a class="button primary" href="${PROVIDER_PATHS.begin}${query}">Try again with ${name}</a>
      <a class="button" href="/signin${query}">To the sign-in page</a>`,
    status: problem.status,
  })
}
