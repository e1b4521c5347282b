/**
 * The edge's primary process: follows the change log, keeps the replica, looks after certificates and workers.
 * It serves no visitor.
 */
import { once } from 'node:events'
import { fork, type ChildProcess } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { createAcmeSource } from '../certs/issue.ts'
import { openLocalCa } from '../certs/local-ca.ts'
import { createIssuer, type Issuer } from '../certs/renew.ts'
import { createLocalSource } from '../certs/source.ts'
import { systemClock } from '../shared/clock.ts'
import { newId } from '../shared/ids.ts'
import { createLog, type Log } from '../shared/log.ts'
import { createSecrets } from '../shared/secrets.ts'
import type { EdgeConfig } from './config.ts'
import { startMetrics } from './metrics.ts'
import type { Counters, ToPrimary, ToWorker } from './messages.ts'
import { startFollower } from './store/follower.ts'
import { connectRedis } from './store/redis.ts'
import { openReplica, type Change, type Replica } from './store/replica.ts'
import { startViewLedger } from './store/view-ledger.ts'

/** How long a starting edge waits to be level with Redis before it serves what it has. */
const FIRST_SYNC_MS = 3000
/** A worker that dies at once must not be started in a tight loop. */
const RESPAWN_MS = [0, 100, 500, 2000] as const
const STABLE_AFTER_MS = 10_000
const REPORT_MS = 2000
/** http-proxy uses util._extend; nobody who runs an edge can do anything about that. */
const QUIET = ['--disable-warning=DEP0060']
/** What a worker may take beyond the drain time before it is killed. */
const DRAIN_GRACE_MS = 2000

export async function runPrimary(config: EdgeConfig, workerFile: string): Promise<void> {
  const log = createLog('edge', config.logLevel)
  const address = await chooseAddress(config)
  const replica = openReplica(config.replicaDir, { readOnly: false })
  const background = connectRedis(config.redisUrl, 'background')
  background.connect().catch(() => {})
  const ledger = startViewLedger(background)
  const workers = createWorkers(config, address, workerFile, log, { onViews: ledger.add })
  const issuer = startIssuer(config, background, log)

  const follower = startFollower({
    edgeId: newId('edge'),
    replica,
    connect: (use) => connectRedis(config.redisUrl, use),
    async announce(changes) {
      await workers.announce(changes)
      tellIssuer(issuer, replica, changes)
    },
    log,
  })
  // Registered and level first, where Redis is there: then no publish is acknowledged that this edge does not serve.
  await Promise.race([follower.firstSync, sleep(FIRST_SYNC_MS, undefined, { ref: false })])
  const ports = await workers.start()
  const metrics =
    config.metricsPort === undefined
      ? undefined
      : await startMetrics(config.metricsPort, { workers, follower, ledger, replica })
  log.info({ ...ports, metricsPort: metrics?.port, workers: config.workers }, 'ready')
  process.send?.({ ready: true, ...ports, metricsPort: metrics?.port })

  /** In named phases: visitors first, then what is left to be told, then the files. */
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> =>
    (stopping ??= (async () => {
      log.info('draining')
      await workers.drain(config.drainMs + DRAIN_GRACE_MS)
      await Promise.all([follower.stop(), ledger.stop(), issuer.stop(1000)])
      background.disconnect()
      metrics?.close()
      await replica.close()
      log.info('stopped')
      process.exit(0)
    })())
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
  process.on('disconnect', () => void stop())
}

/**
 * Where to listen: as set, else every address, also where the machine has no IPv6. With `reusePort` a second edge
 * would silently share the port with the first, so each port is asked for without it, once.
 */
