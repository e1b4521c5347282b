/** Connections of the primary to Redis: they fail fast and never queue, so that an outage is noticed, not waited for. */
import type { Redis } from 'ioredis'
import { patiently } from '../../../shared/settings/patience.ts'
import { openRedis } from '../../../shared/redis/redis.ts'

const COMMAND_TIMEOUT_MS = patiently(2000)
const CONNECT_TIMEOUT_MS = patiently(2000)
const MAX_RECONNECT_MS = 2000

/** Longest that XREAD may block; its connection gives it a little more before it takes Redis for frozen. */
export const BLOCK_MS = 2000

/**
 * `commands` and `blocking` belong to the follower, which connects again itself when it is ready to;
 * `background` (views, certificates) connects again by itself.
 */
export type RedisUse = 'commands' | 'blocking' | 'background'

export function connectRedis(url: string, use: RedisUse): Redis {
  const timeoutMs = use === 'blocking' ? BLOCK_MS + COMMAND_TIMEOUT_MS : COMMAND_TIMEOUT_MS
  const redis = openRedis(url, {
    // Operators see it in CLIENT LIST.
    connectionName: 'dropway-edge',
    lazyConnect: true,
    enableOfflineQueue: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    // Its INFO has no time limit; a Redis that is still loading refuses the first command just as well.
    enableReadyCheck: false,
    retryStrategy: use === 'background' ? (attempt) => Math.min(attempt * 100, MAX_RECONNECT_MS) : () => null,
    // A frozen Redis answers nothing at all: without this, a command waits for ever.
    commandTimeout: timeoutMs,
    // And a connection that has gone silent (half-open) is given up: TCP alone takes a quarter of an hour.
    socketTimeout: timeoutMs,
  })
  // The promise of the command carries the error; an unheard 'error' event would only be printed.
  redis.on('error', () => {})
  return redis
}
