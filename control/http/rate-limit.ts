/**
 * Limits that hold across all control processes: counted in Redis, and in this process alone while Redis is away,
 * so that an outage neither locks everybody out nor opens the gates.
 */
import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { errors } from '../../shared/errors.ts'
import { keys } from '../../shared/keys.ts'

export interface Limit {
  readonly points: number
  readonly windowSeconds: number
}

export interface RateLimiter {
  /** Counts one use of `name` by `key` (an address, an account); throws rate_limited with Retry-After when it is too many. */
  consume(name: string, key: string, limit: Limit): Promise<void>
}

export function createRateLimiter({ redis }: { redis: Redis }): RateLimiter {
  const limiters = new Map<string, RateLimiterRedis>()

  function limiterFor(name: string, limit: Limit): RateLimiterRedis {
    const id = `${name}:${limit.points}:${limit.windowSeconds}`
    let limiter = limiters.get(id)
    if (!limiter) limiters.set(id, (limiter = newLimiter(redis, name, limit)))
    return limiter
  }

  return {
    async consume(name, key, limit) {
      try {
        await limiterFor(name, limit).consume(key)
      } catch (reason) {
        if (reason instanceof RateLimiterRes) throw errors.rateLimited(reason.msBeforeNext / 1000)
        throw reason
      }
    },
  }
}

function newLimiter(redis: Redis, name: string, { points, windowSeconds }: Limit): RateLimiterRedis {
  const options = { keyPrefix: keys.rateLimit(name), points, duration: windowSeconds }
  return new RateLimiterRedis({
    ...options,
    storeClient: redis,
    rejectIfRedisNotReady: true,
    insuranceLimiter: new RateLimiterMemory(options),
  })
}
