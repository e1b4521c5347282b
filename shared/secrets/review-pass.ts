/**
 * What lets the review page show a drop in a frame, and hear of newer versions. Control seals it for who may review the
 * drop; the edge holds it against the drop's record and asks no one. It holds no address and no name.
 *
 * The frame's address holds one for two minutes, which also says when the visit ends: the edge carries that end over
 * into the pass of the visit, and never makes it later. Neither of the two stands for the other.
 */
import { historyOfRevision } from '../contracts/history.ts'
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

/** The pass of a frame's address, which is used at once. */
export interface AddressPass extends ReviewPass {
  /** The end of the visit that begins with it, as control noted it. */
  readonly visitEndsAt: number
}

/** What of a drop's route record a pass is held against. */
interface ReviewedRoute {
  readonly site_id: string
  readonly revision: number
  readonly password: { readonly generation: number } | null
  readonly viewers?: { readonly ended: Ended } | undefined
  readonly review?: { readonly generation: number; readonly ended: Ended } | undefined
}

type Ended = readonly (readonly [subject: string, until: number])[]

/** The parameter of the frame's address. */
export const REVIEW_PARAMETER = 'dropway-review'

const ADDRESS_CONTEXT = 'review-pass'
const VISIT_CONTEXT = 'review-visit-pass'
/** Ours have about 200 characters. */
const MAX_SEALED_CHARS = 400

/** Whether the pass lets its holder see the drop, now. A public drop names its generation while passes are taken back. */
export function admitsReview(route: ReviewedRoute, pass: ReviewPass, now: number): boolean {
  const generation = route.password?.generation ?? route.review?.generation
  const ended = route.viewers?.ended ?? route.review?.ended ?? []
  return (
    pass.siteId === route.site_id &&
    pass.endsAt > now &&
    pass.history === historyOfRevision(route.revision) &&
    (generation === undefined || pass.generation === generation) &&
    !ended.some(([subject]) => subject === pass.subject)
  )
}

export function sealReviewPass(secrets: Pick<Secrets, 'seal'>, pass: ReviewPass): string {
  return secrets.seal(JSON.stringify(fieldsOf(pass)), VISIT_CONTEXT)
}

/** Sealed so that an edge of the release before opens it, too, which reads past the end of the visit. */
export function sealAddressPass(secrets: Pick<Secrets, 'seal'>, pass: AddressPass): string {
  return secrets.seal(JSON.stringify([...fieldsOf(pass), pass.visitEndsAt]), ADDRESS_CONTEXT)
}

/** Undefined for what this service did not seal for a visit. */
export function openReviewPass(secrets: Pick<Secrets, 'open'>, sealed: string): ReviewPass | undefined {
  return opened(secrets, sealed, VISIT_CONTEXT)?.[0]
}

/** Undefined for what this service did not seal for an address. One of the release before begins no visit beyond it. */
export function openAddressPass(secrets: Pick<Secrets, 'open'>, sealed: string): AddressPass | undefined {
  const [pass, visitEndsAt] = opened(secrets, sealed, ADDRESS_CONTEXT) ?? []
  return pass && { ...pass, visitEndsAt: visitEndsAt ?? pass.endsAt }
}

type Fields = [
  siteId: string,
  subject: string,
  isMember: boolean,
  generation: number,
  history: number,
  endsAt: number,
  visitEndsAt?: number,
]

function fieldsOf({ siteId, subject, isMember, generation, history, endsAt }: ReviewPass): Fields {
  return [siteId, subject, isMember, generation, history, endsAt]
}

function opened(
  secrets: Pick<Secrets, 'open'>,
  sealed: string,
  context: string,
): [ReviewPass, number | undefined] | undefined {
  if (sealed.length > MAX_SEALED_CHARS) return undefined
  try {
    const fields = JSON.parse(String(secrets.open(sealed, context))) as Fields
    const [siteId, subject, isMember, generation, history, endsAt, visitEndsAt] = fields
    return [{ siteId, subject, isMember, generation, history, endsAt }, visitEndsAt]
  } catch {
    return undefined
  }
}
