/**
 * Drops inside the frame of the review page. Whoever carries what control sealed for them sees the drop there, whatever
 * else guards it, with the small helper that reports selections; at the public address nothing of this exists.
 *
 *   /page?dropway-review=<sealed>  the frame's first page: with the helper, and a cookie for what the page loads, which
 *                                  ends when control said that the visit does
 *   the cookie, in a frame         the pages that links lead to: with the helper
 *   the cookie, elsewhere          styles, images and scripts of a drop that not everyone may see
 */
import { LRUCache } from 'lru-cache'
import { before } from '../../shared/values/before.ts'
import { parseForm } from '../../shared/http/form.ts'
import { SECOND_MS, type Clock } from '../../shared/running/clock.ts'
import {
  admitsReview,
  openAddressPass,
  openReviewPass,
  REVIEW_PARAMETER,
  sealReviewPass,
  type ReviewPass,
} from '../../shared/secrets/review-pass.ts'
import type { Secrets } from '../../shared/secrets/secrets.ts'
import type { Arrival, Drop, ServedSite } from '../context.ts'
import { cookieValues } from './cookies.ts'

const COOKIE = '__Host-dropway-frame'
/** What was opened before is known by its text. About 500 bytes each. */
const MAX_OPENED = 5000
/** A shorter target cannot hold what control seals: nearly every request is told apart by that alone. */
const MIN_TARGET_CHARS = 120

export interface Framing {
  /** Undefined where the address holds nothing that counts. */
  ofTarget(drop: Drop, arrival: Arrival): Drop | undefined
  ofCookie(drop: Drop, arrival: Arrival): Drop | undefined
  /** The pass of a visit that a cookie or the address of a stream holds, if it counts for this drop. */
  passOf(route: ServedSite, sealed: string): ReviewPass | undefined
}

export function createFraming({ secrets, clock }: { secrets: Pick<Secrets, 'open' | 'seal'>; clock: Clock }): Framing {
  const opened = new LRUCache<string, ReviewPass>({ max: MAX_OPENED })
  const framed = new WeakMap<Drop, Drop>()

  function passOf(route: ServedSite, sealed: string): ReviewPass | undefined {
    const pass = opened.get(sealed) ?? openReviewPass(secrets, sealed)
    if (pass === undefined) return undefined
    opened.set(sealed, pass)
    return admitsReview(route, pass, clock.now()) ? pass : undefined
  }

  /** A route of its own: what is prepared for visitors and for the frame is never mixed up. */
  function inFrame(drop: Drop): Drop {
    let made = framed.get(drop)
    if (made === undefined)
      framed.set(drop, (made = { ...drop, route: { ...drop.route }, isPreview: true, isFramed: true }))
    return made
  }

  function seenBy(drop: Drop, pass: ReviewPass): Drop | undefined {
    if (drop.isForMembers && !pass.isMember) return undefined
    const shown = inFrame(drop)
    return pass.isMember ? shown : { ...shown, viewer: pass.subject }
  }

  return {
    passOf,
    ofTarget(drop, { target }) {
      if (!mayHoldPass(target)) return undefined
      const query = parseForm(target.slice(before(target, '?').length + 1))
      const sealed = typeof query === 'string' ? null : query.get(REVIEW_PARAMETER)
      const pass = sealed === null ? undefined : openAddressPass(secrets, sealed)
      if (pass === undefined || !admitsReview(drop.route, pass, clock.now())) return undefined
      const visit = sealReviewPass(secrets, { ...pass, endsAt: pass.visitEndsAt })
      const seconds = Math.ceil((pass.visitEndsAt - clock.now()) / SECOND_MS)
      // The frame alone sends it: under another page, or by itself, the drop does not see it.
      const frameCookie = `${COOKIE}=${visit}; Path=/; Max-Age=${seconds}; Secure; HttpOnly; SameSite=None; Partitioned`
      const shown = seenBy(drop, pass)
      return shown && { ...shown, frameCookie }
    },
    ofCookie(drop, arrival) {
      const header = arrival.header('cookie')
      if (header === undefined || !header.includes(COOKIE)) return undefined
      for (const sealed of cookieValues(header, COOKIE)) {
        const pass = passOf(drop.route, sealed)
        if (pass !== undefined) return seenBy(drop, pass)
      }
      return undefined
    },
  }
}

/** Whether the address is worth a closer look. */
function mayHoldPass(target: string): boolean {
  return target.length >= MIN_TARGET_CHARS && target.includes(`${REVIEW_PARAMETER}=`)
}
