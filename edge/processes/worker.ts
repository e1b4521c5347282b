/** One worker: its own listeners, caches and read-only view of the replica. It talks to the primary alone. */
import { createCertificateIndex, type CertificateIndex } from '../../certs/certificates.ts'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import { openServiceCertificate, type ServiceCertificate } from '../../certs/service-certificate.ts'
import { openBlobStore } from '../../shared/blobs/open.ts'
import { openBundle, type CertificateBundle } from '../../shared/certificates/bundle.ts'
import { ownCertificates, wildcardOfSites } from '../../shared/certificates/own-names.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { createLog, type Log } from '../../shared/running/log.ts'
import { createProofOfWork } from '../../shared/secrets/proof-of-work.ts'
import { createSecrets, type Secrets } from '../../shared/secrets/secrets.ts'
import { giveBackWhenIdle } from '../../shared/running/idle-memory.ts'
import { startTracer } from '../../shared/running/traces.ts'
import { answerPings } from '../../shared/running/watchdog/heartbeat.ts'
import { hangOnSignal } from '../../shared/running/watchdog/test-hook.ts'
import { startWatchdog } from '../../shared/running/watchdog/watchdog.ts'
import { createAnswers } from './answers.ts'
import { createVisitorIps } from '../accept/visitors/address.ts'
import { createNetworkLimits, type NetworkLimits } from '../accept/visitors/limits.ts'
import { createTlsListener, TLS_OPTIONS, type TlsListener } from '../accept/listen.ts'
import { createPlainListener, type PlainListener } from '../accept/plain.ts'
import { rotateTicketKeys, ticketKeys } from '../accept/tickets.ts'
import { createClassify, createServiceTest } from '../gate/classify.ts'
import type { EdgeConfig } from '../config.ts'
import { createPreviewGate } from '../gate/members.ts'
import { startDelayMeter } from './status/delay-meter.ts'
import { createTracing } from './status/tracing.ts'
import { createAdmissions } from '../gate/admissions.ts'
import { createFraming } from '../gate/review.ts'
import { createUnlock, type Unlock } from '../gate/unlock.ts'
import { indexFiles, indexSite } from '../locate/site-index.ts'
import { isPing, type Counters, type Ping, type ToPrimary, type ToWorker } from './messages.ts'
import type { Change } from '../store/replica/replica.ts'
import { createLiveStreams, type LiveStreams } from '../store/live/live-streams.ts'
import { createPassQuestion, createWatching } from '../store/live/watching.ts'
import { createPipeline } from '../pipeline.ts'
import { createMachines } from './machines/machines.ts'
import { createRepresentations } from './representations.ts'
import { createSnippets } from '../rewrite/snippets.ts'
import { createMemberQuestion } from '../send/member-question.ts'
import { createRequestLog, type RequestLog } from '../send/request-log.ts'
import { createProxy, type Proxy } from '../send/proxy.ts'
import { createViews, isMachineName, type Views } from '../send/views.ts'
import { createVisitLine } from '../send/visit-line.ts'
import { createVisits, type Visits } from '../send/visits.ts'
import { createBlobCache, type BlobCache } from '../store/blob-cache.ts'
import { forgetChanges } from '../store/forget.ts'
import { openReplica, type Replica } from '../store/replica/replica.ts'
import { createRoutes, type Routes } from '../store/routes.ts'
import { createSites } from '../store/sites.ts'
import { surviveStrayErrors } from './status/stray-errors.ts'
import { createViewing } from '../gate/viewing.ts'

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
  new Worker(assemble(config, log), config).obey()
}

/** What a worker consists of. */
interface Parts {
  readonly replica: Replica
  readonly routes: Routes
  readonly certificates: CertificateIndex
  readonly cache: BlobCache
  readonly views: Views
  readonly visits: Visits
  readonly requestLog: RequestLog
  readonly limits: NetworkLimits
  readonly proxy: Proxy
  readonly unlock: Unlock
  readonly streams: LiveStreams
  readonly listener: TlsListener
  readonly plain: PlainListener
  refusedConnections(): number
}

