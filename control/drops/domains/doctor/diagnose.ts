/**
 * The doctor: from what was seen of a domain to what is wrong with it and the exact lines that mend it. Pure.
 * Following the lines and nothing else makes the domain work, so each situation yields all of them at once,
 * routing before proof before permission.
 */
import { isIP } from 'node:net'
import type { CaaProperty } from '../dns/dns.ts'
import { hostInZone, isApex, isWildcard, zoneOf } from '../dns/names.ts'
import { challengeName, proofName, type CaaFinding, type Observation } from '../dns/observe.ts'
import type { AddressProbe } from '../dns/probe.ts'

export const recordTypes = ['A', 'AAAA', 'CNAME', 'ALIAS', 'TXT', 'CAA'] as const
export type RecordType = (typeof recordTypes)[number]

export const recordActions = ['add', 'replace', 'remove'] as const

/** One line of a zone that is missing or wrong. */
export interface RecordLine {
  readonly action: (typeof recordActions)[number]
  /** As DNS providers want it typed, relative to `zone`; `@` is the zone itself. */
  readonly host: string
  readonly zone: string
  /** The whole name. */
  readonly name: string
  readonly type: RecordType
  /** What is to stand there; of a line to remove, what stands there now. */
  readonly value: string
  /** What stands there now. */
  readonly found: readonly string[]
}

/** What a check of DNS and of the way in can find wrong. */
export const foundByCheck = [
  'no_record',
  'wrong_target',
  'cname_loop',
  'txt_missing',
  'delegation_missing',
  'servfail',
  'timeout',
  'caa_forbids',
  'caa_failed',
  'private_address',
  'challenge_unreachable',
  'challenge_wrong',
] as const
export type FoundReason = (typeof foundByCheck)[number]

export interface WantedZone {
  readonly domain: string
  /** Where an alias is to point to. */
  readonly target: string
  /** Addresses of the service; empty when they are unknown. */
  readonly serviceAddresses: readonly string[]
  /** The TXT value that proves the name. */
  readonly proof: string
  /** It is proven already, whatever stands in the zone now. */
  readonly isProven: boolean
  /** The TXT value is needed whatever the alias says: another account holds the name. */
  readonly isTransfer: boolean
  /** Where proofs of a wildcard are written; undefined where none is needed. */
  readonly proofsAt: string | undefined
  /** What a CAA record must name so that our authority may issue. */
  readonly authorities: readonly string[]
  /** Port on which authorities look. */
  readonly challengePort: number
}

export interface Diagnosis {
  /** The first thing that is in the way; null: visitors arrive, and a certificate can be had. */
  readonly reason: FoundReason | null
  /** The reason's own particulars, for its sentence. */
  readonly about: string
  /** What is to be done in the zone, all of it. */
  readonly records: readonly RecordLine[]
  /** One line that may stand in for the A and AAAA lines, where the DNS provider offers it. */
  readonly alternative: RecordLine | null
  readonly warnings: readonly string[]
  /** The zone leads visitors here. */
  readonly isRouted: boolean
}

export function diagnose(seen: Observation, wanted: WantedZone): Diagnosis {
  const routing = judgeRouting(seen, wanted)
  const proof = proofLines(seen, wanted, routing)
  const delegation = judgeDelegation(seen, wanted)
  const caa = judgeCaa(seen.caa, wanted)
  const finding = routing.finding ?? proof.finding ?? delegation.finding ?? caa.finding
  return {
    reason: finding?.reason ?? null,
    about: finding?.about ?? '',
    records: [...routing.lines, ...proof.lines, ...delegation.lines, ...caa.lines],
    alternative: routing.alternative,
    warnings: [...routing.warnings, ...proof.warnings, ...strayWarnings(seen, wanted, routing, proof)],
    isRouted: routing.finding === undefined,
  }
}

interface Finding {
  readonly reason: FoundReason
  readonly about: string
}

