/**
 * The control plane on one screen: services, the routes that speak for them, the jobs that run by themselves.
 * A request: control/ground/http → one route (schema, one call, reply) → a service → Postgres + outbox → the edges.
 */
import { nearEnd } from '../shared/clock-notice.ts'
import type { Clock } from '../shared/clock.ts'
import type { Log } from '../shared/log.ts'
import { tokenRoutes } from './people/access/routes.ts'
import { accountRoutes } from './people/accounts/routes.ts'
import { anonymousRoutes } from './drops/anonymous/routes.ts'
import { auditRoutes } from './people/audit/routes.ts'
import { billingRoutes } from './plans/billing/routes.ts'
import type { ControlConfig } from './ground/config.ts'
import { createDashboard, type Dashboard } from './doors/dashboard/dashboard.ts'
import { migrate } from './ground/database/migrate.ts'
import { createDatabaseWatch } from './ground/database/watch.ts'
import { domainRoutes } from './drops/domains/routes.ts'
import { galleryRoutes } from './drops/gallery/routes.ts'
import { createApiRoutes } from './ground/http/api.ts'
import { openApiRoute } from './ground/http/openapi.ts'
import type { Route } from './ground/http/route.ts'
import { createHttpServer } from './ground/http/server/server.ts'
import { createJobs } from './ground/jobs.ts'
import { devMailRoutes } from './ground/mail/dev-routes.ts'
import { mcpRoutes } from './doors/mcp/routes.ts'
import { authorizeRoutes } from './doors/oauth/authorize.ts'
import { oauthRoutes } from './doors/oauth/routes.ts'
import { organisationRoutes } from './people/organisations/routes.ts'
import { createMetrics } from './ground/metrics.ts'
import { createServices, type Services } from './services.ts'
import { contentUploadRoutes } from './drops/sites/content-uploads/routes.ts'
import { siteRoutes } from './drops/sites/routes.ts'

/** Requests under way may finish for this long after SIGTERM. */
const CLOSE_GRACE_MS = 10_000
/** Before that, edges are told to choose another control; what they chose a moment ago still arrives. */
const CLOSE_NOTICE_MS = 300

/** Whoever has just published looks whether anybody came. */
const MAX_VIEWS_INTERVAL_MS = 5000

export interface AppOptions {
  readonly config: ControlConfig
  readonly clock: Clock
  readonly log: Log
  /** Told of every request before it is handled. */
  onRequest?(what: string): void
}

export function createApp(options: AppOptions) {
  const { config, clock, log } = options
  const metrics = createMetrics()
  const services = createServices(options)
  const dashboard = createDashboard(services)
  const routes = [...allRoutes(services, dashboard), metrics.route]
  const databaseWatch = createDatabaseWatch({ url: config.databaseUrl, log })
  const server = createHttpServer({
    routes,
    log,
    clock,
    trustedProxies: config.trustedProxies,
    serviceHost: config.serviceHost,
    onRequest: options.onRequest,
    guard: databaseWatch.guard,
    notFound: dashboard.notFound,
    errorPage: dashboard.errorPage,
  })
  const intervalMs = config.jobIntervalMs
  const jobs = createJobs({ jobs: services.jobs, intervalMs, log })
  const compression = createJobs({ jobs: [services.compressionJob], intervalMs, log })
  const viewsIntervalMs = Math.min(intervalMs, MAX_VIEWS_INTERVAL_MS)
  const views = createJobs({ jobs: [services.viewsJob], intervalMs: viewsIntervalMs, log })
  return {
    services,
    async start(): Promise<number> {
      const applied = await migrate(services.sql)
      if (applied.length > 0) log.info({ applied }, 'migrated')
      databaseWatch.start()
      services.events.start()
      services.mailer.start()
      services.domainWatch.start()
      jobs.start()
      compression.start()
      views.start()
      return server.listen(config.controlPort, config.controlHost)
    },
    /** Phases: edges are told → no new requests → requests finished → jobs ended → connections closed. */
    async stop(): Promise<void> {
      await server.close(CLOSE_GRACE_MS, CLOSE_NOTICE_MS)
      await Promise.all([jobs.stop(), compression.stop(), views.stop()])
      await databaseWatch.stop()
      await services.close()
      metrics.stop()
    },
  }
}

function allRoutes(services: Services, dashboard: Dashboard): Route[] {
  const { sql, config, log } = services
  const { baseUrl } = config
  const authenticate = services.access.authenticate
  const apiRoute = createApiRoutes(authenticate)
  const api = [
    ...anonymousRoutes({ apiRoute, ...services }),
    ...siteRoutes({ apiRoute, authenticate, ...services, countDomains: services.domains.count }),
    ...contentUploadRoutes(services),
    ...domainRoutes({ apiRoute, ...services }),
    ...organisationRoutes({ apiRoute, ...services }),
    ...tokenRoutes({ apiRoute, ...services }),
    ...accountRoutes({
      apiRoute,
      ...services,
      expiring: async (actor) => nearEnd(await services.sites.list(actor), services.clock.now()),
    }),
    ...auditRoutes({ apiRoute, sql }),
    ...galleryRoutes({ apiRoute, ...services }),
    ...billingRoutes({ apiRoute, ...services }),
  ]
  return [
    ...api,
    openApiRoute(api, { baseUrl, version: '1' }),
    ...mcpRoutes({ services: { ...services, baseUrl }, ...services, baseUrl, log }),
    ...oauthRoutes({ ...services, baseUrl }),
    ...authorizeRoutes({ ...services, consent: dashboard.consent, verifyFirst: dashboard.verifyFirst }),
    ...dashboard.routes(api),
    ...(config.showsMails ? devMailRoutes({ folder: `${config.dataDir}/mail`, serviceHost: config.serviceHost }) : []),
  ]
}
