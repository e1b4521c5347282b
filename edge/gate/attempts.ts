/**
 * How often a password may be tried. Counted in memory, per worker: a visitor's request never waits for Redis.
 * A window starts with its first attempt; a right password gives its attempt back.
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

/** The network that one visitor controls: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(ip: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  if (!ip.includes(':')) return ip
  const [head = '', tail] = ip.toLowerCase().split('%', 1)[0]!.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
