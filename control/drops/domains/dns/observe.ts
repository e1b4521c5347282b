/** What DNS says about a domain, gathered as a visitor's resolver and a certificate authority would. */
import { sideBySide } from '../../../../shared/values/side-by-side.ts'
import type { CaaProperty, Dns, DnsFailure } from './dns.ts'
import { baseOf, isWildcard, selfAndParents, visitedName, zoneOf } from './names.ts'
import type { AddressProbe } from './probe.ts'

/** Resolvers give up between 8 and 16 aliases in a row. */
const MAX_ALIASES = 10

export interface Observation {
  /** Aliases from the name on, in order. */
  readonly chain: readonly string[]
  /** `loop`: it never comes to an end, or to one that resolvers would not reach. */
  readonly chainEnd: 'name' | 'loop'
  /** Where visitors end up. */
  readonly addresses: readonly string[]
  /** The way to the addresses could not be asked for, and at which name. */
  readonly failure: { readonly kind: DnsFailure; readonly name: string } | undefined
  /** What stands at `_dropway.<domain>`; undefined when that could not be asked for. */
  readonly txts: readonly string[] | undefined
  readonly caa: CaaFinding
  /** Aliases from the name on at which authorities look for the proof of a wildcard; empty for other names. */
  readonly delegation: readonly string[]
  /** What stands at the places where people put records by mistake. */
  readonly strays: readonly Stray[]
  /** Who answered at the addresses, as far as they were looked at. */
  readonly probes: readonly AddressProbe[]
}

/** The closest set counts (RFC 8659 §3); one that could not be asked for is a refusal at every authority. */
export type CaaFinding =
  | { readonly kind: 'none' }
  | { readonly kind: 'set'; readonly name: string; readonly properties: readonly CaaProperty[] }
  | { readonly kind: 'failed'; readonly name: string; readonly failure: DnsFailure }

export interface Stray {
  readonly type: 'TXT' | 'CNAME'
  readonly name: string
  readonly value: string
}

export function proofName(domain: string): string {
  return `_dropway.${baseOf(domain)}`
}

/** Where authorities look for a proof by DNS (RFC 8555 §8.4). */
export function challengeName(domain: string): string {
  return `_acme-challenge.${baseOf(domain)}`
}

export async function observe(dns: Dns, domain: string, asksCa: boolean): Promise<Observation> {
  const visited = visitedName(domain)
  const [route, txt, caa, strays, proofs] = await Promise.all([
    followAliases(dns, visited),
    dns.txt(proofName(domain)),
    asksCa ? findCaa(dns, baseOf(domain)) : { kind: 'none' as const },
    findStrays(dns, domain, visited),
    asksCa && isWildcard(domain) ? followAliases(dns, challengeName(domain)) : { chain: [] },
  ])
  const addresses = await addressesOf(dns, route)
  return {
    chain: route.chain,
    chainEnd: route.chainEnd,
    addresses: addresses.values,
    failure: route.failure ?? addresses.failure,
    txts: txt.failure === undefined ? txt.values : undefined,
    caa,
    delegation: proofs.chain,
    strays,
    probes: [],
  }
}

interface Aliases extends Pick<Observation, 'chain' | 'chainEnd' | 'failure'> {
  readonly end: string
}

async function followAliases(dns: Dns, domain: string): Promise<Aliases> {
  const chain: string[] = []
  let name = domain
  while (chain.length < MAX_ALIASES) {
    const { values, failure } = await dns.cname(name)
    if (failure !== undefined) return { chain, chainEnd: 'name', failure: { kind: failure, name }, end: name }
    const next = values[0]
    if (next === undefined) return { chain, chainEnd: 'name', failure: undefined, end: name }
    const isLoop = next === domain || chain.includes(next)
    chain.push(next)
    name = next
    if (isLoop) break
  }
  return { chain, chainEnd: 'loop', failure: undefined, end: name }
}

async function addressesOf(dns: Dns, route: Aliases): Promise<{ values: string[]; failure: Observation['failure'] }> {
  if (route.chainEnd === 'loop' || route.failure) return { values: [], failure: undefined }
  const [four, six] = await Promise.all([dns.a(route.end), dns.aaaa(route.end)])
  const kind = four.failure ?? six.failure
  const values = [...new Set([...four.values, ...six.values])]
  return { values, failure: kind === undefined || values.length > 0 ? undefined : { kind, name: route.end } }
}

async function findCaa(dns: Dns, domain: string): Promise<CaaFinding> {
  const names = selfAndParents(domain)
  const answers = await Promise.all(names.map((name) => dns.caa(name)))
  for (const [name, { values, failure }] of sideBySide(names, answers)) {
    if (failure !== undefined) return { kind: 'failed', name, failure }
    if (values.length > 0) return { kind: 'set', name, properties: values }
  }
  return { kind: 'none' }
}

/** The zone's name typed twice, the proof at the name itself, the proof at the zone instead of the name. */
async function findStrays(dns: Dns, domain: string, visited: string): Promise<Stray[]> {
  const zone = zoneOf(domain)
  const texts = [`${proofName(domain)}.${zone}`, baseOf(domain), proofName(zone)].filter(
    (name) => name !== proofName(domain),
  )
  const [alias, ...found] = await Promise.all([dns.cname(`${visited}.${zone}`), ...texts.map((name) => dns.txt(name))])
  return [
    ...alias.values.map((value): Stray => ({ type: 'CNAME', name: `${domain}.${zone}`, value })),
    ...sideBySide(texts, found).flatMap(([name, { values }]) =>
      values.map((value): Stray => ({ type: 'TXT', name, value })),
    ),
  ]
}
