/** What a domain's reason says, in sentences. The lines to paste stand beside them, never in them. */
import type { RetryState } from '../../../../shared/certificates/retry.ts'
import { inBothForms } from '../dns/names.ts'
import type { DomainReason, DomainState } from '../rules.ts'

/** Sentences for owners name a time so that it can be compared with any clock. */
function timeInWords(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

export interface Particulars {
  readonly domain: string
  /** What was found, as the reason wants it: a target, an address, a name. */
  readonly about: string
  /** The certificate authority's last complaint. */
  readonly retry: RetryState | undefined
  /** When it is asked again. */
  readonly nextTryMs: number | undefined
  /** Something is listed that should be mended. */
  readonly hasLines: boolean
  readonly authorities: readonly string[]
}

type Explain = (particulars: Particulars & { readonly name: string }) => string

const AUTHORITY = 'The certificate authority'

const TEXTS: Readonly<Record<DomainReason, Explain>> = {
  not_checked: () => 'The first check is about to run.',
  no_record: ({ name, about }) =>
    about === ''
      ? `There is no DNS record for ${name} yet. Set what is listed; new records can take some minutes to appear.`
      : `${name} points to ${about}, which has no address at the moment. That is ours to mend; it is checked again by itself.`,
  wrong_target: ({ name, about }) => `${name} leads to ${about}, which is not here. Change what is listed.`,
  cname_loop: ({ name, about }) =>
    `The CNAME records of ${name} never come to an address (${about}). Change what is listed.`,
  txt_missing: ({ name }) => `${name} leads here, but nothing proves that it is yours. Add the TXT record listed.`,
  delegation_missing: ({ name, about }) =>
    `A certificate for ${name} is proven at ${about}, which does not lead to us yet. Add the CNAME record listed, and leave it there: renewals need it too.`,
  servfail: ({ about }) =>
    `The name servers of ${about} answer with an error (SERVFAIL). Check the zone and its DNSSEC settings at your DNS provider.`,
  timeout: ({ about }) => `The name servers of ${about} do not answer in time. Check the zone at your DNS provider.`,
  caa_forbids: ({ about, authorities }) =>
    `The CAA records at ${about} do not allow our certificate authority (${authorities.join(', ')}). Set what is listed there.`,
  caa_failed: ({ about }) =>
    `The name servers of ${about} answer questions for CAA records with an error. Certificate authorities refuse then. Check the zone and its DNSSEC settings at your DNS provider.`,
  private_address: ({ name, about }) => `${name} leads to ${about}, which cannot be reached from the internet.`,
  challenge_unreachable: ({ about }) =>
    `DNS is right, but no server answers at ${about}. Open the port, or remove what stands in between.`,
  challenge_wrong: ({ name, about }) =>
    `Another server answers at http://${name}/: ${about}. Remove old records, and any proxy in between.`,
  dns: () => `${AUTHORITY} could not look the name up.`,
  ca_unavailable: () => `${AUTHORITY} cannot be asked at the moment.`,
  ca_refused: ({ retry }) => CA_PROBLEMS.get(retry?.problem ?? '') ?? `${AUTHORITY} refused.`,
  internal: () => 'Something failed on our side.',
  held_elsewhere: ({ name }) =>
    `${name} is in use by another account. Set what is listed, and it moves here; the other account is told.`,
  plan_ended: () =>
    'Your plan has no place for this domain any more: visitors see a page that says it is paused. Have a larger plan, or remove another domain, and it comes back.',
}

/** Problem types of RFC 8555 §6.7 that have no reason of their own. */
const CA_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['rejectedIdentifier', `${AUTHORITY} does not issue for this name.`],
  ['unsupportedIdentifier', `${AUTHORITY} does not issue for names like this.`],
  ['rateLimited', `${AUTHORITY} has issued or refused too often for this name.`],
  ['userActionRequired', `${AUTHORITY} wants the service to agree to its terms. That is ours to mend.`],
  ['externalAccountRequired', `${AUTHORITY} does not know the service. That is ours to mend.`],
  ['unauthorized', `${AUTHORITY} does not accept the service. That is ours to mend.`],
  ['serverInternal', `${AUTHORITY} has a fault of its own.`],
])

/** What the CA found where our own check finds nothing (any more). */
const CA_FOUND: Readonly<Partial<Record<DomainReason, string>>> = {
  challenge_unreachable: `${AUTHORITY} could not reach the domain.`,
  challenge_wrong: `${AUTHORITY} got an answer that is not ours.`,
  caa_forbids: `${AUTHORITY} found CAA records that forbid it.`,
}

/** `isRepaired`: our own check finds nothing wrong; the reason is the CA's last word. */
export function explain(
  reason: DomainReason | null,
  state: DomainState,
  isRepaired: boolean,
  particulars: Particulars,
): string {
  if (reason === null) return state === 'issuing' ? 'DNS is right. The certificate is being issued.' : ''
  const sentence =
    (isRepaired && CA_FOUND[reason]) || TEXTS[reason]({ ...particulars, name: inBothForms(particulars.domain) })
  if (!isRepaired || !particulars.retry) return sentence
  return [sentence, quote(particulars.retry), nextTry(particulars)].filter((part) => part !== '').join(' ')
}

function quote({ last_error, reason }: RetryState): string {
  // What failed on our side is in the log, not for the owner.
  return last_error === '' || reason === 'internal' ? '' : `It said: "${last_error}"`
}

function nextTry({ nextTryMs, hasLines }: Particulars): string {
  if (nextTryMs === undefined) return ''
  const own = hasLines ? 'What is listed may be the cause' : 'Our own check finds nothing wrong now'
  return `${own}; the next try is at ${timeInWords(nextTryMs)}.`
}

/** What visitors meet while a domain leads elsewhere, for the mail about it. */
export function whatVisitorsSee(reason: DomainReason, about: string): string {
  switch (reason) {
    case 'no_record':
    case 'cname_loop':
      return 'Visitors see an error of their browser: the name cannot be found.'
    case 'servfail':
      return 'Visitors see an error of their browser: the name servers of the domain do not answer.'
    case 'private_address':
      return `Visitors are sent to ${about}, which cannot be reached from the internet.`
    default:
      return `Visitors see what ${about} shows them.`
  }
}
