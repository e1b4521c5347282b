/**
 * Previews that only members of the drop's organisation may see. A browser comes by a round trip over the service's host,
 * where people are signed in, and gets a cookie of this host; a program sends an API token, which control is asked about.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { HOUR_MS, MINUTE_MS, SECOND_MS, type Clock } from '../../shared/running/clock.ts'
import { parseForm } from '../../shared/http/form.ts'
import { safeNext } from '../../shared/http/safe-next.ts'
import { isPass, makePass } from '../../shared/secrets/previews.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import type { Arrival, Drop } from '../context.ts'
import { cookieValues } from './cookies.ts'

const MEMBER_PATH = '/.dropway/member'
const COOKIE = '__Host-dropway-member'
/** Who has left an organisation sees its previews for no longer. */
const VISIT_MS = HOUR_MS
/** What control said of a token is believed this long. */
const BELIEVED_MS = MINUTE_MS
const MAX_BELIEVED = 2000

export type MemberAdmission =
  | { readonly kind: 'member' }
  /** Control has to be asked about this token. */
  | { readonly kind: 'ask'; readonly bearer: string }
  /** Came back from the service's host: a cookie, and on to where they wanted to go. */
  | { readonly kind: 'enter'; readonly setCookie: string; readonly location: string }
  /** To the service's host, where the person signs in. */
  | { readonly kind: 'sign-in'; readonly location: string }
  | { readonly kind: 'stranger' }

export interface PreviewGate {
  admission(drop: Drop, arrival: Arrival): MemberAdmission
  /** Whether control takes the token for one of a member; undefined where it has not said. */
  isMembers(drop: Drop, bearer: string, ip: string): Promise<boolean | undefined>
}

export interface PreviewGateDependencies {
  readonly secrets: Pick<Secrets, 'sign' | 'verify'>
  readonly clock: Clock
  readonly baseUrl: string
  /** Asks control; undefined where no control answers. */
  ask(siteId: string, bearer: string, ip: string): Promise<boolean | undefined>
}

export function createPreviewGate({ secrets, clock, baseUrl, ask }: PreviewGateDependencies): PreviewGate {
  const believed = new LRUCache<string, boolean>({ max: MAX_BELIEVED, ttl: BELIEVED_MS })

  function enter(siteId: string, { host, target }: Arrival): MemberAdmission {
    const query = parseForm(target.slice(target.indexOf('?') + 1))
    if (typeof query === 'string') return { kind: 'stranger' }
    const wanted = { kind: 'entry', siteId, host, now: clock.now() } as const
    if (!isPass(secrets, query.get('pass') ?? '', wanted)) return { kind: 'stranger' }
    const visit = makePass(secrets, { kind: 'visit', siteId, host: '', expiresAt: clock.now() + VISIT_MS })
    const next = safeNext(query.get('next'), '/')
    return {
      kind: 'enter',
      setCookie: `${COOKIE}=${visit}; Path=/; Max-Age=${VISIT_MS / SECOND_MS}; Secure; HttpOnly; SameSite=Lax`,
      location: next.startsWith(MEMBER_PATH) ? '/' : next,
    }
  }

  return {
    admission({ route }, arrival) {
      const siteId = route.site_id
      const wanted = { kind: 'visit', siteId, host: '', now: clock.now() } as const
      const given = cookieValues(arrival.header('cookie') ?? '', COOKIE)
      if (given.some((value) => isPass(secrets, value, wanted))) return { kind: 'member' }
      if (arrival.target.startsWith(`${MEMBER_PATH}?`)) return enter(siteId, arrival)
      const bearer = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(arrival.header('authorization') ?? '')?.[1]
      if (bearer !== undefined) return { kind: 'ask', bearer }
      if (!isNavigation(arrival)) return { kind: 'stranger' }
      const query = `host=${arrival.host}&next=${encodeURIComponent(arrival.target)}`
      return { kind: 'sign-in', location: `${baseUrl}/sites/${siteId}/pass?${query}` }
    },

    async isMembers({ route }, bearer, ip) {
      const key = createHash('sha256').update(`${route.site_id}\n${bearer}`).digest('base64url')
      const known = believed.get(key)
      if (known !== undefined) return known
      const answer = await ask(route.site_id, bearer, ip)
      if (answer !== undefined) believed.set(key, answer)
      return answer
    },
  }
}

/** A page that a person opens; a script or an image has no one to sign in. */
function isNavigation(arrival: Arrival): boolean {
  const destination = arrival.header('sec-fetch-dest')
  return destination === undefined || destination === 'document' || destination === 'iframe'
}
