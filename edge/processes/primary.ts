/**
 * The edge's primary process: follows the change log, keeps the replica, looks after certificates and workers.
 * It serves no visitor.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { createCertificateCounters } from '../../certs/counters.ts'
import { openLocalCa } from '../../certs/local/local-ca.ts'
import type { AcmeSourceDependencies } from '../../certs/orders/issue.ts'
import { createOrderBudget } from '../../certs/orders/order-budget.ts'
import { createIssuer, type CertificateEvents, type Issuer } from '../../certs/renew.ts'
import { createLocalSource, type CertificateSource } from '../../certs/source.ts'
import { accountText } from '../../certs/dns/settings.ts'
import { openBlobStore } from '../../shared/blobs/open.ts'
import { ownCertificates } from '../../shared/certificates/own-names.ts'
import { systemClock } from '../../shared/running/clock.ts'
import { newId } from '../../shared/contracts/ids.ts'
import { edgeIdOf } from '../../shared/contracts/live-edges.ts'
import { giveBackWhenIdle } from '../../shared/running/idle-memory.ts'
import { createLog, type Log } from '../../shared/running/log.ts'
import { patiently } from '../../shared/settings/patience.ts'
import { saySettings, settingsOf } from '../../shared/contracts/plane-settings.ts'
import { createSecrets, type Secrets } from '../../shared/secrets/secrets.ts'
import { EDGE_TTL_MS, keys } from '../../shared/redis/keys.ts'
import { decodeDomainWish, encodeDomainWish } from '../../shared/redis/stream.ts'
import { systemTimers } from '../../shared/running/timers.ts'
import { answerPings } from '../../shared/running/watchdog/heartbeat.ts'
import { hangOnSignal } from '../../shared/running/watchdog/test-hook.ts'
import { startWatchdog } from '../../shared/running/watchdog/watchdog.ts'
import type { EdgeConfig } from '../config.ts'
import { startDelayMeter } from './status/delay-meter.ts'
import { indexManifest } from '../locate/site-index.ts'
import { startMetrics } from './status/metrics.ts'
import { findOrphans, noteWorkers } from './orphans.ts'
import { startFollower } from '../store/follow/follower.ts'
import { connectRedis } from '../store/follow/redis.ts'
import { openReplica, type Change, type Replica } from '../store/replica/replica.ts'
import { createProblemOf } from '../store/follow/usable.ts'
import { setAside } from '../store/replica/replica-damage.ts'
import { startViewLedger } from '../store/view-ledger.ts'
import { createVisitors } from '../store/visitors.ts'
import { surviveStrayErrors } from './status/stray-errors.ts'
import { DRAIN_GRACE_MS, startWorkers } from './workers.ts'

/**
 * How long visitors are waited for once the supervisor is gone. Its guard kills the edge two seconds later, and the next
 * start needs the ports.
 */
const ORPHAN_DRAIN_MS = 5000
/** While Redis is away: one for each viewer and second. */
const MAX_WAITING_VISITS = 100_000
const PORT_ATTEMPTS = 8
const PORT_RETRY_MS = 200

