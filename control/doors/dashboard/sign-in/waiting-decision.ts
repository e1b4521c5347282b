/**
 * A decision (consent, a device) that waits until its person has verified the address. The browser remembers where it
 * was, so that the link in the mail leads back there and not to an empty list of drops.
 */
import { HOUR_MS } from '../../../../shared/running/clock.ts'
import { cookie } from '../../../ground/http/reply.ts'
import type { Reply, Request } from '../../../ground/http/route.ts'
import { safeNext } from '../../../../shared/http/safe-next.ts'
import type { PageRequest } from '../frame/callers.ts'
import { pathAndQueryOf, type Handlers } from '../frame/handlers.ts'
import { verifyFirstPage } from './sign-in-view.ts'

const COOKIE = '__Host-dropway-waiting'

export function showVerifyFirst(
  handlers: Pick<Handlers, 'reply'>,
  { request, viewer }: PageRequest,
  email: string,
): Promise<Reply> {
  const here = pathAndQueryOf(request)
  const remembered = cookie(COOKIE, encodeURIComponent(here), { maxAgeSeconds: HOUR_MS / 1000 })
  const page = verifyFirstPage(viewer, { email, here })
  return handlers.reply({ ...viewer, cookies: [...viewer.cookies, remembered] }, page)
}

/** Where the browser waited before its address was verified; undefined when it did not. */
export function waitingDecision(request: Pick<Request, 'cookie'>): string | undefined {
  const value = request.cookie(COOKIE)
  if (value === undefined) return undefined
  try {
    return safeNext(decodeURIComponent(value), '') || undefined
  } catch {
    return undefined
  }
}
