/** Every route of the control plane: what the API, assistants, connected apps and browsers ask for. */
import { nearEnd } from '../../shared/clock-notice.ts'
import type { Dashboard } from '../doors/dashboard/dashboard.ts'
import { mcpRoutes } from '../doors/mcp/routes.ts'
import { authorizeRoutes } from '../doors/oauth/authorize.ts'
import { oauthRoutes } from '../doors/oauth/routes.ts'
import { anonymousRoutes } from '../drops/anonymous/routes.ts'
import { domainRoutes } from '../drops/domains/routes.ts'
import { galleryRoutes } from '../drops/gallery/routes.ts'
import { contentUploadRoutes } from '../drops/sites/content-uploads/routes.ts'
import { siteRoutes } from '../drops/sites/routes.ts'
import { createApiRoutes } from '../ground/http/api.ts'
import { openApiRoute } from '../ground/http/openapi.ts'
import type { Route } from '../ground/http/route.ts'
import { devMailRoutes } from '../ground/mail/dev-routes.ts'
import { tokenRoutes } from '../people/access/routes.ts'
import { accountRoutes } from '../people/accounts/routes.ts'
import { auditRoutes } from '../people/audit/routes.ts'
import { organisationRoutes } from '../people/organisations/routes.ts'
import { billingRoutes } from '../plans/billing/routes.ts'
import type { Services } from './services.ts'

export function allRoutes(services: Services, dashboard: Dashboard): Route[] {
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
