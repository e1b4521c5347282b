/** A DNS provider's page for one zone: its owner adds and removes lines, and the test's DNS server answers accordingly. */
import type { FakeDns } from './pebble.ts'

export type ZoneType = 'A' | 'AAAA' | 'CNAME' | 'TXT' | 'CAA' | 'ALIAS'

/** A line as the doctor shows it. */
export interface AdviceLine {
  readonly action: 'add' | 'replace' | 'remove'
  readonly name: string
  readonly type: string
  readonly value: string
}

interface Entry {
  readonly name: string
  readonly type: ZoneType
  readonly value: string
}

export interface Zone {
  /** Names are whole; a line is added beside what is there. */
  add(name: string, type: ZoneType, value: string): Promise<void>
  remove(name: string, type: ZoneType, value?: string): Promise<void>
  /** Does exactly what is said, and nothing else. */
  follow(lines: readonly AdviceLine[]): Promise<void>
  servfail(name: string): Promise<void>
  heal(): Promise<void>
}

/** `resolve`: addresses of names outside of the zone. */
export function openZone(dns: FakeDns, resolve: (name: string) => readonly string[]): Zone {
  let entries: Entry[] = []
  const broken = new Set<string>()

  const addressesOf = (name: string, depth = 0): readonly string[] => {
    if (depth > 10) return []
    const own = entries.filter((entry) => entry.name === name)
    const alias = own.find(({ type }) => type === 'CNAME' || type === 'ALIAS')
    if (alias) return addressesOf(alias.value, depth + 1)
    const addresses = own.filter(({ type }) => type === 'A' || type === 'AAAA').map(({ value }) => value)
    return addresses.length > 0 ? addresses : resolve(name)
  }

  async function write(name: string): Promise<void> {
    await dns.clear(name)
    if (broken.has(name)) return dns.servfail(name)
    for (const { type, value } of entries.filter((entry) => entry.name === name)) {
      if (type === 'A') await dns.a(name, value)
      if (type === 'AAAA') await dns.aaaa(name, value)
      if (type === 'TXT') await dns.txt(name, value)
      if (type === 'CAA') await dns.caa(name, { tag: value.split(' ')[1]!, value: /"(.*)"/.exec(value)![1]! })
      if (type === 'ALIAS') await dns.a(name, ...addressesOf(value))
      if (type === 'CNAME') {
        await dns.cname(name, value)
        // The server follows one alias only; a resolver would follow all of them.
        const addresses = addressesOf(value)
        if (addresses.length > 0) await dns.a(name, ...addresses)
      }
    }
  }

  const zone: Zone = {
    async add(name, type, value) {
      entries = [...entries, { name, type, value }]
      await write(name)
    },
    async remove(name, type, value) {
      entries = entries.filter(
        (entry) => entry.name !== name || entry.type !== type || (value !== undefined && entry.value !== value),
      )
      await write(name)
    },
    async follow(lines) {
      for (const { action, name, type, value } of lines) {
        if (action !== 'add') await zone.remove(name, type as ZoneType, action === 'remove' ? value : undefined)
        if (action !== 'remove') await zone.add(name, type as ZoneType, value)
      }
    },
    async servfail(name) {
      broken.add(name)
      await write(name)
    },
    async heal() {
      const names = [...broken]
      broken.clear()
      for (const name of names) await write(name)
    },
  }
  return zone
}
