/** Every route of the control plane: what the API, assistants, connected apps and browsers ask for. */
import { nearEnd } from '../../shared/values/clock-notice.ts'
import type { Dashboard } from '../doors/dashboard/dashboard.ts'
import { foundRoutes } from '../doors/found/routes.ts'
import { mcpRoutes } from '../doors/mcp/routes.ts'
import { authorizeRoutes } from '../doors/oauth/authorize.ts'
import { oauthRoutes } from '../doors/oauth/routes.ts'
import { statusRoutes } from '../doors/status/routes.ts'
import { anonymousRoutes } from '../drops/anonymous/routes.ts'
import { domainRoutes } from '../drops/domains/routes.ts'
import { galleryRoutes } from '../drops/gallery/routes.ts'
import { namedPreviewRoutes } from '../drops/sites/kept/routes.ts'
import { contentUploadRoutes } from '../drops/sites/uploads/content-uploads/routes.ts'
import { publisherRoutes } from '../drops/publishers/routes.ts'
import { siteRoutes } from '../drops/sites/routes.ts'
import { webhookRoutes } from '../drops/webhooks/routes.ts'
import { reviewRoutes } from '../drops/review/routes.ts'
import { visitingRoutes } from '../drops/visiting/routes.ts'
import { createApiRoutes } from '../ground/http/api.ts'
import { openApiDocument, openApiRoute, type Tag } from '../ground/http/openapi.ts'
import type { Route } from '../ground/http/route.ts'
import { devMailRoutes } from '../ground/mail/dev-routes.ts'
import { tokenRoutes } from '../people/access/routes.ts'
import { SESSION_COOKIE } from '../people/access/sessions.ts'
import { accountRoutes } from '../people/accounts/routes.ts'
import { auditRoutes } from '../people/audit/routes.ts'
import { passkeyRoutes } from '../people/factors/routes.ts'
import { organisationRoutes } from '../people/organisations/routes.ts'
import { billingRoutes } from '../plans/billing/routes.ts'
import type { Services } from './services.ts'

/** What the API is about, in the order in which its reference tells it. */
const API_TAGS: readonly Tag[] = [
  { name: 'Anonymous drops', description: 'Publish a page without an account; it lives for a while.' },
  { name: 'Sites', description: 'Reserve, read, change and delete the drops of an account.' },
  { name: 'Versions', description: 'Publish content, send changed files only, go back to an earlier version.' },
  { name: 'Viewers', description: 'Say who may see a site: people by mail address, domains, guest links.' },
  {
    name: 'Threads',
    description: 'Comments on a site: list, answer and resolve them, with the version that mends them.',
  },
  { name: 'Domains', description: 'Serve a site from your own domain, with a certificate.' },
  { name: 'Webhooks', description: 'Be told what happens to drops, with signed messages (Standard Webhooks).' },
  { name: 'Publishers', description: 'Let a workflow of your forge publish with its own token, without a secret.' },
  { name: 'Account', description: 'Who a credential belongs to, what is used, and API tokens.' },
  { name: 'Organisation', description: 'People who work together: members, invitations and the audit log.' },
  { name: 'Gallery', description: 'Drops whose owners want to be seen.' },
  { name: 'Billing', description: 'Plan and subscription; payments happen at the payment processor.' },
  { name: 'Status', description: 'Whether the service is well, for monitors.' },
]

export function allRoutes(services: Services, dashboard: Dashboard): Route[] {
  const { sql, config, log } = services
  const { baseUrl } = config
  const authenticate = services.access.authenticate
  const apiRoute = createApiRoutes(authenticate)
  const api = [
    ...anonymousRoutes({ apiRoute, ...services }),
    ...siteRoutes({
      apiRoute,
      authenticate,
      ...services,
      countDomains: services.domains.count,
      findSites: services.search.find,
    }),
    ...namedPreviewRoutes({ apiRoute, ...services }),
    ...contentUploadRoutes(services),
    ...domainRoutes({ apiRoute, ...services }),
    ...webhookRoutes({ apiRoute, ...services }),
    ...publisherRoutes({ apiRoute, ...services }),
    ...visitingRoutes({ apiRoute, ...services }),
    ...reviewRoutes(services),
    ...organisationRoutes({ apiRoute, ...services }),
    ...tokenRoutes({ apiRoute, ...services }),
    ...passkeyRoutes({
      apiRoute,
      ...services,
      signIn: (credential, request) =>
        services.accounts.signInWithPasskey(credential, services.accounts.circumstancesOf(request)),
    }),
    ...accountRoutes({
      apiRoute,
      ...services,
      expiring: async (actor) => nearEnd(await services.sites.list(actor), services.clock.now()),
    }),
    ...auditRoutes({ apiRoute, sql }),
    ...galleryRoutes({ apiRoute, ...services }),
    ...billingRoutes({ apiRoute, ...services }),
    ...statusRoutes({ apiRoute, ...services }),
  ]
  const document = openApiDocument(api, {
    name: config.look.name,
    baseUrl,
    version: '1',
    tags: API_TAGS,
    sessionCookie: SESSION_COOKIE,
  })
  return [
    ...api,
    openApiRoute(document),
    ...mcpRoutes({
      services: { ...services, baseUrl, look: config.look, guides: dashboard.guides },
      ...services,
      baseUrl,
      log,
    }),
    ...foundRoutes({ config, guides: dashboard.guides }),
    ...oauthRoutes({ ...services, readsClientDocuments: config.readsClientDocuments, baseUrl, name: config.look.name }),
    ...authorizeRoutes({ ...services, ...dashboard }),
    ...dashboard.routes(document),
    ...(config.showsMails ? devMailRoutes({ folder: `${config.dataDir}/mail`, ...config }) : []),
  ]
}
