/** Decisions about custom domains: no I/O, no clock. */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { parse as parseSuffix } from 'tldts'
import type { RetryState } from '../../shared/certificate-retry.ts'
import { DAY_MS, HOUR_MS } from '../../shared/clock.ts'
import { isHostname } from '../../shared/hosts.ts'
import type { NewRoute } from '../events/outbox.ts'

export const domainStates = ['awaiting_dns', 'issuing', 'active', 'failing', 'blocked'] as const
export type DomainState = (typeof domainStates)[number]

/** Reasons that a check of ours finds: when one of them goes away, a new attempt at the CA makes sense at once. */
const foundByCheck = [
  'no_record',
  'wrong_target',
  'txt_missing',
  'servfail',
  'timeout',
  'caa_forbids',
  'private_address',
  'challenge_unreachable',
  'challenge_wrong',
] as const

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

export interface DnsRecord {
  readonly type: 'CNAME' | 'ALIAS' | 'A' | 'AAAA' | 'TXT'
  readonly name: string
  readonly value: string
}

export interface OwnNames {
  readonly serviceHost: string
  readonly sitesDomain: string
}

export type ParsedDomain = { readonly domain: string } | { readonly problem: string }

/** What somebody typed → an A-label name that could be theirs, or a sentence that says why not. */
export function parseDomain(input: string, own: OwnNames): ParsedDomain {
  const typed = input.trim().replace(/\.$/, '')
  if (isIP(typed) !== 0) return { problem: 'Use a domain name, not an address.' }
  // Only names go into the converter: it would read a URL's host out of anything longer.
  const domain = /[\s/:@?#\\%[\]]/.test(typed) ? '' : domainToASCII(typed)
  if (domain === '' || !isHostname(domain))
    return { problem: `"${input.slice(0, 253)}" is not a domain name. Write it like www.example.com.` }
  const { domain: registrable, isIp } = parseSuffix(domain, { allowPrivateDomains: true })
  if (isIp || /^\d+$/.test(domain.slice(domain.lastIndexOf('.') + 1)))
    return { problem: 'Use a domain name, not an address.' }
  if (isOurs(domain, own)) return { problem: `"${domain}" belongs to the service. Use a domain of your own.` }
  if (registrable === null) return { problem: `"${domain}" is a public suffix. Use a name below it.` }
  return { domain }
}

/** Our own names, anything below them, and anything above them. */
function isOurs(domain: string, { serviceHost, sitesDomain }: OwnNames): boolean {
  return [serviceHost, sitesDomain].some(
    (own) => domain === own || domain.endsWith(`.${own}`) || own.endsWith(`.${domain}`),
  )
}

/** The registrable name itself, where DNS allows no CNAME. */
export function isApex(domain: string): boolean {
  return parseSuffix(domain, { allowPrivateDomains: true }).domain === domain
}

/** apex ↔ www; undefined for any other name. */
export function pairOf(domain: string): string | undefined {
  if (isApex(domain)) return `www.${domain}`.length <= 253 ? `www.${domain}` : undefined
  const rest = domain.startsWith('www.') ? domain.slice(4) : ''
  return rest !== '' && isApex(rest) ? rest : undefined
}

export interface ClaimFacts {
  readonly domain: string
  readonly target: string
  readonly verify_token: string
}

export function txtRecord({ domain, verify_token }: Pick<ClaimFacts, 'domain' | 'verify_token'>): DnsRecord {
  return { type: 'TXT', name: `_dropway.${domain}`, value: `dropway-verify=${verify_token}` }
}

/** Everything that may be pasted; the first line is the way for this kind of name. */
export function recordsFor(claim: ClaimFacts, addresses: readonly string[]): DnsRecord[] {
  const { domain, target } = claim
  if (!isApex(domain)) return [{ type: 'CNAME', name: domain, value: target }, txtRecord(claim)]
  const direct = addresses.map((value): DnsRecord => ({ type: isIP(value) === 6 ? 'AAAA' : 'A', name: domain, value }))
  return [txtRecord(claim), ...direct, { type: 'ALIAS', name: domain, value: target }]
}

/** The one record that is to be set next. */
export function recordToPaste(claim: ClaimFacts, reason: DomainReason | null, addresses: readonly string[]): DnsRecord {
  if (reason === 'held_elsewhere' || reason === 'txt_missing') return txtRecord(claim)
  const records = recordsFor(claim, addresses)
  const needsAddress = isApex(claim.domain) && reason === 'no_record'
  return (needsAddress ? records.find(({ type }) => type === 'A' || type === 'AAAA') : undefined) ?? records[0]!
}

/** What the resolver said. */
export interface DnsFindings {
  readonly cnames: readonly string[]
  readonly addresses: readonly string[]
  /** The TXT record with this claim's token is there. */
  readonly hasProof: boolean
  readonly failure: 'servfail' | 'timeout' | undefined
  readonly caa: 'allows' | 'forbids'
}

export type DnsVerdict =
  | { readonly kind: 'proven'; readonly by: 'cname' | 'txt' }
  | { readonly kind: 'problem'; readonly reason: DomainReason }

export function judgeDns(findings: DnsFindings, claim: ClaimFacts): DnsVerdict {
  const { cnames, addresses, hasProof, failure } = findings
  const pointsHere = cnames.includes(claim.target)
  if (hasProof && (pointsHere || addresses.length > 0)) return { kind: 'proven', by: 'txt' }
  if (pointsHere) return { kind: 'proven', by: 'cname' }
  if (failure) return { kind: 'problem', reason: failure }
  if (cnames.length > 0) return { kind: 'problem', reason: 'wrong_target' }
  if (addresses.length > 0) return { kind: 'problem', reason: isApex(claim.domain) ? 'txt_missing' : 'wrong_target' }
  return { kind: 'problem', reason: 'no_record' }
}

export type ProbeResult = 'reachable' | 'challenge_unreachable' | 'challenge_wrong' | 'private_address' | 'not_needed'

export interface CheckFacts {
  readonly state: DomainState
  readonly stopped: boolean
  readonly verdict: DnsVerdict
  readonly caa: DnsFindings['caa']
  readonly probe: ProbeResult
  /** Another account holds the name. */
  readonly heldElsewhere: boolean
  /** End of the certificate that the edges serve. */
  readonly certificateEndsMs: number | undefined
  readonly retry: RetryState | undefined
  readonly nowMs: number
}

export interface Decision {
  readonly state: DomainState
  readonly reason: DomainReason | null
  /** Does this claim hold the name from now on? Undefined: as before. */
  readonly holds: boolean | undefined
  /** Shall the edges have a certificate? */
  readonly wanted: boolean
}

/** Failures of a renewal that owners should hear of; a single one is everyday life. */
const NOTABLE_RENEWAL_FAILURES = 3

/**
 * In this order: the plan, whose name it is, DNS, the CA's permission, the way in, the certificate.
 * A domain that is served stays served while its certificate lasts, whatever else is wrong.
 */
export function decide(facts: CheckFacts): Decision {
  const { verdict, nowMs, retry } = facts
  if (facts.stopped) return { state: 'blocked', reason: 'plan_ended', holds: undefined, wanted: false }
  if (facts.heldElsewhere && !(verdict.kind === 'proven' && verdict.by === 'txt'))
    return { state: 'blocked', reason: 'held_elsewhere', holds: false, wanted: false }

  const hasCertificate = facts.certificateEndsMs !== undefined && facts.certificateEndsMs > nowMs
  const wasServed = isServed(facts.state)
  if (verdict.kind === 'problem') {
    if (wasServed && hasCertificate) return { state: 'failing', reason: verdict.reason, holds: undefined, wanted: true }
    return { state: 'awaiting_dns', reason: verdict.reason, holds: undefined, wanted: false }
  }

  const obstacle = obstacleOf(facts)
  if (hasCertificate) {
    const renewal = retry && retry.attempts >= NOTABLE_RENEWAL_FAILURES ? retry.reason : undefined
    const reason = obstacle ?? renewal ?? null
    return { state: reason === null ? 'active' : 'failing', reason, holds: true, wanted: true }
  }
  if (obstacle === 'caa_forbids' || obstacle === 'private_address')
    return { state: 'awaiting_dns', reason: obstacle, holds: true, wanted: false }
  return { state: 'issuing', reason: obstacle ?? retry?.reason ?? null, holds: true, wanted: obstacle === undefined }
}

function obstacleOf({ caa, probe }: CheckFacts): DomainReason | undefined {
  if (caa === 'forbids') return 'caa_forbids'
  return probe === 'reachable' || probe === 'not_needed' ? undefined : probe
}

const FOUND_BY_CHECK: ReadonlySet<string> = new Set(foundByCheck)

export interface HurryFacts {
  readonly before: DomainReason | null
  readonly decision: Decision
  readonly retry: RetryState | undefined
  /** The owner asked for this check. */
  readonly isAsked: boolean
}

/**
 * Shall the CA be asked before the retry schedule says so? When the owner wants it, or when an obstacle of our own
 * finding is gone; not because the CA's last complaint is still the last.
 */
export function mayHurry({ before, decision, retry, isAsked }: HurryFacts): boolean {
  if (!retry || !decision.wanted) return false
  const isFree = decision.reason === null || decision.reason === retry.reason
  const wasObstructed = before !== null && before !== retry.reason && FOUND_BY_CHECK.has(before)
  return isFree && (isAsked || wasObstructed)
}

/** Pauses between checks of a domain that is not ready, as multiples of the first (10 s → 10 s … 1 h). */
const CHECK_STEPS: readonly number[] = [1, 1, 3, 6, 12, 30, 90, 360]
const ACTIVE_CHECK_MS = 6 * HOUR_MS
/** Who has not set a record for a month will press the button. */
const PATIENCE_MS = 30 * DAY_MS

export function pauseBeforeNextCheck(
  decision: Decision,
  checks: number,
  ageMs: number,
  firstMs: number,
): number | undefined {
  if (decision.reason === 'plan_ended') return undefined
  if (decision.state === 'active') return ACTIVE_CHECK_MS
  const pause = firstMs * CHECK_STEPS[Math.min(checks, CHECK_STEPS.length - 1)]!
  return decision.state === 'awaiting_dns' && ageMs > PATIENCE_MS ? Math.max(pause, DAY_MS) : pause
}

export function isServed(state: DomainState): boolean {
  return state === 'active' || state === 'failing'
}

export interface RoutedDomain {
  readonly domain: string
  readonly redirect_to: string | null
  readonly state: DomainState
  readonly holds: boolean
}

/** What the edges answer at the domain; undefined while it is not served. */
export function routeOfDomain(row: RoutedDomain, siteAddress: string): NewRoute | undefined {
  if (!row.holds || !isServed(row.state)) return undefined
  return row.redirect_to === null
    ? { kind: 'alias', host: row.domain, to: siteAddress }
    : { kind: 'redirect', host: row.domain, to: row.redirect_to }
}

type Explain = (claim: ClaimFacts, found: string) => string

const TEXTS: Readonly<Record<DomainReason, Explain>> = {
  not_checked: () => 'The first check is about to run.',
  no_record: ({ domain }) =>
    `There is no DNS record for ${domain} yet. Add the record shown; new records can take some minutes to appear.`,
  wrong_target: ({ domain, target }, found) =>
    `${domain} points to ${found || 'another address'}. Let it point to ${target} instead.`,
  txt_missing: ({ domain }) =>
    `${domain} has an address, but nothing proves that it is yours. Add the TXT record shown.`,
  servfail: ({ domain }) =>
    `The name servers of ${domain} answer with an error (SERVFAIL). Check the zone and its DNSSEC settings at your DNS provider.`,
  timeout: ({ domain }) => `The name servers of ${domain} do not answer in time.`,
  caa_forbids: ({ domain }) =>
    `A CAA record of ${domain} does not allow our certificate authority. Remove it, or add our authority to it.`,
  private_address: ({ domain }, found) =>
    `${domain} points to ${found || 'an address'} that cannot be reached from the internet.`,
  challenge_unreachable: ({ domain }) =>
    `DNS is right, but nothing answers at http://${domain}/ on port 80. Open the port, or remove what stands in between.`,
  challenge_wrong: ({ domain }) =>
    `DNS is right, but somebody else answers at http://${domain}/. Remove old A or AAAA records and any proxy in between.`,
  dns: ({ domain }) => `The certificate authority could not resolve ${domain}. It is tried again by itself.`,
  ca_unavailable: () => 'The certificate authority does not answer at the moment. It is tried again by itself.',
  ca_refused: (_, found) =>
    `The certificate authority refused: ${found || 'no reason given'}. It is tried again by itself.`,
  internal: () => 'Something failed on our side. It is tried again by itself.',
  held_elsewhere: ({ domain }) =>
    `${domain} is in use by another account. Add the TXT record shown to prove that it is yours; it then moves here.`,
  plan_ended: () =>
    'Custom domains are not part of your plan any more. Upgrade to Plus or Business, and the domain comes back.',
}

export function explain(reason: DomainReason | null, state: DomainState, claim: ClaimFacts, found = ''): string {
  if (reason !== null) return TEXTS[reason](claim, found)
  return state === 'issuing' ? 'DNS is right. The certificate is being issued.' : ''
}
