/**
 * Who is in to a drop that only its viewers see. What a visitor carries is sealed by control and says for itself whom it
 * lets in, where and until when; the edge holds it against the drop's record and asks no one.
 */
import { LRUCache } from 'lru-cache'
import { admits, openAdmission, type Admission } from '../../shared/contracts/admission.ts'
import { DIRECT, ENTER_PATH, GUEST_PATH, VISIT_PATH } from '../../shared/contracts/visit-desk.ts'
import { parseForm } from '../../shared/http/form.ts'
import { SECOND_MS, type Clock } from '../../shared/running/clock.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import type { ServedSite } from '../context.ts'
import { cookieValues } from './cookies.ts'

const COOKIE = '__Host-dropway-viewer'
/** Opening one costs a tenth of a request; what was opened before is known by its text. About 500 bytes each. */
const MAX_OPENED = 10_000

export interface Admissions {
  /** Undefined: whoever sent the cookies is not in. */
  ofCookies(route: ServedSite, cookieHeader: string | undefined): Admission | undefined
  ofSealed(route: ServedSite, sealed: string): Admission | undefined
  /** For the browser that control let in. */
  cookie(sealed: string, endsAt: number): string
}

export function createAdmissions({ secrets, clock }: { secrets: Pick<Secrets, 'open'>; clock: Clock }): Admissions {
  const opened = new LRUCache<string, Admission>({ max: MAX_OPENED })

  function open(sealed: string): Admission | undefined {
    const known = opened.get(sealed)
    if (known !== undefined) return known
    const admission = openAdmission(secrets, sealed)
    if (admission !== undefined) opened.set(sealed, admission)
    return admission
  }

  function ofSealed(route: ServedSite, sealed: string): Admission | undefined {
    const admission = open(sealed)
    return admission !== undefined && admits(route, admission, clock.now()) ? admission : undefined
  }

  return {
    ofSealed,
    ofCookies(route, cookieHeader) {
      if (cookieHeader === undefined) return undefined
      for (const sealed of cookieValues(cookieHeader, COOKIE)) {
        const admission = ofSealed(route, sealed)
        if (admission !== undefined) return admission
      }
      return undefined
    },
    cookie(sealed, endsAt) {
      const seconds = Math.max(0, Math.ceil((endsAt - clock.now()) / SECOND_MS))
      return `${COOKIE}=${sealed}; Path=/; Max-Age=${seconds}; Secure; HttpOnly; SameSite=Lax`
    },
  }
}

/** What a visitor asks for at one of the addresses by which viewers come in. */
export type Door =
  | { readonly kind: 'visit'; readonly next: string | null }
  /** `token`: from the path; `next`: where to go afterwards; `isDirect`: the person is here already, and needs no button. */
  | {
      readonly kind: 'enter' | 'guest'
      readonly token: string
      readonly next: string | null
      readonly isDirect: boolean
    }

function nextIn(query: string): string | null {
  const form = parseForm(query)
  return typeof form === 'string' ? null : form.get('next')
}

const TOKEN = /^[A-Za-z0-9_-]{1,200}$/

/** Undefined for every other address of the drop. Pure. */
export function doorOf(target: string): Door | undefined {
  if (!target.startsWith('/.dropway/')) return undefined
  const [path = '', query = ''] = target.split('?', 2)
  if (path === VISIT_PATH) return { kind: 'visit', next: nextIn(query) }
  const kind = path.startsWith(`${ENTER_PATH}/`) ? 'enter' : path.startsWith(`${GUEST_PATH}/`) ? 'guest' : undefined
  if (kind === undefined) return undefined
  const token = path.slice(path.lastIndexOf('/') + 1)
  return { kind, token: TOKEN.test(token) ? token : '', next: nextIn(query), isDirect: query.startsWith(`${DIRECT}&`) }
}
