/**
 * Did our own pages make this request? Browsers set both headers themselves; pages of others cannot
 * forge them. Drops live on sibling hosts, so "same-site" is not enough: they may be hostile.
 */
import type { Request } from '../../ground/http/route.ts'

/** True only on positive evidence: a request that carries neither header did not come from our pages. */
export function isSameOrigin(request: Pick<Request, 'header'>, baseUrl: string): boolean {
  return (
    !isCrossOrigin(request, baseUrl) &&
    (request.header('origin') === baseUrl || request.header('sec-fetch-site') === 'same-origin')
  )
}

/** True only on negative evidence: a request that carries neither header may come from anywhere. */
export function isCrossOrigin(request: Pick<Request, 'header'>, baseUrl: string): boolean {
  const origin = request.header('origin')
  // Browsers send `null` from our own pages with `referrer-policy: no-referrer`; Sec-Fetch-Site then decides.
  if (origin !== undefined && origin !== baseUrl && origin !== 'null') return true
  const site = request.header('sec-fetch-site')
  return site !== undefined && site !== 'same-origin'
}
