/** Drops: what is published, where, and how the edges hear of it. */
import path from 'node:path'
import { previewLabelOf } from '../../shared/secrets/previews.ts'
import { READS_KEPT_FILES, READS_THREADS } from '../../shared/contracts/live-edges.ts'
import { createAnonymous, type Anonymous } from '../drops/anonymous/anonymous.ts'
import { createBotCheck, type BotCheck } from '../drops/anonymous/bot-check.ts'
import { createBrowserCookie, type BrowserCookie } from '../drops/anonymous/browser-cookie.ts'
import { createAnonymousStorage } from '../drops/anonymous/storage.ts'
import { createDomains, type Domains } from '../drops/domains/domains.ts'
import { createDomainWatch, type DomainWatch } from '../drops/domains/watch.ts'
import { createPublishers, type Publishers } from '../drops/publishers/publishers.ts'
import { createGallery, type Gallery } from '../drops/gallery/gallery.ts'
import type { Publishing } from '../drops/publishing/contract.ts'
import { createPublishing } from '../drops/publishing/publishing.ts'
import { createContentUploads, type ContentUploads } from '../drops/sites/uploads/content-uploads/content-uploads.ts'
import { createKeptFiles, type SiteKeptFiles } from '../drops/sites/kept/kept-files.ts'
import { createPreviews, type Previews } from '../drops/sites/kept/previews.ts'
import { createCards, type Cards } from '../drops/sites/settings/cards.ts'
import { createFirstRoutes, createRefreshRoutes, type RefreshRoutes } from '../drops/sites/routing.ts'
import { createSites, type Sites } from '../drops/sites/sites.ts'
import { createUploads, type Uploads } from '../drops/sites/uploads/uploads.ts'
import { createBlobCollection, type BlobCollection } from '../drops/sites/kept/blob-collection.ts'
import { createQuickPublish, type QuickPublish } from '../drops/sites/versions/quick-publish.ts'
import { createSiteExport, type SiteExport } from '../drops/sites/versions/site-export.ts'
import { createVersions, type Versions } from '../drops/sites/versions/versions.ts'
import { createAccessRequests, type AccessRequests } from '../drops/visiting/requests.ts'
import { createSharedWithMe, type SharedWithMe } from '../drops/visiting/shared-with-me.ts'
import { createViewerSharing, type ViewerSharing } from '../drops/visiting/sharing.ts'
import { createReviewFrames, type ReviewFrames } from '../drops/review/frames.ts'
import { createThreadImages, type ThreadImages } from '../drops/threads/images.ts'
import { createThreadNews, tellingTabs } from '../drops/threads/news.ts'
import { createReview, type Review } from '../drops/threads/review.ts'
import { createInspector, type Inspector } from '../drops/trust/inspector.ts'
import { createTrust, type Trust } from '../drops/trust/trust.ts'
import { createWebhookCourier, type WebhookCourier } from '../drops/webhooks/courier.ts'
import { createWebhookSender } from '../drops/webhooks/send.ts'
import { createWebhooks, type Webhooks } from '../drops/webhooks/webhooks.ts'
import { createDns } from '../drops/domains/dns/dns.ts'
import { createRouting, type Routing } from '../ground/routing/routing.ts'
import { fetchNamedByOperator, fetchPublic } from '../ground/http/public-fetch.ts'
import type { FetchOfIssuer } from '../drops/publishers/issuer-keys.ts'
import type { Ground } from './ground.ts'

export interface Drops {
  readonly publishing: Publishing
  readonly routing: Routing
  readonly refreshRoutes: RefreshRoutes
  readonly sites: Sites
  readonly cards: Cards
  readonly versions: Versions
  readonly keptFiles: SiteKeptFiles
  readonly previews: Previews
  readonly uploads: Uploads
  readonly quickPublish: QuickPublish
  readonly contentUploads: ContentUploads
  readonly siteExport: SiteExport
  readonly blobCollection: BlobCollection
  readonly webhooks: Webhooks
  readonly webhookCourier: WebhookCourier
  readonly viewerSharing: ViewerSharing
  readonly review: Review
  readonly reviewFrames: ReviewFrames
  readonly threadImages: ThreadImages
  readonly sharedWithMe: SharedWithMe
  readonly accessRequests: AccessRequests
  readonly domains: Domains
  readonly domainWatch: DomainWatch
  readonly trust: Trust
  readonly inspector: Inspector
  readonly gallery: Gallery
  readonly publishers: Publishers
  readonly anonymous: Anonymous
  readonly browserCookie: BrowserCookie
  readonly botCheck: BotCheck
}

