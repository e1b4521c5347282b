/** How far a run is: one line of a terminal that is written again and again, or a plain line every few seconds without one. */

/** A log is read later: a line every five seconds says enough. */
const PLAIN_EVERY_MS = 5000

export interface Progress {
  /** The last word counts; not every one is shown. */
  show(text: string): void
  /** Takes the line away, so that something else can be written. */
  clear(): void
}

interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export function createProgress(screen: Screen = process.stderr, now: () => number = () => performance.now()): Progress {
  let shownAt = -Infinity
  let width = 0
  const overwrite = (text: string): void => {
    // Without escape sequences: blanks take the rest of the old line away.
    screen.write(`\r${text.padEnd(width)}${text === '' ? '\r' : ''}`)
    width = text.length
  }
  if (screen.isTTY)
    return {
      show: (text) => overwrite(text.slice(0, (screen.columns ?? 80) - 1)),
      clear: () => width > 0 && overwrite(''),
    } as Progress
  return {
    show(text) {
      if (now() - shownAt < PLAIN_EVERY_MS) return
      shownAt = now()
      screen.write(`${text}\n`)
    },
    clear() {},
  }
}
