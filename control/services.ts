/** Every capability of the control plane, composed. The HTTP server, the jobs and the admin command share this. */
import path from 'node:path'
import { DAY_MS, HOUR_MS, type Clock } from '../shared/clock.ts'
import { openBlobStore } from '../shared/blobs/open.ts'
import { siteHost } from '../shared/hosts.ts'
import type { Log } from '../shared/log.ts'
import { openBlocking } from '../shared/redis.ts'
import { createSecrets } from '../shared/secrets.ts'
import { addressOf } from '../shared/settings.ts'
import { createAccess } from './people/access/access.ts'
import { createAccounts } from './people/accounts/accounts.ts'
import { createCsrf } from './people/access/csrf.ts'
import { createAnonymous } from './drops/anonymous/anonymous.ts'
import { createAnonymousStorage } from './drops/anonymous/storage.ts'
import { createBotCheck } from './drops/anonymous/bot-check.ts'
import { createBrowserCookie } from './drops/anonymous/browser-cookie.ts'
import { createTokens } from './people/access/tokens.ts'
import { createAudit } from './people/audit/audit.ts'
import { createBilling } from './plans/billing/billing.ts'
import { createStripe } from './plans/billing/stripe.ts'
import type { ControlConfig } from './ground/config.ts'
import { openDatabase } from './ground/database/sql.ts'
import { createDomains } from './drops/domains/domains.ts'
import { createDomainWatch } from './drops/domains/watch.ts'
import { createEvents } from './ground/events/publish.ts'
import { connectRedis } from './ground/events/redis.ts'
import { createGallery } from './drops/gallery/gallery.ts'
import { fetchPublic } from './ground/http/public-fetch.ts'
import { createRateLimiter } from './ground/http/limits/rate-limit.ts'
import { createLifecycle } from './plans/lifecycle/lifecycle.ts'
import { createEnqueueMail } from './ground/mail/mail.ts'
import { createMailer } from './ground/mail/mailer.ts'
import { createFileSink, createSmtpSink } from './ground/mail/sinks.ts'
import { createOAuth } from './doors/oauth/oauth.ts'
import { createOrganisations } from './people/organisations/organisations.ts'
import { createPublishing } from './drops/publishing/publishing.ts'
import { createContentUploads } from './drops/sites/content-uploads/content-uploads.ts'
import { deleteEndedSpans, referencedBlobs, siteIdsOfOwner } from './drops/sites/queries.ts'
import { createQuickPublish } from './drops/sites/versions/quick-publish.ts'
import { createRefreshRoutes } from './drops/sites/routing.ts'
import { createSiteExport } from './drops/sites/versions/site-export.ts'
import { createSites } from './drops/sites/sites.ts'
import { createUploads } from './drops/sites/uploads/uploads.ts'
import { createVersions } from './drops/sites/versions/versions.ts'
import { foldViews, forgetBatches } from './drops/sites/view-counts.ts'
import { createInspector } from './drops/trust/inspector.ts'
import { createTrust } from './drops/trust/trust.ts'

/** A blob that nothing references is kept this long: an upload that is still under way may be about to name it. */
const BLOB_GRACE_MS = DAY_MS
/** It lists the whole store; what it removes is at least a day old. */
const BLOB_SWEEP_MS = HOUR_MS
/** These pass whole tables for what is refused anyway, by its time, when somebody comes with it. */
const SWEEP_MS = HOUR_MS
/** A batch of view counts that another control has read but not folded yet is folded or given up by then. */
const VIEW_BATCH_MEMORY_MS = DAY_MS
const DATABASE_CONNECTIONS = 16
const REDIS_TIMEOUT_MS = 1000

export type Services = ReturnType<typeof createServices>

