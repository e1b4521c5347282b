/** Asks DNS what it says about a domain. Every question has a time limit; an odd answer is a finding, not an error. */
import { Resolver } from 'node:dns/promises'
import { SECOND_MS } from '../../shared/clock.ts'
import { txtRecord, type ClaimFacts, type DnsFindings } from './rules.ts'

const QUERY_TIMEOUT_MS = 2 * SECOND_MS
const QUERY_TRIES = 2
/** `a.b.c.…`: RFC 8659 climbs to the root, but no name of ours needs more steps. */
const MAX_CAA_LEVELS = 10

export interface DoctorDeps {
  /** host:port of the resolver to ask; undefined: the system's. */
  readonly dnsResolver: string | undefined
  readonly caaIdentities: readonly string[]
  /** No CA, no CAA. */
  readonly asksCa: boolean
}

export interface Doctor {
  examine(claim: ClaimFacts): Promise<DnsFindings>
}

type Answer<Value> = { readonly values: readonly Value[]; readonly failure: DnsFindings['failure'] }

export function createDoctor({ dnsResolver, caaIdentities, asksCa }: DoctorDeps): Doctor {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES })
  if (dnsResolver !== undefined) resolver.setServers([dnsResolver])

  async function caaOf(domain: string): Promise<{ verdict: DnsFindings['caa']; failure: DnsFindings['failure'] }> {
    const labels = domain.split('.')
    for (let level = 0; level < Math.min(labels.length, MAX_CAA_LEVELS); level++) {
      const { values, failure } = await ask(() => resolver.resolveCaa(labels.slice(level).join('.')))
      if (failure) return { verdict: 'allows', failure }
      // RFC 8659 §4: the closest set counts; without an `issue` property it forbids nothing.
      const issuers = values.map(({ issue }) => issue).filter((issue) => issue !== undefined)
      if (values.length > 0)
        return { verdict: mayIssue(issuers, caaIdentities) ? 'allows' : 'forbids', failure: undefined }
    }
    return { verdict: 'allows', failure: undefined }
  }

  return {
    async examine(claim) {
      const proof = txtRecord(claim)
      const [cname, four, six, txt, caa] = await Promise.all([
        ask(() => resolver.resolveCname(claim.domain)),
        ask(() => resolver.resolve4(claim.domain)),
        ask(() => resolver.resolve6(claim.domain)),
        ask(() => resolver.resolveTxt(proof.name)),
        asksCa ? caaOf(claim.domain) : { verdict: 'allows' as const, failure: undefined },
      ])
      return {
        cnames: cname.values.map(lower),
        addresses: [...four.values, ...six.values],
        hasProof: txt.values.some((chunks) => chunks.join('') === proof.value),
        failure: cname.failure ?? four.failure ?? six.failure ?? caa.failure,
        caa: caa.verdict,
      }
    },
  }
}

/** `issue ";"` allows nobody; parameters after a semicolon are the CA's business. */
function mayIssue(issuers: readonly string[], identities: readonly string[]): boolean {
  return (
    issuers.length === 0 || issuers.some((issuer) => identities.includes(issuer.split(';')[0]!.trim().toLowerCase()))
  )
}

/** No such name and no such record are an empty answer; everything else that fails is SERVFAIL or silence. */
async function ask<Value>(query: () => Promise<Value[]>): Promise<Answer<Value>> {
  try {
    return { values: await query(), failure: undefined }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENODATA' || code === 'ENOTFOUND') return { values: [], failure: undefined }
    return { values: [], failure: code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'timeout' : 'servfail' }
  }
}

function lower(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
