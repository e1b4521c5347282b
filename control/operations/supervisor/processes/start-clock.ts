/**
 * For how long a start may be silent. A sign of progress begins the time anew, and what may take as long as it needs stops
 * the clock: ended on the way, it would only begin from the start again, for ever.
 */
export interface StartClock {
  readonly ranOut: Promise<'late'>
  /** Begins, or begins anew. */
  begin(): void
  stop(): void
}

export function createStartClock(ms: number): StartClock {
  const { promise: ranOut, resolve } = Promise.withResolvers<'late'>()
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearTimeout(timer)
  return {
    ranOut,
    stop,
    begin() {
      stop()
      timer = setTimeout(() => resolve('late'), ms)
    },
  }
}
