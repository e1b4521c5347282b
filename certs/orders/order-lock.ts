/**
 * The right to order a certificate for a name: one edge at a time. It expires by itself when its holder dies and is
 * renewed while the holder lives. Its token fences the result: who lost the lock meanwhile cannot store anything.
 */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { SECOND_MS } from '../../shared/running/clock.ts'
import { keys } from '../../shared/redis/keys.ts'

/** How long a name waits when its holder was killed. */
const DEFAULT_TTL_MS = 15 * SECOND_MS

const EXTEND = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

export interface OrderLock {
  readonly key: string
  readonly token: string
  release(): Promise<void>
}

/** Undefined when another edge holds it. */
export async function acquireOrderLock(
  redis: Redis,
  name: string,
  ttlMs = DEFAULT_TTL_MS,
): Promise<OrderLock | undefined> {
  const key = keys.orderLock(name)
  const token = randomBytes(12).toString('base64url')
  if ((await redis.set(key, token, 'PX', ttlMs, 'NX')) !== 'OK') return undefined
  // A renewal that fails is no news: either the next one works, or the fence refuses what comes too late.
  const timer = setInterval(() => void redis.eval(EXTEND, 1, key, token, ttlMs).catch(() => {}), ttlMs / 3)
  timer.unref()
  return {
    key,
    token,
    async release() {
      clearInterval(timer)
      await redis.eval(RELEASE, 1, key, token).catch(() => {})
    },
  }
}
