/** Page views: counted per drop and day in memory, handed to the primary, which carries them to Redis. */
import type { Exchange } from '../context.ts'

/** Key: `<site_id>|<YYYY-MM-DD>`, as in Redis. */

export interface Views {
  count(siteId: string, nowMs: number): void
  /** What was counted since the last call. */
  take(): Map<string, number>
}

export function createViews(): Views {
  let counts = new Map<string, number>()
  let day = ''
  let dayEndsAt = 0
  return {
    count(siteId, nowMs) {
      if (nowMs >= dayEndsAt) [day, dayEndsAt] = dayOf(nowMs)
      const key = `${siteId}|${day}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    },
    take() {
      const taken = counts
      counts = new Map()
      return taken
    },
  }
}

const DAY_MS = 86_400_000

function dayOf(nowMs: number): [day: string, endsAt: number] {
  return [new Date(nowMs).toISOString().slice(0, 10), (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS]
}

/** What calls itself a machine, and what fetches previews of links. */
const BOTS =
  /bot\b|bot\/|crawl|spider|slurp|facebookexternalhit|embedly|quora link|whatsapp|telegram|preview|lighthouse|pingdom|uptime|monitor|scanner|archiver/i

/** A person who opened the page: not a bot, not a prefetch, not a script or a frame that fetches it. */
export function isView(exchange: Exchange): boolean {
  if (exchange.method !== 'GET') return false
  const mode = exchange.header('sec-fetch-mode')
  if (mode !== undefined && mode !== 'navigate') return false
  if (
    isPrefetch(exchange.header('sec-purpose')) ||
    isPrefetch(exchange.header('purpose')) ||
    isPrefetch(exchange.header('x-moz'))
  )
    return false
  const agent = exchange.header('user-agent')
  return agent === undefined || !BOTS.test(agent)
}

function isPrefetch(purpose: string | undefined): boolean {
  return purpose !== undefined && /prefetch|prerender|preview/.test(purpose)
}