interface Routing {
  readonly finding: Finding | undefined
  readonly lines: readonly RecordLine[]
  readonly alternative: RecordLine | null
  readonly warnings: readonly string[]
}

/** In this order: no answer, no end, no record, somewhere else, here but not reachable, here. */
function judgeRouting(seen: Observation, wanted: WantedZone): Routing {
  const problem = (reason: FoundReason, about: string, repair: Repair): Routing => ({
    finding: { reason, about },
    ...repair,
    warnings: [],
  })
  const repair = repairOfRouting(seen, wanted)
  const nothing: Repair = { lines: [], alternative: null }
  // Nothing is known of the zone: a name that was never proven is shown what it will need.
  if (seen.failure) return problem(seen.failure.kind, seen.failure.name, wanted.isProven ? nothing : repair)
  if (seen.chainEnd === 'loop') return problem('cname_loop', ['', ...seen.chain].join(' → ').trim(), repair)
  if (seen.chain.length === 0 && seen.addresses.length === 0) return problem('no_record', '', repair)

  const isAliased = seen.chain.includes(wanted.target)
  const here = seen.addresses.filter((address) => isOurs(address, seen, wanted))
  const foreign = seen.addresses.filter((address) => !here.includes(address))
  const onWay = isAliased ? nothing : repair
  const unreached = judgeProbes(seen.probes, wanted)
  if (unreached && here.length === 0) return problem(unreached.reason, unreached.about, onWay)
  if (isAliased) {
    if (seen.addresses.length === 0) return problem('no_record', wanted.target, nothing)
    return { finding: unreached, ...nothing, warnings: [] }
  }
  // An alias that leads here by another name proves nothing; to change it is the same work as to add a proof.
  const isUnproven = !wanted.isProven && !wanted.isTransfer && seen.chain.length > 0 && !isApex(wanted.domain)
  if (here.length === 0 || isUnproven) return problem('wrong_target', foundRoute(seen), repair)
  return { finding: undefined, ...removal(foreign, seen, wanted), warnings: foreignWarnings(foreign, seen, wanted) }
}

/** Who answered decides; the list of our addresses counts for those that were not looked at. */
function isOurs(address: string, { probes, chain }: Observation, { serviceAddresses, target }: WantedZone): boolean {
  const probe = probes.find((one) => one.address === address)
  if (probe) return probe.outcome === 'ours'
  if (chain.includes(target)) return true
  // A further address of many, or none was looked at: what we know of ourselves.
  return serviceAddresses.length === 0 ? probes.length === 0 : serviceAddresses.includes(address)
}

function judgeProbes(probes: readonly AddressProbe[], { challengePort }: WantedZone): Finding | undefined {
  if (probes.length === 0 || probes.some(({ outcome }) => outcome === 'ours')) return undefined
  const strangers = probes.filter(({ outcome }) => outcome === 'stranger')
  if (strangers.length > 0) return { reason: 'challenge_wrong', about: strangers.map(describeProbe).join(', ') }
  const silent = probes.filter(({ outcome }) => outcome === 'silent')
  if (silent.length > 0)
    return {
      reason: 'challenge_unreachable',
      about: silent.map(({ address }) => `${address} port ${challengePort}`).join(', '),
    }
  return { reason: 'private_address', about: probes.map(({ address }) => address).join(', ') }
}

/** `192.0.2.7 (nginx, status 404)`. */
function describeProbe({ address, server, status }: AddressProbe): string {
  const particulars = [server, status === undefined ? undefined : `status ${status}`].filter((one) => one !== undefined)
  return particulars.length === 0 ? address : `${address} (${particulars.join(', ')})`
}

function foundRoute({ chain, addresses }: Observation): string {
  return chain.length > 0 ? chain.join(' → ') : addresses.join(', ')
}

type Repair = Pick<Routing, 'lines' | 'alternative'>

