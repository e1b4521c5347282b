/** What is asked of the DNS before and after a record is written. */
import { Resolver } from 'node:dns/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND_MS } from '../../shared/running/clock.ts'
import { askDns, DNS_QUESTION } from '../../shared/http/dns-question.ts'
import { IssueError } from '../source.ts'
import type { ProofRecord } from './record-keeper.ts'

const POLL_MS = SECOND_MS
/** A chain that is longer leads nowhere (RFC 1034 §3.6.2 warns of chains at all). */
const MAX_CNAMES = 8
/** More name servers of a zone than this are not asked. */
const MAX_SERVERS = 8

export interface Lookups {
  /** Where the CNAMEs that begin at this name end: there the record has to stand. */
  endOf(name: string): Promise<string>
  /** Resolves when no name server of the zone answers without the record any more; throws after `waitMs`. */
  untilShown(record: ProofRecord, waitMs: number): Promise<void>
  /** A resolver that asks this server alone. */
  at(server: string): Resolver
}

export function createLookups(resolverAddress: string | undefined): Lookups {
  const resolver = new Resolver(DNS_QUESTION)
  if (resolverAddress !== undefined) resolver.setServers([resolverAddress])

  const at = (server: string): Resolver => {
    const one = new Resolver(DNS_QUESTION)
    one.setServers([server])
    return one
  }

  /** Those that a CA may ask. None can be found where a private network hides them: then the CA has the last word. */
  async function serversOf(name: string): Promise<string[]> {
    for (let zone = name; zone.includes('.'); zone = zone.slice(zone.indexOf('.') + 1)) {
      const names = await askDns(() => resolver.resolveNs(zone)).catch(() => [])
      if (names.length === 0) continue
      const found = await Promise.all(
        names.slice(0, MAX_SERVERS).map((host) => askDns(() => resolver.resolve4(host)).catch(() => [])),
      )
      return found.flat().slice(0, MAX_SERVERS)
    }
    return []
  }

  return {
    at,
    async endOf(name) {
      let end = name
      for (let step = 0; step < MAX_CNAMES; step++) {
        const [target] = await askDns(() => resolver.resolveCname(end)).catch(() => [])
        if (target === undefined) return end.toLowerCase()
        end = target.replace(/\.$/, '')
      }
      throw new IssueError('dns', `the CNAME records that begin at ${name} do not come to an end`)
    },
    async untilShown({ name, value }, waitMs) {
      let waiting = await serversOf(name)
      for (const deadline = performance.now() + waitMs; ; await sleep(POLL_MS)) {
        const shown = await Promise.all(waiting.map((server) => showsRecord(at(server), name, value)))
        waiting = waiting.filter((_, index) => shown[index] === false)
        if (waiting.length === 0) return
        if (performance.now() >= deadline)
          throw new IssueError('dns', `the name server ${waiting[0]} does not show the new TXT record of ${name} yet`)
      }
    },
  }
}

/** Undefined when the server cannot be asked from here: then it is no reason to wait. */
async function showsRecord(resolver: Resolver, name: string, value: string): Promise<boolean | undefined> {
  try {
    return (await askDns(() => resolver.resolveTxt(name))).some((parts) => parts.join('') === value)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOTFOUND' || code === 'ENODATA' ? false : undefined
  }
}
