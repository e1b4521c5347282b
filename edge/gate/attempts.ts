/**
 * How often a password was tried lately. Counted in memory: a visitor's request never waits for Redis. A window starts with
 * its first attempt; a right password gives its attempt back.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../shared/running/clock.ts'
import { grownTo } from '../../shared/values/grown-to.ts'

export interface AttemptLimit {
  readonly attempts: number
  readonly windowMs: number
  /** Keys remembered; the least recently used one is forgotten first. */
  readonly maxKeys: number
}

interface Window {
  count: number
  readonly endsAt: number
}

/** What an attempt has used of a limit. */
export interface Usage {
  /** How many times the limit is used with this attempt: above 1 it is beyond the limit. */
  readonly used: number
  readonly endsInMs: number
}

export interface Attempts {
  take(key: string): Usage
  /** What the next `take` will say. */
  foresee(key: string): Usage
  giveBack(key: string): void
}

export function createAttempts(limit: AttemptLimit, clock: Clock): Attempts {
  const windows = new LRUCache<string, Window>(grownTo(limit.maxKeys))
  function windowOf(key: string): Window {
    const now = clock.now()
    const window = windows.get(key)
    return window && window.endsAt > now ? window : { count: 0, endsAt: now + limit.windowMs }
  }
  const usageOf = (count: number, { endsAt }: Window): Usage => ({
    used: count / limit.attempts,
    endsInMs: endsAt - clock.now(),
  })
  return {
    take(key) {
      const window = windowOf(key)
      windows.set(key, window)
      return usageOf(++window.count, window)
    },
    foresee(key) {
      const window = windowOf(key)
      return usageOf(window.count + 1, window)
    },
    giveBack(key) {
      const window = windows.get(key)
      if (window && window.count > 0) window.count--
    },
  }
}
