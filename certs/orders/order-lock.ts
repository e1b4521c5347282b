/**
 * The right to order a certificate for a name: one edge at a time. It expires by itself when its holder dies and is
 * renewed while the holder lives. Its token fences the result: who lost the lock meanwhile cannot store anything.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { MINUTE_MS, SECOND_MS } from '../../shared/running/clock.ts'
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

/** No name of a host: all proofs by DNS end at the names of the service, and some name servers keep two values of one. */
const PROOFS = '_acme-challenge'
const TURN_POLL_MS = SECOND_MS / 2
/** Longer than an order takes whose name servers are waited for. */
const MAX_TURN_WAIT_MS = 4 * MINUTE_MS

/** Waits until no other order is being proven by DNS; throws when that takes too long. */
export async function takeProofsTurn(redis: Redis): Promise<OrderLock> {
  for (const deadline = performance.now() + MAX_TURN_WAIT_MS; ; await sleep(TURN_POLL_MS)) {
    const lock = await acquireOrderLock(redis, PROOFS)
    if (lock) return lock
    if (performance.now() >= deadline) throw new Error('other orders are being proven by DNS')
  }
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
