/**
 * Waiting out a broken line or a service that restarts. A call is made again when that cannot do harm:
 *
 *   it never arrived                                 always
 *   503, 429: the service says that it did nothing   always, after the pause that it asks for
 *   it may have arrived                              when it may be repeated
 *
 * Gives up two minutes after the trouble began; after ten seconds when the address never answered. A call that is known
 * to take long may be waited for longer: its answer stays away while the service is at it.
 */
import { ApiFailure } from './api-failure.ts'
import { Unreachable } from './http-client.ts'

export const PATIENCE_MS = 120_000
const PATIENCE_WITH_STRANGERS_MS = 10_000
const FIRST_PAUSE_MS = 300
const MAX_PAUSE_MS = 8000

export interface Retry {
  /** Does the work until it succeeds, fails for good, or patience ends. */
  run<Result>(work: () => Promise<Result>, options: RetryOptions): Promise<Result>
}

export interface RetryOptions {
  readonly repeatable: boolean
  /** Patience with an answer that stays away; PATIENCE_MS unless told otherwise. */
  readonly patienceMs?: number
}

/** Tries once: a command that a person waits for can be typed again. */
export const atOnce: Retry = { run: (work) => work() }

interface PatientDependencies {
  /** Tells that it is being tried again, once per trouble. */
  onTrouble(message: string): void
  onRecovery(): void
  readonly now?: () => number
  readonly pause?: (ms: number) => Promise<void>
}

export function createPatientRetry({
  onTrouble,
  onRecovery,
  now = Date.now,
  pause = sleep,
}: PatientDependencies): Retry {
  let hasSucceeded = false
  let troubledSince: number | undefined
  return {
    async run(work, { repeatable, patienceMs = PATIENCE_MS }) {
      for (let attempt = 0; ; attempt++) {
        try {
          const result = await work()
          hasSucceeded = true
          if (troubledSince !== undefined) onRecovery()
          troubledSince = undefined
          return result
        } catch (error) {
          if (!mayRepeat(error, repeatable)) throw error
          const patience = patienceWith(error, patienceMs, hasSucceeded)
          const since = troubledSince ?? now()
          const wait = pauseAfter(attempt, error)
          if (wait > since + patience - now()) {
            troubledSince = undefined
            throw error
          }
          if (troubledSince === undefined)
            onTrouble(`${(error as Error).message} Trying again for ${wordsFor(patience)}.`)
          troubledSince = since
          await pause(wait)
        }
      }
    },
  }
}

function patienceWith(error: unknown, patienceMs: number, hasSucceeded: boolean): number {
  if (error instanceof Unreachable && error.refused && !hasSucceeded) return PATIENCE_WITH_STRANGERS_MS
  const mayBeAtIt = error instanceof Unreachable ? error.delivered : (error as ApiFailure).status === 504
  return mayBeAtIt ? patienceMs : PATIENCE_MS
}

function wordsFor(ms: number): string {
  if (ms === PATIENCE_MS) return 'two minutes'
  return ms < 60_000 ? `${ms / 1000} seconds` : `${ms / 60_000} minutes`
}

export function mayRepeat(error: unknown, repeatable: boolean): boolean {
  if (error instanceof Unreachable) return repeatable || !error.delivered
  if (!(error instanceof ApiFailure)) return false
  if (error.status === 503 || error.status === 429) return true
  return repeatable && (error.status === 408 || error.status === 502 || error.status === 504)
}

function pauseAfter(attempt: number, error: unknown): number {
  const asked = error instanceof ApiFailure ? error.retryAfterMs : undefined
  return asked ?? Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
