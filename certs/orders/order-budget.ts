/**
 * How many orders go to the CA, counted in Redis over all edges. A CA limits the orders of an account (Let's Encrypt: 300
 * within three hours), and all customers share ours: one of them must not use it up, and new names must not keep
 * certificates in use from being renewed. An order counts whether or not a certificate comes of it.
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { HOUR_MS, type Clock } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'

export const ORDER_WINDOW_MS = 3 * HOUR_MS

/** Orders within the window, of one organisation and of all together, at which no further one is made. */
export interface OrderLimits {
  readonly ofOrganisation: number
  readonly ofAll: number
}

/** A plan has ten names at most: thirty are three tries for each. The rest of the CA's 300 is for renewals. */
export const ORDER_LIMITS: Readonly<Record<'new' | 'renewal', OrderLimits>> = {
  new: { ofOrganisation: 30, ofAll: 200 },
  renewal: { ofOrganisation: 60, ofAll: 290 },
}

/**
 * KEYS: orders of all, of the organisation. ARGV: now, window, limits of organisation and all, id.
 * The milliseconds until there is room, 0 when the order was counted.
 */
const TAKE = `
local now, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local wait = 0
for index, key in ipairs({ KEYS[2], KEYS[1] }) do
  redis.call('zremrangebyscore', key, '-inf', now - window)
  local over = redis.call('zcard', key) - tonumber(ARGV[2 + index])
  if over >= 0 then
    local last = redis.call('zrange', key, over, over, 'withscores')
    wait = math.max(wait, tonumber(last[2]) + window - now)
  end
end
if wait > 0 then return wait end
for _, key in ipairs(KEYS) do
  redis.call('zadd', key, now, ARGV[5])
  redis.call('pexpire', key, window)
end
return 0`

export interface OrderBudget {
  /** Counts an order; else the milliseconds until there is room for it. */
  take(organisation: string, kind: keyof typeof ORDER_LIMITS): Promise<number | undefined>
}

export function createOrderBudget(redis: Redis, clock: Clock): OrderBudget {
  return {
    async take(organisation, kind) {
      const { ofOrganisation, ofAll } = ORDER_LIMITS[kind]
      const counted = [keys.acmeOrders, keys.acmeOrdersOf(organisation)]
      const id = randomBytes(9).toString('base64url')
      const args = [clock.now(), ORDER_WINDOW_MS, ofOrganisation, ofAll, id]
      const waitMs = Number(await redis.eval(TAKE, counted.length, ...counted, ...args))
      return waitMs > 0 ? waitMs : undefined
    },
  }
}
