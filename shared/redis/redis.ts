/** Opens the Redis that REDIS_URL names (url.ts), alike in both planes. */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { parseRedisUrl } from './url.ts'

export function openRedis(url: string, options: RedisOptions): Redis {
  const location = parseRedisUrl(url)
  if (location.kind === 'single') return new Redis(location.url, options)
  const { servers, tls, username, password } = location
  const shared = { ...options, ...(tls ? { tls: {} } : {}), username, password }
  if (location.kind === 'sentinel') {
    const { master, db } = location
    return new Redis({
      ...shared,
      sentinels: [...servers],
      name: master,
      db,
      enableTLSForSentinelMode: tls,
      ...(tls ? { sentinelTLS: {} } : {}),
      // Asking a sentinel must not outlast a command.
      sentinelCommandTimeout: options.commandTimeout,
      sentinelRetryStrategy: options.retryStrategy ?? null,
    } as RedisOptions)
  }
  const { retryStrategy, lazyConnect, enableOfflineQueue, ...perNode } = shared
  const cluster = new Cluster([...servers], {
    lazyConnect,
    enableOfflineQueue,
    enableReadyCheck: options.enableReadyCheck ?? true,
    clusterRetryStrategy: (attempt) => {
      const wait = retryStrategy?.(attempt)
      return typeof wait === 'number' ? wait : null
    },
    // Certificates name hosts, and a cluster tells addresses.
    dnsLookup: tls ? (address, callback) => callback(null, address) : undefined,
    redisOptions: perNode,
  })
  return asRedis(cluster)
}

/** What we use of Redis (commands, multi, status, connect, disconnect, events) is the same in both. */
const asRedis = (connection: Redis | Cluster): Redis => connection as Redis

/** A second connection to the same place for commands that block; it waits for Redis instead of failing fast. */
export function openBlocking(redis: Redis, commandTimeout: number): Redis {
  return asRedis(duplicate(redis, { commandTimeout, socketTimeout: commandTimeout }))
}

/**
 * Lets commands of one moment leave as one packet, in the order in which they were asked for: what is read behind an EXEC
 * is on its way before the answer to that comes, and costs no turn of its own.
 */
export function sendTogether(redis: Redis): Redis {
  if (redis.isCluster) return redis
  const send = redis.sendCommand
  return Object.assign(redis, {
    sendCommand(...asked: Parameters<Redis['sendCommand']>): unknown {
      holdForAMoment(redis.stream)
      return send.apply(redis, asked)
    },
  })
}

/** Before the first connection there is none. */
function holdForAMoment(connection: Redis['stream'] | null): void {
  if (!connection || connection.writableCorked > 0) return
  connection.cork()
  process.nextTick(() => connection.uncork())
}

function duplicate(
  connection: Redis | Cluster,
  timeouts: { commandTimeout: number; socketTimeout: number },
): Redis | Cluster {
  // A command that blocks, or watches, goes out by itself.
  const own = { enableOfflineQueue: true, enableAutoPipelining: false }
  if (!(connection instanceof Cluster)) return connection.duplicate({ ...timeouts, ...own })
  const redisOptions = { ...connection.options.redisOptions, ...timeouts }
  return connection.duplicate([], { ...own, redisOptions })
}
