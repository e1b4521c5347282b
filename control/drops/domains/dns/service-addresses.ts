/**
 * What an apex domain's A and AAAA records should say: the setting, else what the service's own name resolves to.
 *   fresh    answered from memory for five minutes
 *   stale    asked again; one question at a time, and a failed one keeps the last answer
 *   empty    asked again with the next check
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { MINUTE_MS, type Clock } from '../../../../shared/running/clock.ts'
import type { ControlConfig } from '../../../ground/config.ts'
import type { Dns } from './dns.ts'

const FRESH_MS = 5 * MINUTE_MS

interface ServiceAddressesDependencies {
  dns: Pick<Dns, 'a' | 'aaaa'>
  clock: Clock
  config: Pick<ControlConfig, 'publicAddresses' | 'serviceHost'>
}

export function createServiceAddresses({
  dns,
  clock,
  config,
}: ServiceAddressesDependencies): () => Promise<readonly string[]> {
  const { publicAddresses, serviceHost } = config
  let known: readonly string[] = []
  let askedMs = 0
  let asking: Promise<void> | undefined

  async function ask(): Promise<void> {
    const [four, six] = await Promise.all([dns.a(serviceHost), dns.aaaa(serviceHost)])
    const found = [...four.values, ...six.values]
    const addresses = found.length > 0 ? found : await asTheSystemSays(serviceHost)
    if (addresses.length === 0) return
    known = addresses
    askedMs = clock.now()
  }

  return async () => {
    if (publicAddresses.length > 0) return publicAddresses
    if (isIP(serviceHost) !== 0) return [serviceHost]
    if (clock.now() - askedMs >= FRESH_MS) await (asking ??= ask().finally(() => (asking = undefined)))
    return known
  }
}

/** Names that no DNS server knows, `localhost` above all. */
async function asTheSystemSays(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true }).catch(() => [])
  return found.map(({ address }) => address)
}
