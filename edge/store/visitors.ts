/**
 * What of the pages that workers showed counts as a view. A view is a person who opens a page in a window of a browser.
 * The same visitor who opens the same page again on the same day is not counted again, and one network counts for so
 * much a day and drop, whatever it calls itself: neither reloading nor a loop makes a drop popular.
 */
import { LRUCache } from 'lru-cache'
import { grownTo } from '../../shared/values/grown-to.ts'
import type { SeenPage } from '../context.ts'

/** Who has seen what today: about 100 bytes each. A visitor who is forgotten in a crowd is counted again. */
const REMEMBERED = grownTo(200_000)
/** An office behind one address; a loop that changes its name with every request gets no further. */
const MAX_VIEWS_OF_NETWORK = 100

export interface Visitors {
  /** Key of the drop and day, as in Redis, and how many views are new. */
  count(pages: readonly SeenPage[]): [string, number][]
}

export function createVisitors(): Visitors {
  const seen = new LRUCache<string, true>(REMEMBERED)
  const networks = new LRUCache<string, number>(REMEMBERED)

  function isNew([key, network, visitor]: SeenPage): boolean {
    const [page, share] = [`${key}|${visitor}`, `${key}|${network}`]
    const ofNetwork = networks.get(share) ?? 0
    if (seen.has(page) || ofNetwork >= MAX_VIEWS_OF_NETWORK) return false
    seen.set(page, true)
    networks.set(share, ofNetwork + 1)
    return true
  }

  return {
    count(pages) {
      const counts = new Map<string, number>()
      for (const page of pages) if (isNew(page)) counts.set(page[0], (counts.get(page[0]) ?? 0) + 1)
      return [...counts]
    },
  }
}
