/**
 * One request's stay in the database. A caller who was told that Postgres is away must not find, once it is back, that
 * the change was made after all: the change could undo what the caller has done meanwhile. So nothing of a call commits after that.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Call {
  givenUp: boolean
  /** For whom it is done: the network it came from, and the organisation once it is known. Shares are theirs. */
  network: string | undefined
  organisation: string | undefined
  /** Aborted when the caller goes away. Made when it is asked for: most calls never do. */
  leaving: (() => AbortSignal) | undefined
  /** It holds its share of the pool already; a transaction within another one takes no second. */
  hasPlace: boolean
}

export function newCall(): Call {
  return {
    givenUp: false,
    network: undefined,
    organisation: undefined,
    leaving: undefined,
    hasPlace: false,
  }
}

const calls = new AsyncLocalStorage<Call | undefined>()

/** Does the work, and whatever it awaits, as part of this call; as part of none where it serves everyone. */
export function runAs<Result>(call: Call | undefined, work: () => Result): Result {
  return calls.run(call, work)
}

/** The call that this code works for; jobs work for none. */
export function currentCall(): Call | undefined {
  return calls.getStore()
}

/** From here on the call is one of this network. */
export function noteNetwork(network: string): void {
  const call = currentCall()
  if (call) call.network = network
}

/** The caller may go away before the call is over. */
export function noteLeaving(leaving: () => AbortSignal): void {
  const call = currentCall()
  if (call) call.leaving = leaving
}

/** The caller has shown for whom they act. */
export function noteOrganisation(orgId: string): void {
  const call = currentCall()
  if (call) call.organisation = orgId
}

export class GivenUp extends Error {
  constructor() {
    super('the caller was told that Postgres is away; nothing is changed for him any more')
  }
}
