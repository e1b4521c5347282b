/** One worker: its own listeners, caches and read-only view of the replica. It talks to the primary alone. */
import { createCertificateIndex, type CertificateIndex } from '../certs/certificates.ts'
import { openLocalCa } from '../certs/local-ca.ts'
import { openServiceCertificate, type ServiceCertificate } from '../certs/service-certificate.ts'
import { openBlobStore } from '../shared/blobs/open.ts'
import { openBundle } from '../shared/certificate-bundle.ts'
import { systemClock } from '../shared/clock.ts'
import { createLog, type Log } from '../shared/log.ts'
import { createProofOfWork } from '../shared/proof-of-work.ts'
import { createSecrets, type Secrets } from '../shared/secrets.ts'
import { answerPings } from '../shared/watchdog/heartbeat.ts'
import { hangOnSignal } from '../shared/watchdog/test-hook.ts'
import { startWatchdog } from '../shared/watchdog/watchdog.ts'
import { createAnswers } from './answers.ts'
import { createVisitorIps } from './accept/address.ts'
import { createNetworkLimits } from './accept/limits.ts'
import { createTlsListener, TLS_OPTIONS } from './accept/listen.ts'
import { createPlainListener } from './accept/plain.ts'
import { rotateTicketKeys, ticketKeys } from './accept/tickets.ts'
import { createClassify, createServiceTest } from './classify/classify.ts'
import type { EdgeConfig } from './config.ts'
import { startDelayMeter } from './delay-meter.ts'
import { createUnlock } from './gate/unlock.ts'
import { indexManifest } from './locate/site-index.ts'
import { isPing, type Ping, type ToPrimary, type ToWorker } from './messages.ts'
import { createPipeline } from './pipeline.ts'
import { createRepresentations } from './representations.ts'
import { createSnippets } from './rewrite/snippets.ts'
import { createRequestLog } from './send/request-log.ts'
import { createProxy } from './send/proxy.ts'
import { createViews } from './send/views.ts'
import { createBlobCache } from './store/blob-cache.ts'
import { forgetChanges } from './store/forget.ts'
import { openReplica, type Replica } from './store/replica.ts'
import { createRoutes } from './store/routes.ts'
import { createSites } from './store/sites.ts'
import { surviveStrayErrors } from './stray-errors.ts'

/** A worker is started with a channel to its primary. */
const channel = process as NodeJS.Process & { send: NonNullable<NodeJS.Process['send']> }

const VIEWS_EVERY_MS = 1000
/** How long a worker serves without a primary. The next one is there within two or three seconds. */
const ORPHAN_MS = 10_000

