/** What anonymous drops may store, all together and from one network: they cost nothing to make. */
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { anonymousBytes } from './queries.ts'

/**
 * Sums are asked for this often, since each reads every drop that it is about. In between, what this process publishes is
 * counted with a network's; what other processes publish meanwhile is far below the bound.
 */
const FRESH_MS = 10_000
/** Networks whose sums are remembered; forgetting one costs a question. */
const MAX_REMEMBERED_NETWORKS = 10_000
/** Drops expire after days, so an hour is soon enough. */
const RETRY_SECONDS = 3600

export interface AnonymousStorage {
  /** Stands for a network in the database; an address must not be kept there. */
  networkOf(ip: string): string
  /** Throws when there is no room for another drop: rate_limited for a network, unavailable for all. Counts the drop of so many bytes. */
  requireRoom(tx: Sql, network: string, bytes: number): Promise<void>
}

/** What live drops store, as it was asked for, with what was counted since. */
interface Sum {
  bytes: number
  at: number
}

export function createAnonymousStorage({
  clock,
  secrets,
  config,
}: {
  clock: Clock
  secrets: Pick<Secrets, 'sign'>
  config: Pick<ControlConfig, 'anonymousStorageBytes' | 'anonymousNetworkStorageBytes'>
}): AnonymousStorage {
  let total: Sum = { bytes: 0, at: -Infinity }
  const ofNetworks = new Map<string, Sum>()

  const isFresh = ({ at }: Sum): boolean => clock.now() - at <= FRESH_MS

  async function totalBytes(tx: Sql): Promise<number> {
    if (!isFresh(total)) total = { bytes: await anonymousBytes(tx, new Date(clock.now())), at: clock.now() }
    return total.bytes
  }

  /** A sum that refuses is always asked for: drops may have expired, and a publish that was counted may have failed. */
  async function sumOf(tx: Sql, network: string): Promise<Sum> {
    const known = ofNetworks.get(network)
    if (known && isFresh(known) && known.bytes < config.anonymousNetworkStorageBytes) return known
    // Those who come while it is asked for go by the sum that was.
    if (known) known.at = clock.now()
    const sum = { bytes: await anonymousBytes(tx, new Date(clock.now()), network), at: clock.now() }
    const [oldest] = ofNetworks.keys()
    if (oldest !== undefined && ofNetworks.size >= MAX_REMEMBERED_NETWORKS) ofNetworks.delete(oldest)
    ofNetworks.set(network, sum)
    return sum
  }

  return {
    networkOf: (ip) => secrets.sign('anonymous-network', limitKeyOfIp(ip)),
    async requireRoom(tx, network, bytes) {
      const sum = await sumOf(tx, network)
      if (sum.bytes >= config.anonymousNetworkStorageBytes)
        throw errors.rateLimited(
          RETRY_SECONDS,
          'Your network stores as much without an account as it may. Sign in to publish more.',
        )
      sum.bytes += bytes
      if ((await totalBytes(tx)) >= config.anonymousStorageBytes)
        throw errors.unavailable('There is no room for more drops without an account right now. Sign in to publish.')
    },
  }
}