function assemble(config: EdgeConfig, log: Log): Parts {
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
  const visits = createVisits()
  const requestLog = createRequestLog({ log, sample: config.accessLogSample })
  const limits = createNetworkLimits(config.limits)
  const stored = storedCertificates(replica, secrets)
  const service = serviceCertificate(config, stored, log)
  const certificates = certificateIndex(config, service, stored, log)
  const tracer = startTracer('dropway-edge', config.traces)
  const tracing = tracer && createTracing(tracer)
  const proxy = createProxy({
    controlUrls: config.controlUrls,
    publicHost: new URL(config.baseUrl).host,
    traceparent: tracing?.traceparent,
  })
  const unlock = createUnlock({
    secrets,
    proofOfWork: createProofOfWork(secrets),
    clock,
    tell: (attempt) => tell({ type: 'attempt', attempt }),
  })
  const plainAnswers = createAnswers({ ...config, log })
  const answers = tracing?.noteErrors(plainAnswers) ?? plainAnswers
  const sites = createSites(blobs, { indexFiles, indexSite })
  const machines = createMachines({ blobs, cache, sites, publicPort: config.publicPort })
  const line = createVisitLine({ controlUrls: config.controlUrls, publicHost: new URL(config.baseUrl).host })
  const framing = createFraming({ secrets, clock })
  const streams = createLiveStreams()
  const pipeline = createPipeline({
    framing,
    watching: createWatching({
      routes,
      framing,
      streams,
      sitesDomain: config.sitesDomain,
      askForPass: createPassQuestion(config.controlUrls, new URL(config.baseUrl).host),
    }),
    classify: createClassify({ routes, serviceHost: config.serviceHost, sitesDomain: config.sitesDomain, secrets }),
    unlock,
    members: createPreviewGate({
      secrets,
      clock,
      baseUrl: config.baseUrl,
      ask: createMemberQuestion(config.controlUrls, new URL(config.baseUrl).host),
    }),
    sites,
    representations: createRepresentations({
      blobs,
      cache,
      snippets: createSnippets(config),
      machines,
    }),
    machines,
    answers,
    proxy,
    viewing: createViewing({
      admissions: createAdmissions({ secrets, clock }),
      line,
      answers,
      isLookedAt: isMachineName,
      clock,
    }),
    views,
    visits,
    clock,
    log,
  })
  let refusedConnections = 0
  const visitorIps = createVisitorIps(config.trustedProxies)
  const listener = createTlsListener({
    certificates,
    fallback: service.current(),
    visitorIps,
    limits,
    ticketKeys: ticketKeys(secrets, clock.now()),
    onExchange: tracing?.wrap(pipeline) ?? pipeline,
    isService: createServiceTest(config.serviceHost),
    onAnswer: tracing ? both(requestLog.answered, tracing.answered) : requestLog.answered,
    onRefusedConnection: () => void (refusedConnections += 1),
  })
  const plain = createPlainListener({
    challenge: (token) => challengeOf(replica, token),
    publicPort: config.publicPort,
    limits,
    visitorIps,
  })
  rotateTicketKeys(secrets, clock, (keys) => listener.setTicketKeys(keys))
  service.watch((bundle) => {
    certificates.setFallback(bundle)
    listener.setFallback(bundle)
  })
  const counted = { refusedConnections: () => refusedConnections }
  return {
    replica,
    routes,
    certificates,
    cache,
    views,
    visits,
    requestLog,
    limits,
    proxy,
    unlock,
    streams,
    listener,
    plain,
    ...counted,
  }
}

function tell(message: ToPrimary): void {
  if (channel.connected) channel.send(message)
}

/** Does what the primary says, and hands over what it wants to know. */
class Worker {
  readonly #parts: Parts
  readonly #drainMs: number
  readonly #delay = startDelayMeter()
  readonly #viewsTimer: NodeJS.Timeout
  #isListening = false
  #isDraining = false

  constructor(parts: Parts, { drainMs }: EdgeConfig) {
    this.#parts = parts
    this.#drainMs = drainMs
    this.#viewsTimer = setInterval(() => this.#handOverViews(), VIEWS_EVERY_MS)
  }