export async function runPrimary(
  config: EdgeConfig,
  workerFile: string,
  findingDamage: Promise<string | undefined>,
): Promise<void> {
  const log = createLog('edge', config.logLevel)
  const delay = startDelayMeter()
  const orphans = findOrphans(config.replicaDir)
  const address = await chooseAddress(config, orphans.length > 0)
  const damage = await findingDamage
  if (damage !== undefined) {
    const kept = setAside(config.replicaDir)
    log.error(
      { damage, kept },
      'the replica was damaged and is filled anew; until Redis gave a snapshot, drops are 503',
    )
  }
  const replica = openReplica(config.replicaDir, { readOnly: false })
  const background = connectRedis(config.redisUrl, 'background')
  background.connect().catch(() => {})
  const stopSaying = saySettings(
    background,
    systemClock,
    settingsOf('edge', { ...config, dns01Account: config.dns01 && accountText(config.dns01) }),
  )
  const ledger = startViewLedger(background)
  const visitLedger = startViewLedger(background, { key: keys.visits, maxWaiting: MAX_WAITING_VISITS })
  const visitors = createVisitors()
  const workers = startWorkers({
    config,
    address,
    workerFile,
    log,
    onViews(pages, visits) {
      ledger.add(visitors.count(pages))
      visitLedger.add(visits)
    },
    onChange: (pids) => noteWorkers(config.replicaDir, pids),
  })
  const certificates = createCertificateCounters()
  const issuer = await startIssuer(config, background, log, certificates.events)

  const follower = startFollower({
    edgeId: edgeIdOf(newId('edge')),
    replica,
    connect: (use) => connectRedis(config.redisUrl, use),
    async announce(changes) {
      await workers.announce(changes)
      tellIssuer(issuer, replica, changes)
    },
    problemOf: createProblemOf({
      replica,
      blobs: openBlobStore({ url: config.blobStore }),
      secrets: createSecrets(config.secretKey),
      indexManifest,
    }),
    log,
    timers: systemTimers,
    ttlMs: patiently(EDGE_TTL_MS),
  })
  let metrics: Awaited<ReturnType<typeof startMetrics>> | undefined
  let stopping: Promise<void> | undefined
  const isLeaving = (): boolean => stopping !== undefined
  const orphaned = Promise.withResolvers<void>()
  /** In named phases: balancers first, then visitors, then what is left to be told, then the files. */
  const stop = (): Promise<void> =>
    (stopping ??= (async () => {
      if (metrics) await Promise.race([sleep(config.drainNoticeMs), orphaned.promise])
      log.info('draining')
      await workers.drain(config.drainMs + DRAIN_GRACE_MS, orphaned.promise)
      await Promise.all([follower.stop(), ledger.stop(), visitLedger.stop(), issuer.stop(1000)])
      stopSaying()
      background.disconnect()
      metrics?.close()
      await replica.close()
      log.info('stopped')
      process.exit(0)
    })())
  // From here on control waits for this edge: it takes itself off the list also where it is told to stop before it serves.
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
  process.on('disconnect', () => {
    setTimeout(orphaned.resolve, ORPHAN_DRAIN_MS)
    void stop()
  })

  // Registered and level first, where Redis is there: then no publish is acknowledged that this edge does not serve.
  await follower.firstSync
  if (isLeaving()) return stopping
  const ports = await workers.listen().catch(async (error: unknown) => {
    // Those that are told to stop do not listen any more.
    await stopping
    throw error
  })
  if (orphans.length > 0) dismiss(orphans, config.drainMs, log)
  if (config.metricsPort !== undefined)
    metrics = await startMetrics(
      { port: config.metricsPort, host: config.metricsHost },
      { workers, follower, ledger, replica, certificates, delay, isLeaving },
    )
  if (isLeaving()) return stopping
  log.info({ ...ports, metricsPort: metrics?.port, workers: config.workers }, 'ready')
  surviveStrayErrors(log)
  startWatchdog({ name: 'edge' })
  hangOnSignal(config.testHooks === 'hang')
  answerPings()
  giveBackWhenIdle()
  process.send?.({ ready: true, ...ports, metricsPort: metrics?.port })
}

/** The workers of a primary that died: others listen now, so they end when those they serve have. */
function dismiss(orphans: readonly number[], drainMs: number, log: Log): void {
  log.warn({ orphans }, 'the primary before this one died; its workers served until now')
  const tell = (signal: NodeJS.Signals): void => {
    for (const pid of orphans) {
      try {
        process.kill(pid, signal)
      } catch {
        // It has gone.
      }
    }
  }
  tell('SIGTERM')
  setTimeout(tell, drainMs + DRAIN_GRACE_MS, 'SIGKILL').unref()
}

