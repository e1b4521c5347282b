/** Questions to DNS. Every one has a time limit; an odd answer is a finding, not an error. */
import { Resolver } from 'node:dns/promises'
import { askDns, DNS_QUESTION } from '../../../../shared/http/dns-question.ts'

export type DnsFailure = 'servfail' | 'timeout'

/** No such name and no such record are an empty answer. */
export interface DnsAnswer<Value> {
  readonly values: readonly Value[]
  readonly failure: DnsFailure | undefined
}

/** One property of a CAA record (RFC 8659 §4.1). */
export interface CaaProperty {
  readonly isCritical: boolean
  readonly tag: string
  readonly value: string
}

/** Names are lower case without a trailing dot, in questions and in answers. Nothing here rejects. */
export interface Dns {
  a(name: string): Promise<DnsAnswer<string>>
  aaaa(name: string): Promise<DnsAnswer<string>>
  /** The alias that stands at the name itself, not what it leads to. */
  cname(name: string): Promise<DnsAnswer<string>>
  txt(name: string): Promise<DnsAnswer<string>>
  caa(name: string): Promise<DnsAnswer<CaaProperty>>
}

/** `server`: host:port of the resolver to ask; undefined: the system's. */
export function createDns(server: string | undefined): Dns {
  const resolver = new Resolver(DNS_QUESTION)
  if (server !== undefined) resolver.setServers([server])
  return {
    a: (name) => ask(() => resolver.resolve4(name)),
    aaaa: (name) => ask(() => resolver.resolve6(name)),
    cname: (name) => ask(async () => (await resolver.resolveCname(name)).map(plainName)),
    txt: (name) => ask(async () => (await resolver.resolveTxt(name)).map((chunks) => chunks.join(''))),
    caa: (name) => ask(async () => (await resolver.resolveCaa(name)).flatMap(caaProperties)),
  }
}

function caaProperties(record: object): CaaProperty[] {
  const { critical, type: _, ...properties } = record as { critical?: number; type?: string } & Record<string, unknown>
  return Object.entries(properties).map(([tag, value]) => ({
    isCritical: (critical ?? 0) !== 0,
    tag: tag.toLowerCase(),
    value: String(value),
  }))
}

async function ask<Value>(query: () => Promise<Value[]>): Promise<DnsAnswer<Value>> {
  try {
    return { values: await askDns(query), failure: undefined }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENODATA' || code === 'ENOTFOUND') return { values: [], failure: undefined }
    return { values: [], failure: code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'timeout' : 'servfail' }
  }
}

function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}
