/** What anonymous drops may store, all together and from one network: they cost nothing to make. */
import type { Clock } from '../../../shared/running/clock.ts'
import { errors } from '../../../shared/contracts/errors.ts'
import { limitKeyOfIp } from '../../../shared/http/ip.ts'
import type { Secrets } from '../../../shared/secrets/secrets.ts'
import type { ControlConfig } from '../../ground/config.ts'
import type { Sql } from '../../ground/database/sql.ts'
import { anonymousBytes } from './queries.ts'

/** The sum over all drops is asked for this often; what comes in between is far below the bound. */
const TOTAL_FRESH_MS = 10_000
/** Drops expire after days, so an hour is soon enough. */
const RETRY_SECONDS = 3600

export interface AnonymousStorage {
  /** Stands for a network in the database; an address must not be kept there. */
  networkOf(ip: string): string
  /** Throws when there is no room for another drop: rate_limited for a network, unavailable for all. */
  requireRoom(tx: Sql, network: string): Promise<void>
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
  let total = { bytes: 0, at: -Infinity }

  async function totalBytes(tx: Sql): Promise<number> {
    if (clock.now() - total.at > TOTAL_FRESH_MS)
      total = { bytes: await anonymousBytes(tx, new Date(clock.now())), at: clock.now() }
    return total.bytes
  }

  return {
    networkOf: (ip) => secrets.sign('anonymous-network', limitKeyOfIp(ip)),
    async requireRoom(tx, network) {
      if ((await anonymousBytes(tx, new Date(clock.now()), network)) >= config.anonymousNetworkStorageBytes)
        throw errors.rateLimited(
          RETRY_SECONDS,
          'Your network stores as much without an account as it may. Sign in to publish more.',
        )
      if ((await totalBytes(tx)) >= config.anonymousStorageBytes)
        throw errors.unavailable('There is no room for more drops without an account right now. Sign in to publish.')
    },
  }
}