export function createServices({ config, clock, log }: { config: ControlConfig; clock: Clock; log: Log }) {
  const sql = openDatabase({ url: config.databaseUrl, maxConnections: DATABASE_CONNECTIONS })
  const redis = connectRedis(config.redisUrl, log)
  // Its WATCH must not meet the transactions of others; what is asked before it is connected waits.
  const publisherRedis = openBlocking(redis, REDIS_TIMEOUT_MS)
  publisherRedis.on('error', () => {})
  const secrets = createSecrets(config.secretKey)
  const blobStore = { url: config.blobStore }
  const blobs = openBlobStore(blobStore, (error) => log.warn({ err: error }, 'no copy of a blob kept'))
  const limiter = createRateLimiter({ redis, clock })
  const publishing = createPublishing({
    blobs,
    blobStore,
    scratchDir: path.join(config.dataDir, 'scratch'),
    admitUpload: (orgId) => limiter.consume('uploads', orgId, { points: config.uploadsPerHour, windowSeconds: 3600 }),
  })
  const enqueueMail = createEnqueueMail({ secrets, clock })
  const sink = config.smtpUrl ? createSmtpSink(config.smtpUrl) : createFileSink(path.join(config.dataDir, 'mail'))
  const mailer = createMailer({ sql, sink, secrets, clock, log, mailFrom: config.mailFrom })
  const audit = createAudit(clock)
  const tokens = createTokens({ sql, clock })

  const domains = createDomains({
    sql,
    redis,
    secrets,
    clock,
    log,
    config,
    audit,
    enqueueMail,
    propagate: () => events.propagate(),
  })
  const domainWatch = createDomainWatch({ domains, redis, log, checkMs: config.domainCheckMs })
  const refreshRoutes = createRefreshRoutes({
    sitesDomain: config.sitesDomain,
    lifetimes: config,
    now: () => clock.now(),
    domainRoutes: domains.routesOf,
  })
  const events = createEvents({ sql, redis, publisherRedis, log, republishers: [domains.republishCertificates] })
  const sites = createSites({ sql, clock, events, refreshRoutes, audit, config })
  const versions = createVersions({ sql, clock, log, events, refreshRoutes, audit, publishing, sites, config })
  const uploads = createUploads({
    sql,
    clock,
    sites,
    versions,
    publishing,
    blobs,
    partialsDir: path.join(config.dataDir, 'uploads'),
  })
  const quickPublish = createQuickPublish({ sql, sites, versions, publishing, blobs })
  const contentUploads = createContentUploads({ sql, clock, secrets, blobs, baseUrl: config.baseUrl })
  const siteExport = createSiteExport({ sql, sites, versions, publishing })
  const lifecycle = createLifecycle({
    sql,
    clock,
    events,
    refreshRoutes,
    sites,
    enqueueMail,
    domains,
    closeUnverified: () => accounts.closeUnverified(),
    config,
  })
  const trust = createTrust({ sql, clock, events, refreshRoutes, enqueueMail, limiter, config })
  const inspector = createInspector({ log })
  const gallery = createGallery({ sql, clock, config })
  const browserCookie = createBrowserCookie(secrets)
  const botCheck = createBotCheck(secrets)
  const anonymous = createAnonymous({
    sql,
    clock,
    events,
    refreshRoutes,
    sites,
    versions,
    publishing,
    limiter,
    inspector: { inspect: inspector.inspect, queue: trust.queue },
    storage: createAnonymousStorage({ clock, secrets, config }),
    botCheck,
    config,
  })
  const hooks = {
    onSignIn: lifecycle.touchOwner,
    async onVerified(db: Parameters<typeof refreshRoutes>[0], userId: string) {
      for (const id of await siteIdsOfOwner(db, userId)) await refreshRoutes(db, id)
    },
    claim: anonymous.claimBrowser,
    async onOrganisationDeleted(db: Parameters<typeof refreshRoutes>[0], orgId: string) {
      await sites.removeAll(db, orgId)
    },
    async onOwnerChanged(db: Parameters<typeof refreshRoutes>[0], orgId: string) {
      await lifecycle.ownerChanged(db, orgId)
      return { bill: await billing.ownerChanged(db, orgId) }
    },
    endConnectedApps: (db: Parameters<typeof refreshRoutes>[0], userId: string, now: Date) =>
      oauth.endGrantsOf(db, userId, now),
    propagate: () => events.propagate(),
  }
  const accounts = createAccounts({
    sql,
    clock,
    log,
    baseUrl: config.baseUrl,
    secrets,
    enqueueMail,
    hooks,
    personalDataKeptMs: config.personalDataKeptMs,
    settings: config,
    dropUrl: (slug) => addressOf(config, siteHost(slug, config.sitesDomain)),
    // Without a trusted proxy in front, the header is whatever a visitor says.
    geoHeader: config.trustedProxies.length > 0 ? config.geoHeader : undefined,
    anonymousIdOf: browserCookie.read,
  })
  const organisations = createOrganisations({ sql, clock, baseUrl: config.baseUrl, enqueueMail, hooks })
  const oauth = createOAuth({
    sql,
    clock,
    secrets,
    baseUrl: config.baseUrl,
    limiter,
    fetchDocument: fetchPublic,
    hooks,
  })
  const access = createAccess({
    sql,
    clock,
    log,
    baseUrl: config.baseUrl,
    oauth: (token, request) => oauth.actorOf(token, `${config.baseUrl}/api/v1`, request.ip),
  })
  const stripe = config.stripeSecretKey ? createStripe(config.stripeSecretKey, config.stripeApiBase) : undefined
  const billing = createBilling({
    sql,
    clock,
    log,
    baseUrl: config.baseUrl,
    stripe,
    webhookSecrets: config.stripeWebhookSecrets,
    lifecycle,
    events,
    enqueueMail,
  })
  const csrf = createCsrf({ secrets, baseUrl: config.baseUrl })

  async function runLifecycle(): Promise<void> {
    const { held } = await lifecycle.run()
    if (held > 0)
      log.warn({ drops: held }, 'so many drops are due to be removed that none is; see "admin run-lifecycle --all"')
  }

  async function collectBlobs(): Promise<number> {
    const now = clock.now()
    await deleteEndedSpans(sql, new Date(now))
    return publishing.collectGarbage({
      isReferenced: (hashes) => referencedBlobs(sql, hashes, new Date(now)),
      graceMs: BLOB_GRACE_MS,
      now,
    })
  }

  return {
    config,
    clock,
    log,
    sql,
    redis,
    secrets,
    limiter,
    blobs,
    publishing,
    enqueueMail,
    mailer,
    events,
    refreshRoutes,
    sites,
    versions,
    uploads,
    quickPublish,
    contentUploads,
    siteExport,
    domains,
    domainWatch,
    lifecycle,
    trust,
    gallery,
    anonymous,
    browserCookie,
    botCheck,
    accounts,
    organisations,
    access,
    tokens,
    csrf,
    oauth,
    stripe,
    billing,
    collectBlobs,

    /** Short, and looked at by people: runs often, and waits for none of the others. */
    viewsJob: { name: 'views', run: () => foldViews({ sql, redis }) },
    /** Takes as long as there is something to compress, which the others do not wait for. */
    compressionJob: { name: 'compression', run: (stopping: AbortSignal) => versions.refineDue(stopping) },
    /** What runs by itself, again and again. Each is safe to run on several controls at once. */
    jobs: [
      { name: 'lifecycle', run: runLifecycle },
      { name: 'uploads', run: () => uploads.sweep() },
      { name: 'content uploads', atMostEveryMs: SWEEP_MS, run: () => contentUploads.sweep() },
      { name: 'accounts', atMostEveryMs: SWEEP_MS, run: () => accounts.sweep() },
      { name: 'mail', run: () => mailer.sweep() },
      { name: 'oauth', atMostEveryMs: SWEEP_MS, run: () => oauth.sweep() },
      {
        name: 'view batches',
        atMostEveryMs: SWEEP_MS,
        run: () => forgetBatches(sql, new Date(clock.now() - VIEW_BATCH_MEMORY_MS)),
      },
      { name: 'billing', run: () => billing.reconcile() },
      { name: 'blobs', atMostEveryMs: BLOB_SWEEP_MS, run: collectBlobs },
    ],

    async close(): Promise<void> {
      await domainWatch.stop()
      await mailer.stop()
      await events.stop()
      await Promise.all([publishing.close(), inspector.close()])
      redis.disconnect()
      publisherRedis.disconnect()
      await sql.end({ timeout: 5 })
    },
  }
}
