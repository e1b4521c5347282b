/**
 * The control plane on one screen: services, the routes that speak for them, the jobs that run by themselves.
 * A request: control/ground/http → one route (schema, one call, reply) → a service → Postgres + outbox → the edges.
 */
import { CLOSE_NOTICE_MS } from '../../shared/contracts/control-closing.ts'
import { startTracer } from '../../shared/running/traces.ts'
import { saySettings, settingsOf } from '../../shared/contracts/plane-settings.ts'
import { createDashboard } from '../doors/dashboard/dashboard.ts'
import { migrate } from '../ground/database/migrate.ts'
import { createDatabaseWatch } from '../ground/database/watch.ts'
import { createHttpServer } from '../ground/http/server/server.ts'
import { createJobRecords } from '../ground/watching/job-records.ts'
import { createMetrics } from '../ground/watching/metrics.ts'
import { createRequestCounts } from '../ground/watching/request-counts.ts'
import { composeFigures } from './figures.ts'
import type { ControlOptions } from './ground.ts'
import { composeJobs } from './jobs.ts'
import { allRoutes } from './routes.ts'
import { createServices, type Services } from './services.ts'

/** Requests under way may finish for this long after SIGTERM. */
const CLOSE_GRACE_MS = 10_000

export interface AppOptions extends ControlOptions {
  /** Told of every request before it is handled. */
  onRequest?(what: string): void
  /** Told when migrations begin and when they are over: they may take as long as they need. */
  onMigrating?(isUnderWay: boolean): void
}

export interface App {
  readonly services: Services
  /** Resolves to the port. */
  start(): Promise<number>
  stop(): Promise<void>
}

export function createApp(options: AppOptions): App {
  const { config, clock, log } = options
  const services = createServices(options)
  const counts = createRequestCounts()
  const records = createJobRecords(clock)
  const tracer = startTracer('dropway-control', config.traces)
  const metrics = createMetrics(composeFigures(services, counts, records))
  const dashboard = createDashboard(services)
  const databaseWatch = createDatabaseWatch({
    url: config.databaseUrl,
    isPooled: options.isDatabasePooled,
    log,
  })
  const server = createHttpServer({
    routes: [...allRoutes(services, dashboard), metrics.route],
    log,
    clock,
    trustedProxies: config.trustedProxies,
    serviceHost: config.serviceHost,
    onRequest: options.onRequest,
    counts,
    tracer,
    guard: databaseWatch.guard,
    trouble: databaseWatch.trouble,
    notFound: dashboard.notFound,
    errorPage: dashboard.errorPage,
  })
  const jobs = composeJobs(services, records)
  let stopSaying: () => void = () => {}
  return {
    services,
    async start() {
      options.onMigrating?.(true)
      const applied = await migrate(services.sql)
      options.onMigrating?.(false)
      if (applied.length > 0) log.info({ applied }, 'migrated')
      databaseWatch.start()
      services.routing.start()
      services.mailer.start()
      services.webhookCourier.start()
      services.domainWatch.start()
      for (const loop of jobs) loop.start()
      stopSaying = saySettings(services.redis, clock, settingsOf('control', config))
      return server.listen(config.controlPort, config.controlHost)
    },
    /** Phases: edges are told → no new requests → requests finished → jobs ended → connections closed. */
    async stop() {
      await server.close(CLOSE_GRACE_MS, Math.max(CLOSE_NOTICE_MS, config.drainNoticeMs))
      await Promise.all(jobs.map((loop) => loop.stop()))
      stopSaying()
      await databaseWatch.stop()
      await services.close()
      metrics.stop()
      await tracer?.stop()
    },
  }
}
