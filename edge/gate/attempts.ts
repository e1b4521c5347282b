/**
 * How often a password may be tried. Counted in memory: a visitor's request never waits for Redis. A window starts with its
 * first attempt; a right password gives its attempt back.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../shared/clock.ts'

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

export interface Attempts {
  /** Takes an attempt: undefined when it may go on, else the milliseconds to wait. */
  take(key: string): number | undefined
  giveBack(key: string): void
}

export function createAttempts(limit: AttemptLimit, clock: Clock): Attempts {
  const windows = new LRUCache<string, Window>({ max: limit.maxKeys })
  return {
    take(key) {
      const now = clock.now()
      let window = windows.get(key)
      if (!window || window.endsAt <= now) windows.set(key, (window = { count: 0, endsAt: now + limit.windowMs }))
      if (window.count >= limit.attempts) return window.endsAt - now
      window.count++
      return undefined
    },
    giveBack(key) {
      const window = windows.get(key)
      if (window && window.count > 0) window.count--
    },
  }
}
