/** The control plane's Redis connection: fails fast, queues nothing, reconnects for ever. */
import type { Redis } from 'ioredis'
import type { Log } from '../../../shared/running/log.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { keys } from '../../../shared/redis/keys.ts'
import type { RedisCommands } from '../../../shared/redis/commands.ts'
import { openRedis } from '../../../shared/redis/redis.ts'
import { START_OF_LOG } from '../../../shared/redis/stream.ts'

export const COMMAND_TIMEOUT_MS = patiently(1000)

export function connectRedis(url: string, log: Log): Redis {
  const redis = openRedis(url, {
    // Operators see it in CLIENT LIST.
    connectionName: 'dropway-control',
    enableOfflineQueue: false,
    // What is asked for in one moment is one packet, in the order in which it was asked for.
    enableAutoPipelining: true,
    commandTimeout: COMMAND_TIMEOUT_MS,
    // A connection that has gone silent (half-open) is given up and made anew; TCP alone takes a quarter of an hour.
    socketTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 50, 500),
  })
  let away = false
  redis.on('error', (error: Error) => {
    if (!away) log.warn({ err: error }, 'Redis is away')
    away = true
  })
  redis.on('ready', () => {
    if (away) log.info('Redis is back')
    away = false
  })
  return redis
}

/** The position of the last entry of the change log. */
export async function endOfLog(redis: Pick<RedisCommands, 'xrevrange'>): Promise<string> {
  const [last] = await redis.xrevrange(keys.log, '+', '-', 'COUNT', 1)
  return last?.[0] ?? START_OF_LOG
}
