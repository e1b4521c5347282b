/** What `doctor` says of the certificates that edges get by dns-01 for the service's own names. */
import type { Redis } from 'ioredis'
import { certificateFacts, openBundle } from '../../../../shared/certificates/bundle.ts'
import { ownCertificates } from '../../../../shared/certificates/own-names.ts'
import { decodeRetryState, type FailureReason, type RetryState } from '../../../../shared/certificates/retry.ts'
import { keys } from '../../../../shared/redis/keys.ts'
import { createSecrets } from '../../../../shared/secrets/secrets.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Finding } from './finding.ts'

/** A single failure of a renewal is everyday life. */
const NOTABLE_FAILURES = 3

export interface OwnCertificateFacts {
  readonly name: string
  /** End of the certificate that edges have; undefined while there is none. */
  readonly endsMs: number | undefined
  readonly retry: RetryState | undefined
}

export async function ownCertificateFindings(
  redis: Pick<Redis, 'hget'>,
  config: Pick<ControlConfig, 'serviceHost' | 'sitesDomain' | 'secretKey'>,
): Promise<Finding[]> {
  const secrets = createSecrets(config.secretKey)
  const facts: OwnCertificateFacts[] = []
  for (const name of ownCertificates(config)) {
    const sealed = await redis.hget(keys.certificates, name)
    const retry = decodeRetryState(await redis.hget(keys.acmeRetry, name))
    const endsMs = sealed === null ? undefined : certificateFacts(openBundle(secrets, name, sealed).cert).notAfterMs
    facts.push({ name, endsMs, retry })
  }
  const nowMs = Date.now()
  return facts.map((fact) => ownCertificateFinding(fact, nowMs)).filter((finding) => finding !== undefined)
}

/** Nothing where no edge has ever tried: then the certificate is a file, or the local authority's. */
export function ownCertificateFinding(
  { name, endsMs, retry }: OwnCertificateFacts,
  nowMs: number,
): Finding | undefined {
  const check = `certificate ${name}`
  const isGood = endsMs !== undefined && endsMs > nowMs
  const until = isGood ? `good until ${new Date(endsMs).toUTCString()}` : 'there is none'
  if (!retry) return isGood ? { check, state: 'ok', detail: until } : undefined
  const said = retry.last_error === '' ? retry.reason : retry.last_error
  const next = new Date(retry.next_attempt_ms).toUTCString()
  const detail = `${until}; the last order failed: ${said}. The next try is at ${next}, or when an edge is started`
  const mend = MENDS[retry.reason]
  if (!isGood) return { check, state: 'problem', detail, mend }
  return retry.attempts >= NOTABLE_FAILURES
    ? { check, state: 'warning', detail, mend }
    : { check, state: 'ok', detail: until }
}

const MENDS: Readonly<Record<FailureReason, string>> = {
  dns: 'Make the zone answer for _acme-challenge on all of its name servers, then start an edge again.',
  caa_forbids: 'Allow the authority in the CAA records of the domain (for wildcards: issuewild).',
  challenge_unreachable: 'Let the authority reach port 80 of the edges, or let DNS01 prove this name.',
  challenge_wrong:
    'Let no other program write the _acme-challenge records, and give slow name servers more DNS01_WAIT.',
  ca_unavailable: 'Check ACME_DIRECTORY_URL and the way out of this network. It is tried again by itself.',
  ca_refused: 'Look at what the authority says, and at ACME_EMAIL.',
  internal: 'Correct the DNS01 settings of the edges as the message says, then start an edge again.',
}
