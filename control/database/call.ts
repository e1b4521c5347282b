/**
 * One request's stay in the database. A caller who was told that Postgres is away must not find, once it is back, that
 * the change was made after all: it could undo what he has done meanwhile. So nothing of a call commits after that.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Call {
  givenUp: boolean
  /** Hosts whose routes it has changed: what its acknowledgement is about. */
  readonly changedHosts: Set<string>
}

export function newCall(): Call {
  return { givenUp: false, changedHosts: new Set() }
}

const calls = new AsyncLocalStorage<Call | undefined>()

/** Does the work, and whatever it awaits, as part of this call; as part of none where it serves everybody. */
export function runAs<Result>(call: Call | undefined, work: () => Result): Result {
  return calls.run(call, work)
}

/** The call that this code works for; jobs work for none. */
export function currentCall(): Call | undefined {
  return calls.getStore()
}

export class GivenUp extends Error {
  constructor() {
    super('the caller was told that Postgres is away; nothing is changed for him any more')
  }
}
