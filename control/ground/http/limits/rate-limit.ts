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

/** One use of `name` by `key`: an address, an account. */
export interface Use {
  readonly name: string
  readonly key: string
  readonly limit: Limit
}

export interface RateLimiter {
  /** Counts one use; throws rate_limited with Retry-After when it is too many. */
  consume(name: string, key: string, limit: Limit): Promise<void>
  /** Counts all of them, or none when one is too many: what is refused uses up nothing. */
  consumeAll(uses: readonly Use[]): Promise<void>
}

/** A use that was too many, and the counts that say so. */
interface Refused {
  readonly limit: Limit
  readonly counts: Counts
}

/**
 * sliding-window.ts at once, so that two controls never both take the last place: countsAt and hasRoom of each, then the
 * counting. Answers the place of the one that has no room, and its counts.
 */
const CONSUME = `
local now = tonumber(ARGV[1])
local counted = {}
for place, key in ipairs(KEYS) do
  local windowMs, points = tonumber(ARGV[2 * place]), tonumber(ARGV[2 * place + 1])
  local window = math.floor(now / windowMs)
  local known = redis.call('HMGET', key, 'window', 'current', 'previous')
  local current, previous = 0, 0
  if tonumber(known[1]) == window then
    current, previous = tonumber(known[2]), tonumber(known[3])
  elseif tonumber(known[1]) == window - 1 then
    previous = tonumber(known[2])
  end
  if previous * ((window + 1) * windowMs - now) > (points - current - 1) * windowMs then
    return {place, window, current, previous}
  end
  counted[place] = {window, current + 1, previous, 2 * windowMs}
end
for place, key in ipairs(KEYS) do
  local counts = counted[place]
  redis.call('HSET', key, 'window', counts[1], 'current', counts[2], 'previous', counts[3])
  redis.call('PEXPIRE', key, counts[4])
end
return {0}`

export function createRateLimiter({ redis, clock }: { redis: Redis; clock: Clock }): RateLimiter {
  const own = new Map<string, Counts>()

  async function consumeShared(uses: readonly Use[], now: number): Promise<Refused | undefined> {
    const limits = uses.flatMap(({ limit }) => [limit.windowSeconds * 1000, limit.points])
    const reply = await redis.eval(CONSUME, uses.length, ...uses.map(idOf), now, ...limits)
    const [place, window, current, previous] = (reply as unknown[]).map(Number) as [number, number, number, number]
    const refused = uses[place - 1]
    return refused && { limit: refused.limit, counts: { window, current, previous } }
  }

  function forgetOldest(): void {
    const [oldest] = own.keys()
    if (oldest !== undefined) own.delete(oldest)
  }

  function consumeOwn(uses: readonly Use[], now: number): Refused | undefined {
    const before = uses.map((use) => countsAt(own.get(idOf(use)), now, use.limit))
    for (const [place, { limit }] of uses.entries())
      if (!hasRoom(before[place]!, now, limit)) return { limit, counts: before[place]! }
    for (const [place, use] of uses.entries()) {
      const id = idOf(use)
      own.delete(id)
      own.set(id, { ...before[place]!, current: before[place]!.current + 1 })
      if (own.size > MAX_OWN_KEYS) forgetOldest()
    }
    return undefined
  }

  async function consumeAll(uses: readonly Use[]): Promise<void> {
    const now = clock.now()
    const refused = await consumeShared(uses, now).catch(() => consumeOwn(uses, now))
    if (refused) throw errors.rateLimited(waitForRoomMs(refused.counts, now, refused.limit) / 1000)
  }

  return { consume: (name, key, limit) => consumeAll([{ name, key, limit }]), consumeAll }
}

function idOf({ name, key, limit }: Use): string {
  return `${keys.rateLimit(name)}:${limit.windowSeconds}:${key}`
}
