/**
 * What escaped every try of one request must not end the requests of all others: it is logged with the request it
 * belongs to, and the process goes on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { withoutToken } from '../../../shared/contracts/visit-desk.ts'
import { before } from '../../../shared/values/before.ts'
import type { Log } from '../../../shared/running/log.ts'
import type { Arrival } from '../../context.ts'

const arrivals = new AsyncLocalStorage<Arrival>()

/** For work that goes on after the walk has returned; keeping track costs a third of a microsecond. */
export function asPartOf<Result>(arrival: Arrival, work: () => Result): Result {
  return arrivals.run(arrival, work)
}

export function surviveStrayErrors(log: Log): void {
  process.on('unhandledRejection', (error) => {
    log.error({ err: error, request: currentArrival() }, 'an unhandled rejection')
  })
  process.on('uncaughtException', (error) => {
    log.error({ err: error, request: currentArrival() }, 'an uncaught exception')
  })
}

/** Without the query, which may hold a secret. */
function currentArrival(): { method: string; host: string; path: string } | undefined {
  const arrival = arrivals.getStore()
  return arrival && { method: arrival.method, host: arrival.host, path: pathOf(arrival.target) }
}

const MAX_LOGGED_CHARS = 500

/** What of a target may stand in a log: queries hold tokens and search terms. */
export function pathOf(target: string): string {
  return withoutToken(before(target, '?')).slice(0, MAX_LOGGED_CHARS)
}
