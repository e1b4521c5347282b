/** Decisions about custom domains: no I/O, no clock. */
import { nextTryMs, type RetryState } from '../../../shared/certificates/retry.ts'
import { DAY_MS, HOUR_MS } from '../../../shared/running/clock.ts'
import { stepAt, type Steps } from '../../../shared/running/steps.ts'
import type { NewRoute } from '../../ground/routing/outbox.ts'
import type { Plan } from '../../ground/terms/plans.ts'
import { closedRouteOf } from '../sites/rules.ts'
import { isWildcard } from './dns/names.ts'
import { foundByCheck, type Diagnosis } from './doctor/diagnose.ts'
import type { Ownership } from './doctor/ownership.ts'

/**
 * New names of one organisation within a day, removed ones included: each costs orders at the certificate authority, whose
 * limits are for the whole service. Enough to set up every domain of a plan, and to mistype half of them.
 */
export function newDomainsPerDay(planDomains: number): number {
  return 8 + 2 * planDomains
}

export const domainStates = ['awaiting_dns', 'issuing', 'active', 'failing', 'blocked'] as const
export type DomainState = (typeof domainStates)[number]

/** Why a domain is not (or soon no longer) served. Stable: clients may act on them. */
export const domainReasons = [
  'not_checked',
  ...foundByCheck,
  'dns',
  'ca_unavailable',
  'ca_refused',
  'internal',
  'held_elsewhere',
  'plan_ended',
] as const
export type DomainReason = (typeof domainReasons)[number]

export interface CheckFacts {
  readonly state: DomainState
  readonly stopped: boolean
  /** The edges are asked for a certificate. */
  readonly wanted: boolean
  readonly diagnosis: Pick<Diagnosis, 'reason' | 'isRouted'>
  readonly ownership: Ownership
  /** End of the certificate that the edges serve. */
  readonly certificateEndsMs: number | undefined
  readonly retry: RetryState | undefined
  readonly nowMs: number
}

export interface Decision {
  readonly state: DomainState
  readonly reason: DomainReason | null
  /** Does this account hold the name from now on? */
  readonly holds: boolean
  /** Shall the edges have a certificate? */
  readonly wanted: boolean
}

/** Failures of a renewal that owners should hear of; a single one is everyday life. */
export const NOTABLE_RENEWAL_FAILURES = 3

/** What stands in the way of a certificate although visitors arrive. The CA is not asked while it does. */
const WAITS_FOR_OWNER: ReadonlySet<DomainReason> = new Set([
  'delegation_missing',
  'caa_forbids',
  'caa_failed',
  'private_address',
])
const WAY_IN: ReadonlySet<DomainReason> = new Set(['challenge_unreachable', 'challenge_wrong'])

/**
 * In this order: the plan, whose name it is, DNS, the way in, the CA's permission, the certificate.
 * A domain that is served stays served while its certificate lasts, whatever else is wrong.
 */
export function decide(facts: CheckFacts): Decision {
  const { ownership, nowMs, retry } = facts
  const holds = ownership === 'holds' || ownership === 'takes_over'
  // The end of a plan takes no certificate away: visitors go on meeting a page of ours over good TLS.
  if (facts.stopped) return { state: 'blocked', reason: 'plan_ended', holds, wanted: facts.wanted }
  if (ownership === 'held_elsewhere') return { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false }

  const { reason } = facts.diagnosis
  const hasCertificate = facts.certificateEndsMs !== undefined && facts.certificateEndsMs > nowMs
  if (reason !== null) {
    // An account that takes over a name that is being served goes on serving it.
    const isServable = holds && hasCertificate && (isServed(facts.state) || WAITS_FOR_OWNER.has(reason))
    if (isServable) return { state: 'failing', reason, holds, wanted: true }
    const isNear = WAY_IN.has(reason) && holds
    return { state: isNear ? 'issuing' : 'awaiting_dns', reason, holds, wanted: false }
  }
  if (hasCertificate) {
    const renewal = retry && retry.attempts >= NOTABLE_RENEWAL_FAILURES ? retry.reason : null
    return { state: renewal === null ? 'active' : 'failing', reason: renewal, holds, wanted: true }
  }
  return { state: 'issuing', reason: retry?.reason ?? null, holds, wanted: true }
}

const FOUND_BY_CHECK: ReadonlySet<string> = new Set(foundByCheck)

export interface HurryFacts {
  readonly before: DomainReason | null
  readonly decision: Decision
  readonly retry: RetryState | undefined
  /** The owner asked for this check. */
  readonly isAsked: boolean
  /** Everything that was listed to be mended is. */
  readonly isMended: boolean
}

/**
 * Shall the CA be asked before the retry schedule says so? When the owner wants it, or when an obstacle of our own
 * finding is gone; not because the CA's last complaint is still the last.
 */
export function mayHurry({ before, decision, retry, isAsked, isMended }: HurryFacts): boolean {
  if (!retry || !decision.wanted) return false
  const isFree = decision.reason === null || decision.reason === retry.reason
  const wasObstructed = before !== null && before !== retry.reason && FOUND_BY_CHECK.has(before)
  return isFree && (isAsked || isMended || wasObstructed)
}

