/** What everything else stands on: connections, keys, mails, the log of deeds. */
import path from 'node:path'
import type { Redis } from 'ioredis'
import { openBlobStore } from '../../shared/blobs/open.ts'
import type { BlobStore } from '../../shared/blobs/blob-store.ts'
import type { Clock } from '../../shared/running/clock.ts'
import type { Log } from '../../shared/running/log.ts'
import { openBlocking, sendTogether } from '../../shared/redis/redis.ts'
import { createSecrets, type Secrets } from '../../shared/secrets/secrets.ts'
import type { ControlConfig } from '../ground/config.ts'
import { openDatabase, type Pool } from '../ground/database/sql.ts'
import { COMMAND_TIMEOUT_MS, connectRedis } from '../ground/routing/redis.ts'
import { createRateLimiter, type RateLimiter } from '../ground/http/limits/rate-limit.ts'
import { createEnqueueMail, type EnqueueMail } from '../ground/mail/mail.ts'
import { createMailer, type Mailer } from '../ground/mail/mailer.ts'
import { createFileSink, createSmtpSink } from '../ground/mail/sinks.ts'

const DATABASE_CONNECTIONS = 16

export interface ControlOptions {
  readonly config: ControlConfig
  readonly clock: Clock
  readonly log: Log
  /** DATABASE_URL leads to a pooler, as `reachDatabase` found out. */
  readonly isDatabasePooled?: boolean
}

export interface Ground extends ControlOptions {
  readonly sql: Pool
  readonly redis: Redis
  /** For the publisher alone: its WATCH must not meet the transactions of others. */
  readonly publisherRedis: Redis
  readonly secrets: Secrets
  readonly blobs: BlobStore
  readonly limiter: RateLimiter
  readonly enqueueMail: EnqueueMail
  readonly mailer: Mailer
}

export function openGround({ config, clock, log, isDatabasePooled = false }: ControlOptions): Ground {
  const sql = openDatabase({
    url: config.databaseUrl,
    maxConnections: DATABASE_CONNECTIONS,
    isPooled: isDatabasePooled,
  })
  const redis = connectRedis(config.redisUrl, log)
  // What is asked before it is connected waits.
  const publisherRedis = sendTogether(openBlocking(redis, COMMAND_TIMEOUT_MS))
  publisherRedis.on('error', () => {})
  const secrets = createSecrets(config.secretKey)
  const sink = config.smtpUrl ? createSmtpSink(config.smtpUrl) : createFileSink(path.join(config.dataDir, 'mail'))
  return {
    config,
    clock,
    log,
    sql,
    redis,
    publisherRedis,
    secrets,
    blobs: openBlobStore(
      { url: config.blobStore },
      { onProblem: (error) => log.warn({ err: error }, 'no copy of a blob kept') },
    ),
    limiter: createRateLimiter({ redis, clock }),
    enqueueMail: createEnqueueMail({ secrets, clock, look: config.look }),
    mailer: createMailer({
      sql,
      sink,
      secrets,
      clock,
      log,
      mailFrom: config.mailFrom,
      mailReplyTo: config.contact,
    }),
  }
}