export function runWorker(config: EdgeConfig): void {
  const log = createLog('edge', config.logLevel)
  surviveStrayErrors(log)
  hangOnSignal(config.testHooks === 'hang')
  answerPings()
  const clock = systemClock
  const secrets = createSecrets(config.secretKey)
  const replica = openReplica(config.replicaDir, { readOnly: true })
  const routes = createRoutes(replica)
  const blobs = openBlobStore(
    { url: config.blobStore },
    { onProblem: (error) => log.warn({ err: error }, 'no copy of a blob kept') },
  )
  const cache = createBlobCache(config.blobCacheBytes)
  const views = createViews()
  const requestLog = createRequestLog({ log, sample: config.accessLogSample })
  const limits = createNetworkLimits(config.limits)
  const service = serviceCertificate(config, log)
  const certificates = certificateIndex(service, replica, secrets, log)
  const proxy = createProxy({
    controlUrls: config.controlUrls,
    publicHost: new URL(config.baseUrl).host,
  })
  const delay = startDelayMeter()
  let refusedConnections = 0

  const unlock = createUnlock({
    secrets,
    proofOfWork: createProofOfWork(secrets),
    clock,
    tell: (attempt) => tell({ type: 'attempt', attempt }),
  })
  const pipeline = createPipeline({
    classify: createClassify({ routes, serviceHost: config.serviceHost, sitesDomain: config.sitesDomain }),
    unlock,
    sites: createSites(blobs, indexManifest),
    representations: createRepresentations({ blobs, cache, snippets: createSnippets({ baseUrl: config.baseUrl }) }),
    answers: createAnswers({ baseUrl: config.baseUrl, publicPort: config.publicPort, log }),
    proxy,
    views,
    clock,
    log,
  })
  const listener = createTlsListener({
    certificates,
    fallback: service.current(),
    visitorIps: createVisitorIps(config.trustedProxies),
    limits,
    ticketKeys: ticketKeys(secrets, clock.now()),
    onExchange: pipeline,
    isService: createServiceTest(config.serviceHost),
    onAnswer: requestLog.answered,
    onRefusedConnection: () => void (refusedConnections += 1),
  })
  const plain = createPlainListener({
    challenge: (token) => challengeOf(replica, token),
    publicPort: config.publicPort,
    limits,
  })
  rotateTicketKeys(secrets, clock, (keys) => listener.setTicketKeys(keys))
  service.watch((bundle) => {
    certificates.setFallback(bundle)
    listener.setFallback(bundle)
  })
  const viewsTimer = setInterval(handOverViews, VIEWS_EVERY_MS)

  function tell(message: ToPrimary): void {
    if (channel.connected) channel.send(message)
  }

  function handOverViews(): void {
    const pages = views.take()
    if (pages.length > 0) tell({ type: 'views', pages })
  }

  /** The last ones count too: gone only when they are written to the channel. */
  async function handOverLast(): Promise<void> {
    const message: ToPrimary = { type: 'views', pages: views.take() }
    if (channel.connected) await new Promise<void>((resolve) => void channel.send(message, () => resolve()))
  }

  async function listen(address: string, httpsPort: number, httpPort: number): Promise<void> {
    try {
      const https = await listener.listen(httpsPort, address)
      const http = await plain.listen(httpPort, address)
      isListening = true
      tell({ type: 'listening', httpsPort: https, httpPort: http })
      startWatchdog({ name: 'edge' })
    } catch (error) {
      channel.send({ type: 'failed', message: (error as Error).message } satisfies ToPrimary, () => process.exit(1))
    }
  }

  let isListening = false
  let draining = false
  async function drain(): Promise<void> {
    if (draining) return
    draining = true
    plain.close()
    await listener.drain(config.drainMs)
    clearInterval(viewsTimer)
    await handOverLast()
    process.exit(0)
  }

  process.on('message', (message: ToWorker | Ping) => {
    if (isPing(message)) return
    switch (message.type) {
      case 'listen':
        return void listen(message.address, message.httpsPort, message.httpPort)
      case 'changed':
        forgetChanges({ replica, routes, certificates }, message.changes)
        return tell({ type: 'confirmed', id: message.id })
      case 'report':
        return tell({
          type: 'report',
          id: message.id,
          counters: {
            requests: requestLog.counts(),
            refusedConnections,
            http1Connections: listener.connections().http1,
            http2Connections: listener.connections().http2,
            networks: limits.size(),
            heldBytes: listener.heldBytes(),
            cacheBytes: cache.sizeBytes(),
            residentBytes: process.memoryUsage.rss(),
            pid: process.pid,
            eventLoopDelay: delay.read(message.isScrape),
            proxiedRequests: proxy.inUse(),
          },
        })
      case 'attempt':
        return unlock.hear(message.attempt)
      case 'drain':
        return void drain()
      default:
        return message satisfies never
    }
  })
  // Without a primary this worker does not hear what changed: it remembers nothing any more, and ends soon.
  process.on('disconnect', () => {
    if (draining || !isListening) process.exit(0)
    routes.rememberNothing()
    setTimeout(() => void drain(), ORPHAN_MS)
  })
  // The primary may have ended while this process was loading: then no event tells it any more.
  if (!channel.connected) process.exit(0)
  // The primary decides when workers stop; a terminal sends Ctrl-C to all of them.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => void drain())
}

function serviceCertificate(config: EdgeConfig, log: Log): ServiceCertificate {
  const { sitesCertFile: certFile, sitesKeyFile: keyFile } = config
  const source =
    certFile !== undefined && keyFile !== undefined
      ? ({ kind: 'files', certFile, keyFile } as const)
      : ({ kind: 'local-ca', ca: openLocalCa(config.dataDir, systemClock) } as const)
  return openServiceCertificate({ source, names: config, clock: systemClock, log })
}

function certificateIndex(service: ServiceCertificate, replica: Replica, secrets: Secrets, log: Log): CertificateIndex {
  return createCertificateIndex({
    fallback: service.current(),
    mint: service.mint,
    tlsOptions: TLS_OPTIONS,
    lookup(name) {
      const sealed = replica.value('certificate', name)
      return sealed === undefined ? undefined : openBundle(secrets, name, sealed)
    },
    onBadBundle: (name, error) => log.error({ err: error, domain: name }, 'a certificate cannot be used'),
  })
}

/** Tokens are base64url (RFC 8555 §8.3); anything else is not looked up. */
function challengeOf(replica: Replica, token: string): string | undefined {
  return /^[A-Za-z0-9_-]{1,200}$/.test(token) ? replica.value('challenge', token) : undefined
}
