/**
 * Two locks on every form:
 * 1. Origin / Sec-Fetch-Site: browsers say where a form came from; drops on sibling hosts are strangers.
 * 2. A token in the form, signed for the session, or before sign-in for a cookie of its own (double submit).
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { equalTexts, hashSecret, randomSecret, type Secrets } from '../../../shared/secrets/secrets.ts'
import { cookie } from '../../ground/http/reply.ts'
import type { Request } from '../../ground/http/route.ts'
import { isCrossOrigin, isSameOrigin } from './same-origin.ts'
import { SESSION_COOKIE } from './sessions.ts'

export const CSRF_FIELD = 'csrf'
const VISITOR_COOKIE = '__Host-dropway_csrf'

export interface Csrf {
  /** The token for the forms of a page; `setCookie` must go out with the page when present. */
  csrfToken(request: Request): { token: string; setCookie: string | undefined }
  /**
   * `stale`: from a page of ours, by what the browser says itself, but made for another session. Nothing may be done
   * with it; it may be shown again. `foreign`: nothing says that it is ours.
   */
  standing(request: Request, form: URLSearchParams): 'good' | 'stale' | 'foreign'
  /** The browser sent none of the cookies that our pages set: it blocks them, or they were cleared since. */
  isWithoutCookies(request: Request): boolean
  /** Throws 403 unless the form came from one of our pages, in this browser, in this session. */
  requireCsrf(request: Request, form: URLSearchParams): void
}

export function createCsrf({ secrets, baseUrl }: { secrets: Pick<Secrets, 'sign'>; baseUrl: string }): Csrf {
  // The cookie's value is a credential: only its hash goes into what is signed.
  const tokenFor = (kind: 'session' | 'visitor', value: string): string =>
    secrets.sign('csrf', `${kind}:${hashSecret(value)}`)

  function binding(request: Request): { kind: 'session' | 'visitor'; value: string } | undefined {
    const session = request.cookie(SESSION_COOKIE)
    if (session) return { kind: 'session', value: session }
    const visitor = request.cookie(VISITOR_COOKIE)
    return visitor ? { kind: 'visitor', value: visitor } : undefined
  }

  function standing(request: Request, form: URLSearchParams): 'good' | 'stale' | 'foreign' {
    const bound = binding(request)
    const given = form.get(CSRF_FIELD) ?? ''
    // Old browsers and plain tools send neither header: then the token alone has to be right.
    if (isCrossOrigin(request, baseUrl)) return 'foreign'
    if (bound && equalTexts(tokenFor(bound.kind, bound.value), given)) return 'good'
    return isSameOrigin(request, baseUrl) ? 'stale' : 'foreign'
  }

  return {
    standing,
    isWithoutCookies: (request) => binding(request) === undefined,
    csrfToken(request) {
      const bound = binding(request)
      if (bound) return { token: tokenFor(bound.kind, bound.value), setCookie: undefined }
      const value = randomSecret()
      return { token: tokenFor('visitor', value), setCookie: cookie(VISITOR_COOKIE, value) }
    },
    requireCsrf(request, form) {
      if (standing(request, form) !== 'good')
        throw errors.forbidden(
          'This form is out of date or came from another page. Go back, reload the page and send it again.',
        )
    },
  }
}
