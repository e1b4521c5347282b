/** What monitors are told of a control: figures of all capabilities, put together for `/metrics`. */
import { statfsSync } from 'node:fs'
import { keys } from '../../shared/redis/keys.ts'
import { differencesOf, settingsOf, settingsSaid } from '../../shared/contracts/plane-settings.ts'
import { liveEdges } from '../../shared/contracts/live-edges.ts'
import { MINUTE_MS, SECOND_MS } from '../../shared/running/clock.ts'
import { poolUse } from '../ground/database/sql.ts'
import { outboxQueue } from '../ground/routing/outbox.ts'
import { gauge, type Family } from '../ground/watching/exposition.ts'
import type { JobRecords } from '../ground/watching/job-records.ts'
import type { AskedFigure, MetricsSources, Queue } from '../ground/watching/metrics.ts'
import { queueState } from '../ground/watching/queue.ts'
import type { RequestCounts } from '../ground/watching/request-counts.ts'
import type { Services } from './services.ts'

/** A mail leaves within seconds. One that was turned down is tried again later than this. */
const LATE_MAIL_MS = 10 * MINUTE_MS

export function composeFigures(services: Services, counts: RequestCounts, records: JobRecords): MetricsSources {
  return {
    families: [counts.families, records.families, () => poolFamilies(services), () => diskFamilies(services)],
    queues: queues(services),
    asked: askedFigures(services),
  }
}

function queues({ sql, clock, mailer, webhookCourier, versions, domains }: Services): Queue[] {
  return [
    { name: 'routes', look: async () => queueState(await outboxQueue(sql), new Date(clock.now())) },
    { name: 'mails', look: () => mailer.queue() },
    { name: 'webhooks', look: () => webhookCourier.queue() },
    { name: 'compression', look: () => versions.queue() },
    { name: 'domain checks', look: () => domains.queue() },
  ]
}

function poolFamilies({ sql }: Services): Family[] {
  const { connections, transactions, waiting } = poolUse(sql)
  return [
    gauge('dropway_control_pool_connections', 'Connections to Postgres that this control may have.', connections),
    gauge('dropway_control_pool_transactions', 'Transactions under way; each holds a connection.', transactions),
    gauge('dropway_control_pool_waiting', 'Transactions that wait for their turn.', waiting),
  ]
}

function diskFamilies({ config }: Services): Family[] {
  try {
    const { bavail, bsize } = statfsSync(config.dataDir)
    return [gauge('dropway_control_disk_free_bytes', 'Where DATA_DIR is.', bavail * bsize)]
  } catch {
    // A control without a DATA_DIR of its own keeps nothing there.
    return []
  }
}

function askedFigures(services: Services): AskedFigure[] {
  const { sql, redis, clock, config, mailer, backups } = services
  return [
    {
      name: 'dropway_control_database_seconds',
      help: 'How long a question to Postgres takes now, the wait for a connection included; absent when it is away.',
      async ask() {
        const began = performance.now()
        await sql`select 1`
        return (performance.now() - began) / SECOND_MS
      },
    },
    {
      name: 'dropway_control_redis_seconds',
      help: 'How long a question to Redis takes now; absent when it is away.',
      async ask() {
        const began = performance.now()
        await redis.ping()
        return (performance.now() - began) / SECOND_MS
      },
    },
    {
      name: 'dropway_control_late_recipients',
      help: 'People who have waited for a mail for ten minutes.',
      ask: () => mailer.lateRecipients(new Date(clock.now() - LATE_MAIL_MS)),
    },
    {
      name: 'dropway_control_backup_last_success_timestamp_seconds',
      help: 'When the last good backup was begun; 0 when there was none. Absent without BACKUP_TO.',
      async ask() {
        if (config.backupTo === undefined) return undefined
        return ((await backups.lastGoodAt())?.getTime() ?? 0) / SECOND_MS
      },
    },
    {
      name: 'dropway_control_backup_interval_seconds',
      help: 'BACKUP_EVERY.',
      ask: async () => (config.backupTo === undefined ? undefined : config.backupEveryMs / SECOND_MS),
    },
    {
      name: 'dropway_control_edges',
      help: 'Edges that are alive, as Redis says.',
      ask: async () => (await liveEdges(redis)).length,
    },
    {
      name: 'dropway_control_unknown_addresses',
      help: 'Addresses that edges serve and the database does not know.',
      ask: () => redis.scard(keys.unknown),
    },
    {
      name: 'dropway_control_differing_planes',
      help: 'Planes with another SECRET_KEY, BASE_URL, SITES_DOMAIN or DNS01 than this one.',
      async ask() {
        const own = settingsOf('control', config)
        const said = await settingsSaid(redis, clock.now())
        return said.filter((other) => differencesOf(own, other).length > 0).length
      },
    },
  ]
}