/** The lines that lead the name here, whatever stands there now. */
function repairOfRouting(seen: Observation, wanted: WantedZone): Repair {
  const { domain, target, serviceAddresses } = wanted
  const alias = seen.chain[0]
  const own = alias === undefined ? seen.addresses : []
  if (!isApex(domain)) {
    const line = lineFor(domain, 'CNAME', target, alias === undefined ? [] : [alias])
    return { lines: [...own.map((address) => removeLine(domain, address, own)), line], alternative: null }
  }
  const obsolete = [
    ...(alias === undefined ? [] : [{ ...lineFor(domain, 'CNAME', alias, [alias]), action: 'remove' as const }]),
    ...own.filter((address) => !serviceAddresses.includes(address)).map((address) => removeLine(domain, address, own)),
  ]
  const flattened = lineFor(domain, 'ALIAS', target, [])
  if (serviceAddresses.length === 0) return { lines: [...obsolete, flattened], alternative: null }
  const missing = serviceAddresses.filter((address) => !own.includes(address))
  return {
    lines: [...obsolete, ...missing.map((address) => lineFor(domain, typeOf(address), address, ofType(own, address)))],
    alternative: flattened,
  }
}

function removal(foreign: readonly string[], { addresses }: Observation, { domain }: WantedZone): Repair {
  return { lines: foreign.map((address) => removeLine(domain, address, addresses)), alternative: null }
}

function foreignWarnings(foreign: readonly string[], { probes }: Observation, { domain }: WantedZone): string[] {
  return foreign.map((address) => {
    const probe = probes.find((one) => one.address === address)
    const who =
      probe?.outcome === 'stranger'
        ? `where ${describeProbe(probe)} answers`
        : probe?.outcome === 'silent'
          ? 'where no server answers'
          : 'which is not ours'
    return `${domain} also has the ${typeOf(address)} record ${address}, ${who}. Some visitors end up there, and a certificate may be refused. Remove it.`
  })
}

interface Proof {
  readonly finding: Finding | undefined
  readonly lines: readonly RecordLine[]
  readonly warnings: readonly string[]
}

function proofLines(seen: Observation, wanted: WantedZone, routing: Routing): Proof {
  const { domain, proof, target } = wanted
  const name = proofName(domain)
  const has = seen.txts?.includes(proof) ?? false
  const willBeAliased = routing.lines.some(({ type, action }) => type === 'CNAME' && action !== 'remove')
  const isAliased = seen.chain.includes(target)
  if (has || (!wanted.isTransfer && (isAliased || willBeAliased)))
    return { finding: undefined, lines: [], warnings: [] }
  // The zone does not answer for the proof: of a name that was proven, nothing is known to be wrong.
  if (seen.txts === undefined && wanted.isProven) return { finding: undefined, lines: [], warnings: [] }
  const line = lineFor(name, 'TXT', proof, seen.txts ?? [], 'add')
  const finding: Finding =
    seen.txts === undefined ? { reason: 'servfail', about: name } : { reason: 'txt_missing', about: '' }
  if (!wanted.isProven) return { finding, lines: [line], warnings: [] }
  // How it was proven is not known any more: by an alias, perhaps, and then there never was such a record.
  const warning = `Nothing in the zone proves the name at present. The domain stays yours; without the TXT record ${name}, another account that proves the name can take it over.`
  return { finding: undefined, lines: [line], warnings: routing.finding ? [] : [warning] }
}

type Judged = Pick<Proof, 'finding' | 'lines'>

/** Only its owner's zone can say that a wildcard is ours to prove: an alias from where authorities look to where we write. */
function judgeDelegation({ delegation, chain }: Observation, { domain, target, proofsAt }: WantedZone): Judged {
  if (proofsAt === undefined || delegation.includes(proofsAt)) return { finding: undefined, lines: [] }
  // A wildcard's own alias answers for every name that has no record.
  const [found] = delegation
  const isOwn = found !== undefined && found !== target && found !== chain[0]
  const line = lineFor(challengeName(domain), 'CNAME', proofsAt, isOwn ? [found] : [])
  return { finding: { reason: 'delegation_missing', about: line.name }, lines: [line] }
}

