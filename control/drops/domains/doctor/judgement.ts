/** What a check says of a domain, from what it has seen. No I/O. */
import { randomBytes } from 'node:crypto'
import type { RetryState } from '../../../../shared/certificates/retry.ts'
import { siteHost } from '../../../../shared/http/hosts.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import { isWildcard } from '../dns/names.ts'
import { challengeName, type Observation } from '../dns/observe.ts'
import type { DomainChanges, DomainRow } from '../queries.ts'
import * as rules from '../rules.ts'
import { diagnose, type Diagnosis, type WantedZone } from './diagnose.ts'
import {
  evidenceOf,
  isAliasFresh,
  judgeOwnership,
  transferValue,
  verifyValue,
  type Ownership,
  type NameProof,
} from './ownership.ts'
import { explain } from './words.ts'

/** What domains are told to point to and to allow. */
export interface Installation {
  readonly sitesDomain: string
  /** Names by which CAA records allow our certificate authority. */
  readonly authorities: readonly string[]
  readonly challengePort: number
  /** Where the edges write proofs by DNS, their own and those that are led there; undefined where no authority asks. */
  readonly proofsAt: string | undefined
}

export function installationOf(
  config: Pick<ControlConfig, 'sitesDomain' | 'challengePort' | 'caaIdentities' | 'acmeDirectoryUrl'>,
): Installation {
  const { sitesDomain, challengePort, acmeDirectoryUrl } = config
  const proofsAt = acmeDirectoryUrl === undefined ? undefined : challengeName(sitesDomain)
  return { sitesDomain, challengePort, proofsAt, authorities: caaIdentities(config) }
}

/** What a check has seen before it decides. */
export interface Seen {
  readonly observation: Observation
  readonly beganMs: number
  readonly serviceAddresses: readonly string[]
  readonly retry: RetryState | undefined
}

export function newToken(): string {
  return randomBytes(16).toString('hex')
}

function proofOf(row: DomainRow, { sitesDomain }: Pick<Installation, 'sitesDomain'>): NameProof {
  return {
    dnsTarget: siteHost(row.dns_target, sitesDomain),
    token: row.verify_token,
    transferToken: row.transfer_token,
    isCnameSpent: row.is_cname_spent,
  }
}

export function ownershipOf(
  row: DomainRow,
  holder: DomainRow | undefined,
  zone: Observation,
  installation: Installation,
): Ownership {
  return judgeOwnership({
    proof: proofOf(row, installation),
    isHolder: row.holds,
    holder: holder && holder.id !== row.id ? proofOf(holder, installation) : undefined,
    zone,
  })
}

/** What the zone of a domain has to hold. */
export function wantedFor(
  row: DomainRow,
  ownership: Ownership,
  seen: Pick<Seen, 'observation' | 'serviceAddresses'>,
  installation: Installation,
): WantedZone {
  const isTransfer = ownership === 'held_elsewhere'
  const moved = transferValue(row.verify_token)
  const proof = seen.observation.txts?.includes(moved) ? moved : verifyValue(row.verify_token)
  return {
    domain: row.domain,
    target: proofOf(row, installation).dnsTarget,
    serviceAddresses: seen.serviceAddresses,
    proof: isTransfer && row.transfer_token !== null ? transferValue(row.transfer_token) : proof,
    isProven: ownership === 'holds' || ownership === 'takes_over',
    isTransfer,
    proofsAt: isWildcard(row.domain) ? installation.proofsAt : undefined,
    authorities: installation.authorities,
    challengePort: installation.challengePort,
  }
}

/** What a judgement about whose name it is changes in the row. */
export function ownershipChanges(
  row: DomainRow,
  other: DomainRow | undefined,
  ownership: Ownership,
  zone: Observation,
  { installation, now }: { installation: Installation; now: Date },
): DomainChanges {
  const noTransfer = { transfer_token: null, transfer_from: null }
  const alias = row.is_cname_spent && isAliasFresh(proofOf(row, installation), zone) ? { is_cname_spent: false } : {}
  switch (ownership) {
    case 'takes_over': {
      const token = evidenceOf(proofOf(row, installation), zone).transfer ? row.transfer_token : null
      return { ...noTransfer, held_since: now, ...(token !== null && { verify_token: token }) }
    }
    case 'holds':
      return row.holds ? {} : { ...noTransfer, held_since: now }
    case 'held_elsewhere':
      return !other || row.transfer_from === other.id
        ? alias
        : { ...alias, transfer_token: newToken(), transfer_from: other.id }
    case 'unproven':
      return { ...alias, ...noTransfer }
    default:
      return ownership satisfies never
  }
}

/** What the owner reads about a domain that was looked at. */
export function adviceOf(
  row: DomainRow,
  decision: rules.Decision,
  diagnosis: Diagnosis,
  retry: RetryState | undefined,
  hurries: boolean,
  { authorities, nowMs }: { authorities: readonly string[]; nowMs: number },
): DomainChanges {
  const nextTryMs = rules.nextTryOf(decision, retry, hurries, nowMs)
  const isRepaired = diagnosis.reason === null && retry !== undefined
  const hasLines = diagnosis.records.length > 0
  const particulars = { domain: row.domain, about: diagnosis.about, retry, nextTryMs, hasLines, authorities }
  return {
    detail: explain(decision.reason, decision.state, isRepaired, particulars),
    records: diagnosis.records,
    alternative: diagnosis.alternative,
    warnings: diagnosis.warnings,
    next_try_at: nextTryMs === undefined ? null : new Date(nextTryMs),
  }
}

/** What the owner reads about a domain that was not looked at. */
export function explainUnseen(reason: rules.DomainReason, domain: string, authorities: readonly string[]): string {
  const particulars = { domain, about: '', retry: undefined, nextTryMs: undefined, hasLines: false, authorities }
  return explain(reason, 'blocked', false, particulars)
}

/** What a name has to show before anything was looked at. */
export function firstAdviceOf(
  row: DomainRow,
  serviceAddresses: readonly string[],
  installation: Installation,
): Pick<Diagnosis, 'records' | 'alternative'> {
  const ownership = row.holds ? 'holds' : row.transfer_token === null ? 'unproven' : 'held_elsewhere'
  const seen = { observation: unseen, serviceAddresses }
  const { records, alternative } = diagnose(unseen, wantedFor(row, ownership, seen, installation))
  return { records, alternative }
}

/** How many checks in a row have ended alike; they space out. */
export function checksInARow(row: DomainRow, decision: Pick<rules.Decision, 'state' | 'reason'>): number {
  return decision.state === row.state && decision.reason === row.reason ? row.checks + 1 : 0
}

/** A zone with nothing in it. */
const unseen: Observation = {
  chain: [],
  chainEnd: 'name',
  addresses: [],
  failure: undefined,
  txts: [],
  caa: { kind: 'none' },
  delegation: [],
  strays: [],
  probes: [],
}

/** Where nothing is said, what the directory's address tells: Let's Encrypt, or a CA that goes by its own host. */
function caaIdentities({
  caaIdentities: given,
  acmeDirectoryUrl,
}: Pick<ControlConfig, 'caaIdentities' | 'acmeDirectoryUrl'>): readonly string[] {
  if (given.length > 0) return given.map((identity) => identity.toLowerCase())
  const host = acmeDirectoryUrl === undefined ? '' : (URL.parse(acmeDirectoryUrl)?.hostname ?? '')
  return host.endsWith('letsencrypt.org') ? ['letsencrypt.org'] : [host]
}
