/**
 * Limits that hold across all control processes: counted in Redis, and in this process alone while Redis is away,
 * so that an outage neither locks everyone out nor opens the gates.
 */
import type { Redis } from 'ioredis'
import type { Clock } from '../../../../shared/running/clock.ts'
import { errors } from '../../../../shared/contracts/errors.ts'
import { keys } from '../../../../shared/redis/keys.ts'
import { countsAt, hasRoom, waitForRoomMs, type Counts, type Limit } from './sliding-window.ts'

/** Keys that one process remembers while Redis is away; the one that was used longest ago goes first. */
const MAX_OWN_KEYS = 20_000

export interface RateLimiter {
  /** Counts one use of `name` by `key` (an address, an account); throws rate_limited with Retry-After when it is too many. */
  consume(name: string, key: string, limit: Limit): Promise<void>
}

/** What became of a use, and the counts after it. */
interface Outcome {
  readonly isAdmitted: boolean
  readonly counts: Counts
}

/** sliding-window.ts at once, so that two controls never both take the last place: countsAt, hasRoom, count. */
const CONSUME = `
local now, windowMs, points = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local window = math.floor(now / windowMs)
local known = redis.call('HMGET', KEYS[1], 'window', 'current', 'previous')
local current, previous = 0, 0
if tonumber(known[1]) == window then
  current, previous = tonumber(known[2]), tonumber(known[3])
elseif tonumber(known[1]) == window - 1 then
  previous = tonumber(known[2])
end
local admitted = 0
if previous * ((window + 1) * windowMs - now) <= (points - current - 1) * windowMs then
  admitted, current = 1, current + 1
  redis.call('HSET', KEYS[1], 'window', window, 'current', current, 'previous', previous)
  redis.call('PEXPIRE', KEYS[1], 2 * windowMs)
end
return {admitted, window, current, previous}`

export function createRateLimiter({ redis, clock }: { redis: Redis; clock: Clock }): RateLimiter {
  const own = new Map<string, Counts>()

  async function consumeShared(id: string, now: number, limit: Limit): Promise<Outcome> {
    const reply = await redis.eval(CONSUME, 1, id, now, limit.windowSeconds * 1000, limit.points)
    const [admitted, window, current, previous] = reply as [number, number, number, number]
    return {
      isAdmitted: Number(admitted) === 1,
      counts: { window: Number(window), current: Number(current), previous: Number(previous) },
    }
  }

  function forgetOldest(): void {
    const [oldest] = own.keys()
    if (oldest !== undefined) own.delete(oldest)
  }

  function consumeOwn(id: string, now: number, limit: Limit): Outcome {
    const before = countsAt(own.get(id), now, limit)
    const isAdmitted = hasRoom(before, now, limit)
    const counts = isAdmitted ? { ...before, current: before.current + 1 } : before
    own.delete(id)
    own.set(id, counts)
    if (own.size > MAX_OWN_KEYS) forgetOldest()
    return { isAdmitted, counts }
  }

  return {
    async consume(name, key, limit) {
      const id = `${keys.rateLimit(name)}:${limit.windowSeconds}:${key}`
      const now = clock.now()
      const { isAdmitted, counts } = await consumeShared(id, now, limit).catch(() => consumeOwn(id, now, limit))
      if (!isAdmitted) throw errors.rateLimited(waitForRoomMs(counts, now, limit) / 1000)
    },
  }
}
