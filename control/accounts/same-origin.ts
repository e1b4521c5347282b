/**
 * Did our own pages make this request? Browsers set both headers themselves; a page of somebody else cannot
 * forge them. Drops live on sibling hosts, so "same-site" is not enough: they may be hostile.
 */
import type { Request } from '../http/route.ts'

/** True only on positive evidence: a request that carries neither header did not come from our pages. */
export function isSameOrigin(request: Pick<Request, 'header'>, baseUrl: string): boolean {
  const origin = request.header('origin')
  if (origin !== undefined && origin !== baseUrl) return false
  const site = request.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin') return false
  return origin !== undefined || site !== undefined
}
