/** The dashboard, composed: assets once, the frame around every page, and the pages themselves. */
import type { ApiError } from '../../../shared/contracts/errors.ts'
import { html } from '../../../shared/pages/html.ts'
import type { OpenApiDocument } from '../../ground/http/openapi.ts'
import type { Reply, Request, Route } from '../../ground/http/route.ts'
import { loadAssets } from './frame/assets.ts'
import { createHandlers, problemLead } from './frame/handlers.ts'
import type { ConsentPages } from '../oauth/consent.ts'
import { createLayout, SIGNED_OUT } from './frame/layout.ts'
import { proveFirst } from './frame/returned-forms.ts'
import { accountRoutes } from './account/account-pages.ts'
import { authRoutes } from './sign-in/sign-in-pages.ts'
import { deviceRoutes } from './sign-in/device-pages.ts'
import { landingRoutes } from './public/landing-pages.ts'
import { previewRoutes } from './publish/preview-pages.ts'
import { readGuides, type GuideText } from './public/docs/guide-texts.ts'
import { factsOf } from './public/facts.ts'
import { publicRoutes } from './public/public-pages.ts'
import { siteDomainsRoutes } from './drops/domains-pages.ts'
import { siteSettingsRoutes } from './drops/settings-pages.ts'
import { sitesRoutes } from './drops/drop-pages.ts'
import { reviewPageRoutes } from './sharing/review-pages.ts'
import { sharingRoutes } from './sharing/sharing-pages.ts'
import { staffRoutes } from './staff/staff-pages.ts'
import { templateRoutes } from './templates/template-pages.ts'
import type { DashboardServices } from './frame/services.ts'
import { messagePage } from './parts/message-page.ts'
import { consentPage, unknownProgramPage } from './sign-in/consent-view.ts'
import { showVerifyFirst } from './sign-in/waiting-decision.ts'

export interface Dashboard extends ConsentPages {
  /** Every page and asset; `api` is what /docs explains. */
  routes(api: OpenApiDocument): Route[]
  /** What /docs tells, for readers without a browser. */
  readonly guides: readonly GuideText[]
  notFound(request: Request): Promise<Reply>
  errorPage(request: Request, problem: ApiError): Promise<Reply>
}

export function createDashboard(services: DashboardServices): Dashboard {
  const { baseUrl, look, signUp } = services.config
  const assets = loadAssets(look)
  const handlers = createHandlers(services, createLayout({ assets, baseUrl, look, signUp }))

  /** The frame needs the session and its organisations; when even that fails the page still has to appear. */
  async function show(request: Request, page: Parameters<typeof handlers.reply>[1]): Promise<Reply> {
    try {
      return await handlers.reply((await handlers.read(request)).viewer, page)
    } catch {
      return handlers.reply(SIGNED_OUT, page)
    }
  }

  return {
    guides: readGuides(factsOf(services.config)),
    routes(api) {
      const pages = [
        ...assets.routes,
        ...landingRoutes(services, handlers),
        ...publicRoutes(services, handlers, api),
        ...authRoutes(services, handlers),
        ...deviceRoutes(services, handlers),
        ...previewRoutes(services, handlers),
        ...templateRoutes(services, handlers),
        ...sitesRoutes(services, handlers),
        ...siteSettingsRoutes(services, handlers),
        ...siteDomainsRoutes(services, handlers),
        ...sharingRoutes(services, handlers),
        ...reviewPageRoutes(services, handlers),
        ...accountRoutes(services, handlers),
        ...staffRoutes(services, handlers),
      ]
      return [...pages, ...handlers.doors(pages)]
    },
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
      // With the database away the session cannot be read, and the page must not wait for it.
      const isAway = problem.status === 503
      const reply = isAway
        ? await handlers.reply(SIGNED_OUT, errorPageOf(problem))
        : await show(request, errorPageOf(problem))
      return { ...reply, headers: { ...reply.headers, ...problem.headers } }
    },
    async consent(request, asked) {
      const { viewer } = await handlers.read(request)
      return handlers.reply(viewer, consentPage(viewer, asked))
    },
    unknownProgram: (request, told) => show(request, unknownProgramPage(told)),
    async verifyFirst(request, email) {
      return showVerifyFirst(handlers, await handlers.read(request), email)
    },
    proveFirst,
  }
}

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
  return messagePage({
    title: TITLES.get(problem.status) ?? 'This did not work',
    lead: problemLead(problem),
    actions:
      problem.status === 401
        ? html`<a class="button primary" href="/signin">Sign in</a>`
        : html`<a class="button" href="/">To the front page</a>`,
    status: problem.status,
  })
}