async function chooseAddress({ httpsPort, httpPort, bindAddress }: EdgeConfig): Promise<string> {
  const address = bindAddress ?? ((await listenProblem(0, '::')) === undefined ? '::' : '0.0.0.0')
  for (const [name, port] of [
    ['EDGE_HTTPS_PORT', httpsPort],
    ['EDGE_HTTP_PORT', httpPort],
  ] as const) {
    const problem = port === 0 ? undefined : await listenProblem(port, address)
    if (problem) throw new Error(`${name} ${port} cannot be used: ${describe(problem)}`)
  }
  return address
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

function startIssuer(config: EdgeConfig, redis: Redis, log: Log): Issuer {
  const secrets = createSecrets(config.secretKey)
  const source =
    config.acmeDirectoryUrl === undefined
      ? createLocalSource(openLocalCa(config.dataDir, systemClock))
      : createAcmeSource({
          redis,
          secrets,
          log,
          acme: { directoryUrl: config.acmeDirectoryUrl, email: config.acmeEmail, caFile: config.acmeCaFile },
        })
  const issuer = createIssuer({ redis, secrets, clock: systemClock, log, source })
  issuer.start()
  return issuer
}

function tellIssuer(issuer: Issuer, replica: Replica, changes: readonly Change[] | undefined): void {
  for (const { kind, name } of changes ?? []) {
    if (kind === 'certificate') issuer.onCertificate(name)
    else if (kind === 'domain') issuer.onDomain(name, isWanted(replica.value('domain', name)))
  }
}

function isWanted(value: string | undefined): boolean {
  return value !== undefined && (JSON.parse(value) as { wanted?: unknown }).wanted === true
}

interface Ports {
  readonly httpsPort: number
  readonly httpPort: number
}

export interface Workers {
  /** Resolves when all listen. */
  start(): Promise<Ports>
  /** Resolves when every worker that listens has confirmed. */
  announce(changes: readonly Change[] | undefined): Promise<void>
  report(): Promise<Counters[]>
  restarts(): number
  drain(maxMs: number): Promise<void>
}

interface Worker {
  readonly process: ChildProcess
  readonly startedAt: number
  readonly awaited: Map<number, (message: ToPrimary | undefined) => void>
}

function createWorkers(
  config: EdgeConfig,
  address: string,
  workerFile: string,
  log: Log,
  { onViews }: { onViews(counts: readonly (readonly [string, number])[]): void },
): Workers {
  const workers = new Set<Worker>()
  let ports: Ports = { httpsPort: config.httpsPort, httpPort: config.httpPort }
  let nextId = 0
  let restarts = 0
  let quickDeaths = 0
  let draining = false

  /** Resolves with the ports when it listens; rejects when it cannot. */
  function spawn(): Promise<Ports> {
    const child = fork(workerFile, ['worker'], {
      execArgv: QUIET,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    })
    const worker: Worker = { process: child, startedAt: performance.now(), awaited: new Map() }
    const { promise, resolve, reject } = Promise.withResolvers<Ports>()
    workers.add(worker)
    child.on('message', (message: ToPrimary) => {
      if (message.type === 'listening') resolve(message)
      else if (message.type === 'failed') reject(new Error(message.message))
      else if (message.type === 'views') onViews(message.counts)
      else {
        worker.awaited.get(message.id)?.(message)
        worker.awaited.delete(message.id)
      }
    })
    child.once('exit', (code, signal) => {
      workers.delete(worker)
      for (const settle of worker.awaited.values()) settle(undefined)
      reject(new Error(`a worker ended while it started (${signal ?? code})`))
      if (!draining) void replace(worker, signal ?? code)
    })
    tell(worker, { type: 'listen', address, ...ports })
    return promise
  }

  async function replace(worker: Worker, why: unknown): Promise<void> {
    quickDeaths = performance.now() - worker.startedAt > STABLE_AFTER_MS ? 0 : quickDeaths + 1
    restarts += 1
    log.error({ pid: worker.process.pid, why }, 'a worker died and is replaced')
    await sleep(RESPAWN_MS[Math.min(quickDeaths, RESPAWN_MS.length - 1)]!)
    if (!draining) await spawn().catch((error: unknown) => log.error({ err: error }, 'a worker could not be started'))
  }

  function tell(worker: Worker, message: ToWorker): void {
    if (worker.process.connected) worker.process.send(message, () => {})
  }

  /** Asks every worker; one that dies meanwhile counts as undefined: it starts again with nothing remembered. */
  function ask(make: (id: number) => ToWorker): Promise<(ToPrimary | undefined)[]> {
    return Promise.all(
      [...workers].map((worker) => {
        const id = nextId++
        const { promise, resolve } = Promise.withResolvers<ToPrimary | undefined>()
        worker.awaited.set(id, resolve)
        tell(worker, make(id))
        return promise
      }),
    )
  }

  return {
    async start() {
      // The first one may let the system choose ports; the others take the same.
      ports = pick(await spawn())
      await Promise.all(Array.from({ length: config.workers - 1 }, () => spawn()))
      return ports
    },
    announce: async (changes) => void (await ask((id) => ({ type: 'changed', id, changes }))),
    async report() {
      const answers = await Promise.race([ask((id) => ({ type: 'report', id })), sleep(REPORT_MS, [], { ref: false })])
      return answers.flatMap((answer) => (answer?.type === 'report' ? [answer.counters] : []))
    },
    restarts: () => restarts,
    async drain(maxMs) {
      draining = true
      const exits = [...workers].map(({ process: child }) =>
        Promise.all([once(child, 'exit'), once(child, 'disconnect')]),
      )
      for (const worker of workers) tell(worker, { type: 'drain' })
      await Promise.race([Promise.all(exits), sleep(maxMs, undefined, { ref: false })])
      for (const worker of workers) worker.process.kill('SIGKILL')
    },
  }
}

function pick({ httpsPort, httpPort }: Ports): Ports {
  return { httpsPort, httpPort }
}
