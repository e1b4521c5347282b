/**
 * Page views: noted per visitor in memory and handed to the primary, which counts them (store/visitors.ts) and carries
 * the counts to Redis.
 */
import { DAY_MS } from '../../shared/running/clock.ts'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { limitKeyOfIp } from '../../shared/http/ip.ts'
import type { Exchange, SeenPage } from '../context.ts'

/** Views reported to the primary already; a forgotten one is reported again, and not counted again. */
const MAX_TOLD = 20_000
const MAX_TOLD_CHARS = 8_000_000

export interface Views {
  /** Once per page, visitor and day; what calls itself a machine is no visitor. */
  count(view: View, nowMs: number): void
  /** What was seen since the last call. */
  take(): SeenPage[]
}

interface View {
  readonly siteId: string
  /** The file that was shown: an address with another query or below a client-routed app is the same page. */
  readonly page: string
  readonly ip: string
  readonly agent: string
}

export function createViews(): Views {
  let seen: SeenPage[] = []
  let day = ''
  let dayEndsAt = 0
  const told = new LRUCache<string, true>({
    max: MAX_TOLD,
    maxSize: MAX_TOLD_CHARS,
    sizeCalculation: (_, view) => view.length,
  })
  return {
    count({ siteId, page, ip, agent }, nowMs) {
      if (nowMs >= dayEndsAt) {
        ;[day, dayEndsAt] = dayOf(nowMs)
        told.clear()
      }
      const network = limitKeyOfIp(ip)
      const view = `${siteId}|${network}|${page}|${agent}`
      if (told.has(view) || BOTS.test(agent)) return
      told.set(view, true)
      // Who it was does not matter.
      seen.push([`${siteId}|${day}`, network, hash('sha256', view, 'base64url').slice(0, 22)])
    },
    take() {
      const taken = seen
      seen = []
      return taken
    },
  }
}

function dayOf(nowMs: number): [day: string, endsAt: number] {
  return [new Date(nowMs).toISOString().slice(0, 10), (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS]
}

/** What calls itself a machine, and what fetches previews of links. */
const BOTS =
  /bot\b|bot\/|crawl|spider|slurp|facebookexternalhit|embedly|quora link|whatsapp|telegram|preview|lighthouse|pingdom|uptime|monitor|scanner|archiver/i

/** Every browser names itself so; curl, wget and the libraries of programs do not. */
const BROWSER = /^Mozilla\/\d/
/** No browser's name is longer. */
const MAX_AGENT_CHARS = 500

/** Opened like a page in a browser: not by a program, a prefetch, a script or a frame. Bots are told apart by `count`. */
export function isView(exchange: Exchange): boolean {
  if (exchange.method !== 'GET') return false
  // Most of what is no view is told apart here.
  const agent = exchange.header('user-agent') ?? ''
  if (agent.length > MAX_AGENT_CHARS || !BROWSER.test(agent)) return false
  const mode = exchange.header('sec-fetch-mode')
  if (mode !== undefined && mode !== 'navigate') return false
  const destination = exchange.header('sec-fetch-dest')
  if (destination !== undefined && destination !== 'document') return false
  return !(
    isPrefetch(exchange.header('sec-purpose')) ||
    isPrefetch(exchange.header('purpose')) ||
    isPrefetch(exchange.header('x-moz'))
  )
}

/** What fetches links to look at them, and says so; a browser that fetches ahead of its person as well. */
export function isMachineName(exchange: Exchange): boolean {
  const agent = exchange.header('user-agent') ?? ''
  const isAhead = isPrefetch(exchange.header('sec-purpose')) || isPrefetch(exchange.header('purpose'))
  return isAhead || agent.length > MAX_AGENT_CHARS || BOTS.test(agent)
}

function isPrefetch(purpose: string | undefined): boolean {
  return purpose !== undefined && /prefetch|prerender|preview/.test(purpose)
}
