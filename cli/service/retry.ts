/**
 * Waiting out a broken line or a service that restarts. A call is made again when that cannot do harm:
 *
 *   it never arrived                                 always
 *   503, 429: the service says that it did nothing   always, after the pause that it asks for
 *   it may have arrived                              when it may be repeated
 *
 * Gives up two minutes after the last success; after ten seconds when the address never answered.
 */
import { ApiFailure } from './api-failure.ts'
import { Unreachable } from './http-client.ts'

export const PATIENCE_MS = 120_000
const PATIENCE_WITH_STRANGERS_MS = 10_000
const FIRST_PAUSE_MS = 300
const MAX_PAUSE_MS = 8000

export interface Retry {
  /** Does the work until it succeeds, fails for good, or patience ends. */
  run<Result>(work: () => Promise<Result>, options: { repeatable: boolean }): Promise<Result>
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
  let lastSuccess: number | undefined
  let troubled = false
  return {
    async run(work, { repeatable }) {
      const begun = now()
      for (let attempt = 0; ; attempt++) {
        try {
          const result = await work()
          lastSuccess = now()
          if (troubled) onRecovery()
          troubled = false
          return result
        } catch (error) {
          if (!mayRepeat(error, repeatable)) throw error
          const patience =
            lastSuccess === undefined && error instanceof Unreachable && error.refused
              ? PATIENCE_WITH_STRANGERS_MS
              : PATIENCE_MS
          const left = Math.max(begun, lastSuccess ?? 0) + patience - now()
          const wait = pauseAfter(attempt, error)
          if (wait > left) throw error
          if (!troubled) onTrouble(`${(error as Error).message} Trying again for ${wordsFor(patience)}.`)
          troubled = true
          await pause(wait)
        }
      }
    },
  }
}

function wordsFor(ms: number): string {
  return ms === PATIENCE_MS ? 'two minutes' : `${ms / 1000} seconds`
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
