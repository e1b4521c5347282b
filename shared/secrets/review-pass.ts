/**
 * What lets the review page show a drop in a frame, and hear of newer versions. Control seals it for who may review the
 * drop; the edge holds it against the drop's record and asks no one. It holds no address and no name.
 */
import { historyOfRevision } from '../contracts/history.ts'
import { HOUR_MS } from '../running/clock.ts'
import type { Secrets } from './secrets.ts'

export interface ReviewPass {
  readonly siteId: string
  /** Id of the viewer, the guest link or the member. */
  readonly subject: string
  /** A member of the drop's organisation also sees what is for members alone. */
  readonly isMember: boolean
  /** That of the drop's password: each change of who may see the drop begins another. */
  readonly generation: number
  readonly history: number
  /** Milliseconds since the epoch. */
  readonly endsAt: number
}

/** What of a drop's route record a pass is held against. */
interface ReviewedRoute {
  readonly site_id: string
  readonly revision: number
  readonly password: { readonly generation: number } | null
  readonly viewers?: { readonly ended: readonly (readonly [subject: string, until: number])[] } | undefined
}

/** How long a frame shows what it was let in to; what is taken back ends it before. */
export const REVIEW_VISIT_MS = 4 * HOUR_MS

/** The parameter of the frame's address. */
export const REVIEW_PARAMETER = 'dropway-review'

const CONTEXT = 'review-pass'
/** Ours have about 180 characters. */
const MAX_SEALED_CHARS = 400

/** Whether the pass lets its holder see the drop, now. What everyone may see, no pass is needed for. */
export function admitsReview(route: ReviewedRoute, pass: ReviewPass, now: number): boolean {
  return (
    pass.siteId === route.site_id &&
    pass.endsAt > now &&
    pass.history === historyOfRevision(route.revision) &&
    (route.password === null || pass.generation === route.password.generation) &&
    !route.viewers?.ended.some(([subject]) => subject === pass.subject)
  )
}

export function sealReviewPass(secrets: Pick<Secrets, 'seal'>, pass: ReviewPass): string {
  const { siteId, subject, isMember, generation, history, endsAt } = pass
  return secrets.seal(JSON.stringify([siteId, subject, isMember, generation, history, endsAt]), CONTEXT)
}

/** Undefined for what this service did not seal. */
export function openReviewPass(secrets: Pick<Secrets, 'open'>, sealed: string): ReviewPass | undefined {
  if (sealed.length > MAX_SEALED_CHARS) return undefined
  try {
    const [siteId, subject, isMember, generation, history, endsAt] = JSON.parse(
      String(secrets.open(sealed, CONTEXT)),
    ) as [string, string, boolean, number, number, number]
    return { siteId, subject, isMember, generation, history, endsAt }
  } catch {
    return undefined
  }
}
