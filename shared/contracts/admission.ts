/**
 * Contract 4: who was let in to a drop that only its viewers may see. Control seals an admission; the edge alone decides
 * with it, from the drop's route record, whether it still counts. It holds no address and no name.
 */
import type { Secrets } from '../secrets/secrets.ts'
import { historyOfRevision } from './history.ts'

export interface Admission {
  readonly siteId: string
  /** Id of the viewer, the guest link, the member or the token that was let in. */
  readonly subject: string
  /** That of the drop's password: each change of who may see the drop begins another. */
  readonly generation: number
  /** The history (history.ts) in which it was given: a database that was set back readmits no one. */
  readonly history: number
  /** Milliseconds since the epoch. */
  readonly endsAt: number
}

/** What of a drop's route record an admission is held against. */
export interface AdmittingRoute {
  readonly site_id: string
  readonly revision: number
  readonly password: { readonly generation: number } | null
  readonly viewers?: { readonly ended: readonly (readonly [subject: string, until: number])[] } | undefined
}

/** Stands in the place of a password's hash where viewers are named: no password gives it. */
export const VIEWERS_ONLY = 'viewers'

/**
 * Admissions that ended before their time and are named in one route record, at most. One more begins a new generation,
 * and everyone comes in anew.
 */
export const MAX_ENDED_ADMISSIONS = 200

const CONTEXT = 'admission'
/** Ours have about 170 characters. */
const MAX_SEALED_CHARS = 400

/** Whether the admission lets its holder see the drop, now. */
export function admits(route: AdmittingRoute, admission: Admission, now: number): boolean {
  return (
    admission.siteId === route.site_id &&
    admission.generation === route.password?.generation &&
    admission.history === historyOfRevision(route.revision) &&
    admission.endsAt > now &&
    route.viewers !== undefined &&
    !route.viewers.ended.some(([subject]) => subject === admission.subject)
  )
}

export function sealAdmission(secrets: Pick<Secrets, 'seal'>, admission: Admission): string {
  const { siteId, subject, generation, history, endsAt } = admission
  return secrets.seal(JSON.stringify([siteId, subject, generation, history, endsAt]), CONTEXT)
}

/** Undefined for what this service did not seal. */
export function openAdmission(secrets: Pick<Secrets, 'open'>, sealed: string): Admission | undefined {
  if (sealed.length > MAX_SEALED_CHARS) return undefined
  try {
    const [siteId, subject, generation, history, endsAt] = JSON.parse(String(secrets.open(sealed, CONTEXT))) as [
      string,
      string,
      number,
      number,
      number,
    ]
    return { siteId, subject, generation, history, endsAt }
  } catch {
    return undefined
  }
}
