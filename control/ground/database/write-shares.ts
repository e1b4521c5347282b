/**
 * The pool of connections is shared: transactions of one network, or for one organisation, hold only a part of it, so that
 * a hundred uploads that wait for the lock of one drop do not hold up everyone else's sign-in. Who waits too long hears
 * 503. Jobs work for everyone and do not wait here.
 */
import { errors } from '../../../shared/contracts/errors.ts'
import { patiently } from '../../../shared/settings/patience.ts'
import { createShares, type Shares, type ShareLimits } from '../../../shared/running/shares.ts'
import type { Call } from './call.ts'

/** Connections that are left to jobs, to mails, and to queries without a transaction. */
const RESERVED_CONNECTIONS = 4
const WAIT_MS = patiently(5000)

export function writeShareLimits(connections: number): ShareLimits {
  const places = Math.max(1, connections - RESERVED_CONNECTIONS)
  return { places, placesPerCaller: Math.ceil(places / 2), waiting: 1000, waitingPerCaller: 100, waitMs: WAIT_MS }
}

export interface WriteShares {
  /** Does the work once both the call's network and its organisation have a place. */
  during<Result>(call: Call | undefined, work: () => Promise<Result>): Promise<Result>
}

export function createWriteShares(limits: ShareLimits): WriteShares {
  // The organisation first, and without a total: callers that wait there hold nothing that others need.
  const organisations = createShares({ ...limits, places: Number.POSITIVE_INFINITY })
  const networks = createShares(limits)
  return {
    async during(call, work) {
      if (call === undefined || call.hasPlace) return work()
      call.hasPlace = true
      const held: (() => void)[] = []
      try {
        if (call.organisation !== undefined) held.push(await place(organisations, call.organisation))
        if (call.network !== undefined) held.push(await place(networks, call.network))
        return await work()
      } finally {
        call.hasPlace = false
        for (const leave of held) leave()
      }
    },
  }
}

function place(shares: Shares, caller: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    // `leaveNow` is looked up when it is called, because `enter` gives a free place before it returns how to leave it.
    const leave = (): void => leaveNow()
    const leaveNow = shares.enter(
      caller,
      () => resolve(leave),
      () => reject(errors.unavailable('Too many changes wait for their turn. Try again in a moment.')),
    )
  })
}