/** When the CA is asked next; undefined when nothing has failed, or something else must be mended first. */
export function nextTryOf(decision: Decision, retry: RetryState | undefined, hurries: boolean, nowMs: number) {
  if (!retry || !decision.wanted || decision.reason !== retry.reason) return undefined
  return hurries ? nextTryMs(retry, nowMs) : retry.next_attempt_ms
}

/** Pauses between checks of a domain that is not ready, as multiples of the first (10 s → 10 s … 1 h). */
const CHECK_STEPS: Steps = [1, 1, 3, 6, 12, 30, 90, 360]
const ACTIVE_CHECK_MS = 6 * HOUR_MS
/** An owner who has not set a record for a month will press the button. */
const PATIENCE_MS = 30 * DAY_MS

export function pauseBeforeNextCheck(
  decision: Pick<Decision, 'state' | 'reason'>,
  checks: number,
  ageMs: number,
  firstMs: number,
): number | undefined {
  if (decision.reason === 'plan_ended') return undefined
  if (decision.state === 'active') return ACTIVE_CHECK_MS
  const pause = firstMs * stepAt(CHECK_STEPS, checks)
  return decision.state === 'awaiting_dns' && ageMs > PATIENCE_MS ? Math.max(pause, DAY_MS) : pause
}

export function isServed(state: DomainState): boolean {
  return state === 'active' || state === 'failing'
}

export interface RoutedDomain {
  readonly domain: string
  /** The main name of the pair, unless it is this one. */
  readonly redirect_to: string | null
  readonly state: DomainState
  readonly holds: boolean
  /** The edges are being told to serve it; its state says so once they do. */
  readonly revealing: boolean
  /** Since when the plan has no place for it. */
  readonly stopped_at: Date | null
  readonly wanted: boolean
  readonly site_id: string
}

/** The plan has ended, the name and its certificate are still the owner's. */
function isPaused({ holds, stopped_at, wanted }: RoutedDomain): boolean {
  return holds && stopped_at !== null && wanted
}

function isRouted({ holds, state, revealing }: RoutedDomain): boolean {
  return holds && (revealing || isServed(state))
}

/** What the edges answer at each of a drop's domains. Half of a pair leads to the other only where that is served. */
export function routesOfDomains(rows: readonly RoutedDomain[], siteAddress: string): NewRoute[] {
  const answering = rows.filter((row) => isRouted(row) || isPaused(row))
  const served = new Set(answering.map(({ domain }) => domain))
  return answering.map((row): NewRoute => {
    const { domain, redirect_to } = row
    if (redirect_to !== null && served.has(redirect_to)) return { kind: 'redirect', host: domain, to: redirect_to }
    return isRouted(row)
      ? { kind: 'alias', host: domain, to: siteAddress }
      : closedRouteOf(domain, row.site_id, 'paused')
  })
}

interface ResumableDomain {
  readonly domain: string
  readonly redirect_to: string | null
  readonly stopped_at: Date | null
  readonly created_at: Date
}

/** The domains that a plan's end has stopped and that there is room for again: first come, first back; a pair is one. */
export function resumable<Row extends ResumableDomain>(
  rows: readonly Row[],
  { customDomains: room, wildcardDomains }: Pick<Plan, 'customDomains' | 'wildcardDomains'>,
): Row[] {
  const counted = rows.filter((row) => row.redirect_to === null)
  const back = counted
    .filter((row) => row.stopped_at && (wildcardDomains || !isWildcard(row.domain)))
    .toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime() || (a.domain < b.domain ? -1 : 1))
    .slice(0, Math.max(0, room - counted.filter((row) => !row.stopped_at).length))
  const names = new Set(back.map((row) => row.domain))
  return rows.filter((row) => row.stopped_at && names.has(row.redirect_to ?? row.domain))
}

/** Days before the end at which owners hear of a renewal that fails. */
export const RENEWAL_NOTICE_DAYS = [14, 3] as const

/** Which of the notices is due; undefined while the renewal may still succeed by itself. */
export function renewalNotice(retry: RetryState | undefined, endsMs: number | undefined, nowMs: number) {
  if (!retry || retry.attempts < NOTABLE_RENEWAL_FAILURES || endsMs === undefined || endsMs <= nowMs) return undefined
  return RENEWAL_NOTICE_DAYS.filter((days) => endsMs - nowMs <= days * DAY_MS).at(-1)
}

/** Checks in a row that must find visitors elsewhere before the owner gets a mail: zones are edited in steps. */
const NOTABLE_CHECKS = 3

/** Does this check make it certain that visitors no longer arrive? */
export function hasStoppedPointing(decision: Decision, checks: number): boolean {
  const { state, reason } = decision
  return state === 'failing' && checks >= NOTABLE_CHECKS && reason !== null && VISITORS_ELSEWHERE.has(reason)
}

const VISITORS_ELSEWHERE: ReadonlySet<DomainReason> = new Set([
  'no_record',
  'wrong_target',
  'cname_loop',
  'servfail',
  'private_address',
  'challenge_wrong',
])