  obey(): void {
    process.on('message', (message: ToWorker | Ping) => {
      if (!isPing(message)) this.#hear(message)
    })
    // Without a primary this worker does not hear what changed: it remembers nothing any more, and ends soon.
    process.on('disconnect', () => {
      if (this.#isDraining || !this.#isListening) process.exit(0)
      this.#parts.routes.rememberNothing()
      setTimeout(() => void this.#drain(), ORPHAN_MS)
    })
    // The primary may have ended while this process was loading: then no event tells it any more.
    if (!channel.connected) process.exit(0)
    // The primary decides when workers stop; a terminal sends Ctrl-C to all of them.
    process.on('SIGINT', () => {})
    process.on('SIGTERM', () => void this.#drain())
  }

  #hear(message: ToWorker): void {
    switch (message.type) {
      case 'listen':
        return void this.#listen(message.address, message.httpsPort, message.httpPort)
      case 'changed':
        forgetChanges(this.#parts, message.changes)
        tell({ type: 'confirmed', id: message.id })
        return tellStreams(this.#parts.streams, message.changes)
      case 'report':
        return tell({ type: 'report', id: message.id, counters: this.#counters(message.isScrape) })
      case 'attempt':
        return this.#parts.unlock.hear(message.attempt)
      case 'drain':
        return void this.#drain()
      default:
        return message satisfies never
    }
  }

  #counters(isScrape: boolean): Counters {
    const { requestLog, refusedConnections, listener, limits, cache, proxy } = this.#parts
    const { http1, http2 } = listener.connections()
    return {
      requests: requestLog.counts(),
      refusedConnections: refusedConnections(),
      http1Connections: http1,
      http2Connections: http2,
      networks: limits.size(),
      heldBytes: listener.heldBytes(),
      cacheBytes: cache.sizeBytes(),
      residentBytes: process.memoryUsage.rss(),
      pid: process.pid,
      eventLoopDelay: this.#delay.read(isScrape),
      proxiedRequests: proxy.inUse(),
    }
  }

  #handOverViews(): void {
    const [pages, visits] = [this.#parts.views.take(), this.#parts.visits.take(systemClock.now())]
    if (pages.length + visits.length > 0) tell({ type: 'views', pages, visits })
  }

  /** The last ones count too: gone only when they are written to the channel. */
  async #handOverLast(): Promise<void> {
    const { views, visits } = this.#parts
    const message: ToPrimary = { type: 'views', pages: views.take(), visits: visits.take(systemClock.now()) }
    if (channel.connected) await new Promise<void>((resolve) => void channel.send(message, () => resolve()))
  }

  async #listen(address: string, httpsPort: number, httpPort: number): Promise<void> {
    try {
      const https = await this.#parts.listener.listen(httpsPort, address)
      const http = await this.#parts.plain.listen(httpPort, address)
      this.#isListening = true
      tell({ type: 'listening', httpsPort: https, httpPort: http })
      startWatchdog({ name: 'edge' })
      giveBackWhenIdle()
    } catch (error) {
      channel.send({ type: 'failed', message: (error as Error).message } satisfies ToPrimary, () => process.exit(1))
    }
  }

  async #drain(): Promise<void> {
    if (this.#isDraining) return
    this.#isDraining = true
    this.#parts.plain.close()
    this.#parts.streams.end()
    await this.#parts.listener.drain(this.#drainMs)
    clearInterval(this.#viewsTimer)
    await this.#handOverLast()
    process.exit(0)
  }
}

function tellStreams(streams: LiveStreams, changes: readonly Change[] | undefined): void {
  const hostsOf = (wanted: Change['kind']): string[] | undefined =>
    changes?.filter(({ kind }) => kind === wanted).map(({ name }) => name)
  streams.changed(hostsOf('route'))
  streams.said(hostsOf('threads') ?? [])
}

type OnAnswer = RequestLog['answered']

function both(first: OnAnswer, second: OnAnswer): OnAnswer {
  return (exchange, status) => {
    first(exchange, status)
    second(exchange, status)
  }
}

/** Certificates that the issuers of all edges got, as the replica holds them. */
interface StoredCertificates {
  find(name: string): CertificateBundle | undefined
  /** The same for one name that is asked for again and again: opened only when it has changed. */
  reader(name: string): () => CertificateBundle | undefined
}

function storedCertificates(replica: Replica, secrets: Secrets): StoredCertificates {
  const open = (name: string, sealed: string | undefined): CertificateBundle | undefined =>
    sealed === undefined || sealed === '' ? undefined : openBundle(secrets, name, sealed)
  return {
    find: (name) => open(name, replica.value('certificate', name)),
    reader(name) {
      let seen: string | undefined
      let bundle: CertificateBundle | undefined
      return () => {
        const sealed = replica.value('certificate', name)
        if (sealed !== seen) {
          bundle = open(name, sealed)
          seen = sealed
        }
        return bundle
      }
    },
  }
}

function serviceCertificate(config: EdgeConfig, stored: StoredCertificates, log: Log): ServiceCertificate {
  const { sitesCertFile: certFile, sitesKeyFile: keyFile } = config
  const options = { names: config, clock: systemClock, log }
  if (certFile !== undefined && keyFile !== undefined)
    return openServiceCertificate({ source: { kind: 'files', certFile, keyFile }, ...options })
  const ca = openLocalCa(config.dataDir, systemClock)
  if (config.dns01 === undefined) return openServiceCertificate({ source: { kind: 'local-ca', ca }, ...options })
  const read = stored.reader(wildcardOfSites(config))
  return openServiceCertificate({ source: { kind: 'issued', read, ca }, ...options })
}

function certificateIndex(
  config: EdgeConfig,
  service: ServiceCertificate,
  stored: StoredCertificates,
  log: Log,
): CertificateIndex {
  // What an issuer once got for the service's own names is not shown where files or the local CA are set to bring it.
  const ignored = new Set(config.dns01 === undefined ? ownCertificates(config) : [])
  return createCertificateIndex({
    fallback: service.current(),
    mint: service.mint,
    tlsOptions: TLS_OPTIONS,
    lookup: (name) => (ignored.has(name) ? undefined : stored.find(name)),
    onBadBundle: (name, error) => log.error({ err: error, domain: name }, 'a certificate cannot be used'),
  })
}

/** Tokens are base64url (RFC 8555 §8.3); anything else is not looked up. */
function challengeOf(replica: Replica, token: string): string | undefined {
  return /^[A-Za-z0-9_-]{1,200}$/.test(token) ? replica.value('challenge', token) : undefined
}
