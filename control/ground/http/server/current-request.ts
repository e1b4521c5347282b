/** The request that running code works for, wherever it runs: so that a stray error can be traced to its cause. */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface RequestLabel {
  readonly method: string
  /** Without the query, which may hold a secret. */
  readonly path: string
}

const requests = new AsyncLocalStorage<RequestLabel>()

export function asPartOf<Result>(request: RequestLabel, work: () => Result): Result {
  return requests.run(request, work)
}

/** Undefined in jobs, and wherever else no caller waits. */
export function currentRequest(): RequestLabel | undefined {
  return requests.getStore()
}
