/** Whether a drop is open to visitors at all. The password comes after this: see unlock.ts. */
import type { SiteState } from '../../shared/contracts/route-record.ts'
import type { ClosedPage, ServedSite, Verdict } from '../context.ts'

const OPEN: Verdict = { kind: 'open' }

export const CLOSED_STATUS: Readonly<Record<ClosedPage, 404 | 410 | 503>> = {
  unknown: 404,
  reserved: 404,
  gone: 410,
  expired: 410,
  removed: 410,
  unverified: 503,
  paused: 503,
}

/** Expiry is the edge's own word: to the second, whether or not a job has tidied up yet. */
export function checkState(route: ServedSite, nowMs: number): Verdict {
  if (route.state !== 'live') return closed(route.state)
  if (route.expires_at !== null && nowMs >= route.expires_at) return closed('expired')
  return route.manifest === null ? closed('reserved') : OPEN
}

function closed(page: Exclude<SiteState, 'live'>): Verdict {
  return { kind: 'closed', page, status: CLOSED_STATUS[page] }
}
