/**
 * How many uses lie within the last window, in constant space: those of the running window, and those of the one before
 * it weighted with the part of it that still lies within reach. Two windows of 60 at 15 minutes past the hour:
 * previous 60 × 3/4 + current 10 = 55. A refused use does not count, so that waiting always helps.
 */
export interface Limit {
  readonly points: number
  readonly windowSeconds: number
}

export interface Counts {
  /** Number of the running window since the epoch. */
  readonly window: number
  readonly current: number
  readonly previous: number
}

const windowMsOf = (limit: Limit): number => limit.windowSeconds * 1000

/** The same counts, seen from `now`. */
export function countsAt(known: Counts | undefined, now: number, limit: Limit): Counts {
  const window = Math.floor(now / windowMsOf(limit))
  if (known?.window === window) return known
  return { window, current: 0, previous: known?.window === window - 1 ? known.current : 0 }
}

/** In whole milliseconds and products, not in fractions: a caller that waits exactly as long as told must find room. */
export function hasRoom({ window, current, previous }: Counts, now: number, limit: Limit): boolean {
  const windowMs = windowMsOf(limit)
  const withinReachMs = (window + 1) * windowMs - now
  return previous * withinReachMs <= (limit.points - current - 1) * windowMs
}

/** When there will be room again if none is used, in milliseconds from `now`. */
export function waitForRoomMs({ window, current, previous }: Counts, now: number, limit: Limit): number {
  const windowMs = windowMsOf(limit)
  // Room comes in this window once enough of the previous one is out of reach, else in the next, when this is the previous.
  const roomAt =
    current + 1 <= limit.points
      ? window * windowMs + outOfReachMs(previous, limit.points - current - 1, windowMs)
      : (window + 1) * windowMs + outOfReachMs(current, limit.points - 1, windowMs)
  return Math.max(0, roomAt - now)
}

/** How much of a window must have passed until no more than `room` of its uses count. */
function outOfReachMs(uses: number, room: number, windowMs: number): number {
  return uses <= room ? 0 : Math.ceil((windowMs * (uses - room)) / uses)
}