/**
 * Where to listen: as set, else every address, also where the machine has no IPv6. With `reusePort` a second edge
 * would silently share the port with the first, so each port is asked for without it, once.
 */
async function chooseAddress({ httpsPort, httpPort, bindAddress }: EdgeConfig, isShared: boolean): Promise<string> {
  const address = bindAddress ?? ((await listenProblem(0, '::')) === undefined ? '::' : '0.0.0.0')
  // Those who listen there are our own, of the primary before.
  if (isShared) return address
  for (const [name, port] of [
    ['EDGE_HTTPS_PORT', httpsPort],
    ['EDGE_HTTP_PORT', httpPort],
  ] as const) {
    const problem = port === 0 ? undefined : await lastingProblem(port, address)
    if (problem) throw new Error(`${name} ${port} cannot be used: ${describe(problem)}`)
  }
  return address
}

/** Workers of an edge that was just killed take a moment to notice. */
async function lastingProblem(port: number, host: string): Promise<NodeJS.ErrnoException | undefined> {
  for (let attempt = 1; ; attempt++) {
    const problem = await listenProblem(port, host)
    if (problem?.code !== 'EADDRINUSE' || attempt === PORT_ATTEMPTS) return problem
    await sleep(PORT_RETRY_MS)
  }
}

async function listenProblem(port: number, host: string): Promise<NodeJS.ErrnoException | undefined> {
  const probe = createServer()
  try {
    await once(probe.listen({ port, host, exclusive: true }), 'listening')
    return undefined
  } catch (error) {
    return error as NodeJS.ErrnoException
  } finally {
    probe.close()
  }
}

function describe(error: NodeJS.ErrnoException): string {
  return error.code === 'EADDRINUSE' ? 'something else is listening there' : error.message
}

async function startIssuer(config: EdgeConfig, redis: Redis, log: Log, events: CertificateEvents): Promise<Issuer> {
  const secrets = createSecrets(config.secretKey)
  const source = await certificateSource(config, redis, secrets)
  // The local CA takes any number of orders.
  const budget = config.acmeDirectoryUrl === undefined ? undefined : createOrderBudget(redis, systemClock)
  const ownNames = config.dns01 === undefined ? [] : ownCertificates(config)
  const issuer = createIssuer({ redis, secrets, clock: systemClock, log, source, budget, events, ownNames })
  issuer.start()
  return issuer
}

async function certificateSource(config: EdgeConfig, redis: Redis, secrets: Secrets): Promise<CertificateSource> {
  const { acmeDirectoryUrl: directoryUrl, acmeEmail: email, acmeCaFile: caFile } = config
  if (directoryUrl === undefined) return createLocalSource(openLocalCa(config.dataDir, systemClock))
  // The ACME client takes a third of a second to load; an edge with a local CA never needs it.
  const { createAcmeSource } = await import('../../certs/orders/issue.ts')
  const acme = { directoryUrl, email, caFile }
  return createAcmeSource({ redis, secrets, clock: systemClock, acme, dns: await ownProofs(config) })
}

async function ownProofs(config: EdgeConfig): Promise<AcmeSourceDependencies['dns']> {
  if (config.dns01 === undefined) return undefined
  const { createDns01 } = await import('../../certs/dns/dns01.ts')
  return { client: createDns01(config.dns01), names: ownCertificates(config) }
}

/** An entry that was removed asks for nothing. */
const UNWANTED = encodeDomainWish({ wanted: false })

function tellIssuer(issuer: Issuer, replica: Replica, changes: readonly Change[] | undefined): void {
  for (const { kind, name } of changes ?? []) {
    if (kind === 'certificate') issuer.onCertificate(name)
    else if (kind === 'domain')
      issuer.onDomain(name, decodeDomainWish(replica.value('domain', name) ?? UNWANTED).wanted)
  }
}