/** What an authority may not find (RFC 8659 §4.2, RFC 8657): a set without our name, or a property it cannot read. */
function judgeCaa(caa: CaaFinding, { authorities, domain }: WantedZone): Judged {
  if (caa.kind === 'none') return { finding: undefined, lines: [] }
  if (caa.kind === 'failed') return { finding: { reason: 'caa_failed', about: caa.name }, lines: [] }
  const texts = caa.properties.map(caaText)
  const unreadable = caa.properties.filter(({ isCritical, tag }) => isCritical && !READABLE_CAA_TAGS.has(tag))
  const tag = issuingTag(domain, caa.properties)
  const method = isWildcard(domain) ? 'dns-01' : 'http-01'
  const issuers = caa.properties.filter((property) => property.tag === tag)
  const isNamed = issuers.length === 0 || issuers.some(({ value }) => permits(value, authorities, method))
  if (unreadable.length === 0 && isNamed) return { finding: undefined, lines: [] }
  const obsolete = unreadable.map((property) => ({
    ...lineFor(caa.name, 'CAA', caaText(property), texts),
    action: 'remove' as const,
  }))
  const permission = isNamed ? [] : [lineFor(caa.name, 'CAA', `0 ${tag} "${authorities[0] ?? ''}"`, texts, 'add')]
  return { finding: { reason: 'caa_forbids', about: caa.name }, lines: [...obsolete, ...permission] }
}

/** For a wildcard, `issuewild` counts alone where there is one (RFC 8659 §4.3). */
function issuingTag(domain: string, properties: readonly CaaProperty[]): 'issue' | 'issuewild' {
  return isWildcard(domain) && properties.some(({ tag }) => tag === 'issuewild') ? 'issuewild' : 'issue'
}

const READABLE_CAA_TAGS: ReadonlySet<string> = new Set(
  'issue issuewild issuemail issuevmc iodef contactemail contactphone'.split(' '),
)

function caaText({ isCritical, tag, value }: CaaProperty): string {
  return `${isCritical ? 128 : 0} ${tag} "${value}"`
}

/** `;` alone names none. Methods other than ours are no permission; further parameters are the authority's business. */
function permits(issuer: string, authorities: readonly string[], method: string): boolean {
  const [name = '', ...parameters] = issuer.split(';').map((part) => part.trim().toLowerCase())
  const methods = parameters.find((parameter) => parameter.startsWith('validationmethods='))?.split('=')[1]
  return authorities.includes(name) && (methods === undefined || methods.split(',').includes(method))
}

function strayWarnings(
  { strays }: Observation,
  { proof, target }: WantedZone,
  { lines }: Routing,
  { lines: proofs }: Proof,
): string[] {
  const missing = [...lines, ...proofs]
  return strays
    .filter(({ type, value }) => value === (type === 'TXT' ? proof : target))
    .filter(({ type }) => missing.some((line) => line.type === type && line.action !== 'remove'))
    .flatMap(({ type, name }) => {
      const right = missing.find((line) => line.type === type)
      return right === undefined
        ? []
        : `The ${type} record is at ${name}, where it does nothing. Its host must be "${right.host}" in the zone ${right.zone}.`
    })
}

function lineFor(
  name: string,
  type: RecordType,
  value: string,
  found: readonly string[],
  action: RecordLine['action'] = found.length > 0 && type === 'CNAME' ? 'replace' : 'add',
): RecordLine {
  const zone = zoneOf(name)
  return { action, host: hostInZone(name, zone), zone, name, type, value, found }
}

function removeLine(name: string, address: string, all: readonly string[]): RecordLine {
  return { ...lineFor(name, typeOf(address), address, ofType(all, address)), action: 'remove' }
}

function typeOf(address: string): 'A' | 'AAAA' {
  return isIP(address) === 6 ? 'AAAA' : 'A'
}

function ofType(addresses: readonly string[], like: string): string[] {
  return addresses.filter((address) => isIP(address) === isIP(like))
}
