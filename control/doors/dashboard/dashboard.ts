/** The dashboard, composed: assets once, the frame around every page, and the pages themselves. */
import type { ApiError } from '../../../shared/errors.ts'
import { html } from '../../../shared/pages/html.ts'
import type { Reply, Request, Route } from '../../ground/http/route.ts'
import { loadAssets } from './assets.ts'
import { createHandlers, problemText } from './handlers.ts'
import { createLayout } from './layout.ts'
import { accountRoutes } from './pages/account.ts'
import { authRoutes } from './pages/auth.ts'
import { deviceRoutes } from './pages/device.ts'
import { landingRoutes } from './pages/landing.ts'
import { previewRoutes } from './pages/preview.ts'
import { publicRoutes } from './pages/public.ts'
import { siteDomainsRoutes } from './pages/site-domains.ts'
import { siteSettingsRoutes } from './pages/site-settings.ts'
import { sitesRoutes } from './pages/sites.ts'
import { staffRoutes } from './pages/staff.ts'
import { templateRoutes } from './pages/templates.ts'
import type { DashboardServices } from './services.ts'
import { messagePage } from './views/auth.ts'
import { consentPage, type ConsentRequest } from './views/consent.ts'
import { showVerifyFirst } from './waiting-decision.ts'

export interface Dashboard {
  /** Every page and asset; `apiRoutes` are what /docs explains. */
  routes(apiRoutes: readonly Route[]): Route[]
  notFound(request: Request): Promise<Reply>
  errorPage(request: Request, problem: ApiError): Promise<Reply>
  /** The OAuth consent page, for control/doors/oauth. */
  consent(request: Request, asked: ConsentRequest): Promise<Reply>
  /** In front of a decision that needs a verified address: leads on to it by itself. */
  verifyFirst(request: Request, email: string): Promise<Reply>
}

export function createDashboard(services: DashboardServices): Dashboard {
  const assets = loadAssets()
  const handlers = createHandlers(services, createLayout(assets))

  /** The frame needs the session; when even that fails the page still has to appear. */
  async function show(request: Request, page: Parameters<typeof handlers.reply>[1]): Promise<Reply> {
    const visit = await handlers.visit(request).catch(() => undefined)
    return handlers.reply(visit?.viewer ?? NOBODY, page)
  }

  return {
    routes: (apiRoutes) => [
      ...assets.routes,
      ...landingRoutes(services, handlers),
      ...publicRoutes(services, handlers, apiRoutes),
      ...authRoutes(services, handlers),
      ...deviceRoutes(services, handlers),
      ...previewRoutes(services, handlers),
      ...templateRoutes(services, handlers),
      ...sitesRoutes(services, handlers),
      ...siteSettingsRoutes(services, handlers),
      ...siteDomainsRoutes(services, handlers),
      ...accountRoutes(services, handlers),
      ...staffRoutes(services, handlers),
    ],
    notFound: (request) =>
      show(
        request,
        messagePage({
          title: 'There is nothing here',
          lead: 'The address may be mistyped, or what was here has moved.',
          actions: html`<a class="button primary" href="/">To the front page</a>`,
          status: 404,
        }),
      ),
    async errorPage(request, problem) {
      // With the database away the session cannot be asked for, and must not be waited for.
      const isAway = problem.status === 503
      const reply = isAway ? handlers.reply(NOBODY, errorPageOf(problem)) : await show(request, errorPageOf(problem))
      return { ...reply, headers: { ...reply.headers, ...problem.headers } }
    },
    async consent(request, asked) {
      const { viewer } = await handlers.visit(request)
      return handlers.reply(viewer, consentPage(viewer, asked))
    },
    async verifyFirst(request, email) {
      return showVerifyFirst(handlers, await handlers.visit(request), email)
    },
  }
}

const NOBODY = { signedIn: undefined, csrf: '', cookies: [] }

const TITLES: ReadonlyMap<number, string> = new Map([
  [401, 'Please sign in'],
  [403, 'This is not allowed'],
  [404, 'There is nothing here'],
  [405, 'This does not work here'],
  [413, 'This is too large'],
  [429, 'A little slower, please'],
  [500, 'Something failed on our side'],
  [503, 'Back in a moment'],
])

function errorPageOf(problem: ApiError): ReturnType<typeof messagePage> {
  const id = problem.fields['id']
  return messagePage({
    title: TITLES.get(problem.status) ?? 'This did not work',
    lead: html`${problemText(problem)}${typeof id === 'string' && html` <code>${id}</code>`}`,
    actions:
      problem.status === 401
        ? html`<a class="button primary" href="/signin">Sign in</a>`
        : html`<a class="button" href="/">To the front page</a>`,
    status: problem.status,
  })
}