/** What an issuer of the operator's choice serves itself may be private; wherever it points to must be public. */
function createIssuerFetch(trustedIssuers: readonly string[]): FetchOfIssuer {
  return (issuer, url, limits) => {
    const isOwn = trustedIssuers.includes(issuer) && new URL(url).origin === new URL(issuer).origin
    return isOwn ? fetchNamedByOperator(url, limits) : fetchPublic(url, limits)
  }
}

export function composeDrops(ground: Ground): Drops {
  const { sql, redis, clock, log, config, secrets, blobs, limiter, enqueueMail } = ground
  const publishing = createPublishing({
    blobs,
    blobStore: { url: config.blobStore },
    scratchDir: path.join(config.dataDir, 'scratch'),
    admitUpload: (orgId) => limiter.consume('uploads', orgId, { points: config.uploadsPerHour, windowSeconds: 3600 }),
  })
  const domains = createDomains({ ...ground, propagate: (changes) => routing.propagate(changes) })
  const routing = createRouting({ ...ground, republishers: [domains.republishCertificates] })
  const routesOf = {
    sitesDomain: config.sitesDomain,
    now: () => clock.now(),
    previewLabels: (siteId: string, number: number) => previewLabelOf(secrets, siteId, number),
  }
  const refreshRoutes = createRefreshRoutes({ ...routesOf, lifetimes: config, lockDomainRoutes: domains.lockRoutes })
  const firstRoutes = createFirstRoutes(routesOf)
  const keptFiles = createKeptFiles({
    clock,
    log,
    publishing,
    config,
    edgesReadKept: () => routing.everyEdgeReads(READS_KEPT_FILES),
  })
  const cards = createCards({ sql, clock, log, routing, refreshRoutes, publishing, config })
  const sites = createSites({ sql, clock, routing, refreshRoutes, keptFiles, cards, enqueueMail, config })
  const versions = createVersions({
    ...ground,
    routing,
    refreshRoutes,
    firstRoutes,
    keptFiles,
    cards,
    publishing,
    sites,
  })
  const previews = createPreviews({ sql, clock, routing, refreshRoutes, sites, versions, config })
  const trust = createTrust({ ...ground, routing, refreshRoutes })
  const inspector = createInspector({ blobStore: { url: config.blobStore }, log, atHand: publishing.atHand })
  const botCheck = createBotCheck(secrets)
  const sender = createWebhookSender({ dns: createDns(config.dnsResolver), ...config })
  return {
    publishing,
    routing,
    refreshRoutes,
    sites,
    cards,
    versions,
    keptFiles,
    previews,
    uploads: createUploads({
      sql,
      clock,
      sites,
      versions,
      publishing,
      previews,
      blobs,
      partialsDir: path.join(config.dataDir, 'uploads'),
    }),
    quickPublish: createQuickPublish({ sql, sites, versions, publishing, blobs }),
    contentUploads: createContentUploads({ sql, clock, secrets, blobs, baseUrl: config.baseUrl }),
    siteExport: createSiteExport({ sql, sites, versions, publishing, baseUrl: config.baseUrl }),
    blobCollection: createBlobCollection({ sql, clock, publishing }),
    webhooks: createWebhooks({ sql, clock, secrets, sender, config }),
    webhookCourier: createWebhookCourier({ ...ground, sender }),
    viewerSharing: createViewerSharing({ ...ground, routing, refreshRoutes, sites }),
    sharedWithMe: createSharedWithMe(ground),
    reviewFrames: createReviewFrames(ground),
    threadImages: createThreadImages(ground),
    review: tellingTabs(
      createReview({ ...ground, publishing, versions, previews, baseUrl: config.baseUrl }),
      createThreadNews({
        redis,
        sitesDomain: config.sitesDomain,
        edgesReadThreads: () => routing.everyEdgeReads(READS_THREADS),
      }),
    ),
    accessRequests: createAccessRequests({ ...ground, routing, refreshRoutes, sites }),
    domains,
    domainWatch: createDomainWatch({ domains, redis, log, checkMs: config.domainCheckMs }),
    trust,
    inspector,
    gallery: createGallery({ sql, clock, config }),
    publishers: createPublishers({
      sql,
      clock,
      sites,
      limiter,
      baseUrl: config.baseUrl,
      trustedIssuers: config.trustedIssuers,
      fetchOfIssuer: createIssuerFetch(config.trustedIssuers),
    }),
    anonymous: createAnonymous({
      sql,
      clock,
      routing,
      refreshRoutes,
      sites,
      versions,
      publishing,
      limiter,
      inspector: { inspect: inspector.inspect, queue: trust.queue },
      storage: createAnonymousStorage({ clock, secrets, config }),
      botCheck,
      config,
    }),
    browserCookie: createBrowserCookie(secrets),
    botCheck,
  }
}
