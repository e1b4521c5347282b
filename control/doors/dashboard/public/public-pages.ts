/** Pages for everyone: docs, gallery, report, and those that every public service has. */
import { MAX_REPORT_CHARS } from '../../../../shared/contracts/limits.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { seeOther } from '../../../ground/http/reply.ts'
import type { OpenApiDocument } from '../../../ground/http/openapi.ts'
import type { Route } from '../../../ground/http/route.ts'
import { REPORT_REASONS, type ReportReason } from '../../../drops/trust/trust.ts'
import { flashOf } from '../frame/flash.ts'
import type { Handlers } from '../frame/handlers.ts'
import { SIGNED_OUT } from '../frame/layout.ts'
import type { DashboardServices } from '../frame/services.ts'
import { createDocs } from './docs/docs-pages.ts'
import { factsOf } from './facts.ts'
import { galleryPage, reportPage } from './gallery-view.ts'
import { crawlerRoutes } from './service/crawlers.ts'
import { servicePages, SERVICE_PATHS } from './service/service-pages.ts'
import { statusPage } from './service/service-view.ts'

export function publicRoutes(
  { config, gallery, trust, clock, serviceStatus }: DashboardServices,
  handlers: Handlers,
  api: OpenApiDocument,
): Route[] {
  const facts = factsOf(config)
  const docs = createDocs(handlers, api, facts, config.baseUrl)
  return [
    ...docs.routes,
    ...servicePages(handlers, facts, config.dataDir),
    ...crawlerRoutes(config.baseUrl, ['/', '/templates', '/gallery', ...docs.paths, ...SERVICE_PATHS, '/status']),
    {
      method: 'GET',
      path: '/status',
      worksWithoutDatabase: true,
      async handle(request) {
        const status = await serviceStatus.current()
        const viewer = status.databaseAnswers ? (await handlers.read(request)).viewer : SIGNED_OUT
        return handlers.reply(viewer, statusPage(status, clock.now()))
      },
    },
    handlers.page('/gallery', async ({ request }) => {
      const order = request.query.get('order') === 'popular' ? 'popular' : 'newest'
      return { ...galleryPage({ entries: await gallery.list(order), order, now: clock.now() }), canonical: '/gallery' }
    }),
    handlers.page('/report', ({ request, viewer }) => ({
      ...reportPage(viewer, { url: (request.query.get('url') ?? '').slice(0, MAX_REPORT_CHARS) }),
      ...flashOf(request),
    })),
    handlers.form('/report', { on: '/report', names: { invalid_request: 'url' } }, async ({ request, form }) => {
      const text = (name: string): string => (form.get(name) ?? '').trim().slice(0, MAX_REPORT_CHARS)
      const input = { url: text('url'), detail: text('detail'), contact: text('contact') }
      await trust.report({ ...input, reason: requireReason(text('reason')), ip: request.ip })
      return seeOther('/report?done=reported')
    }),
  ]
}

function requireReason(text: string): ReportReason {
  const reason = REPORT_REASONS.find((candidate) => candidate === text)
  if (!reason) throw errors.invalidRequest('reason: say what is wrong with the page.')
  return reason
}
