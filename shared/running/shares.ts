/**
 * Who may have how much of something that all callers need. Places are shared, not first come first served: one caller
 * holds only a part of them, and when all are taken, callers take turns. No one waits in silence: a place comes within
 * seconds, or a refusal.
 */

export interface Shares {
  /**
   * Calls `begin` when there is a place, perhaps at once, or `refuse` when there is none in time. What it returns gives the
   * place back, or ends the wait; it must be called once.
   */
  enter(caller: string, begin: () => void, refuse: (status: 429 | 503) => void): () => void
  inUse(): number
}

export interface ShareLimits {
  readonly places: number
  readonly placesPerCaller: number
  readonly waiting: number
  /** A caller may have this many waiting beyond its places; the next one is told to come back (429). */
  readonly waitingPerCaller: number
  readonly waitMs: number
}

interface Waiter {
  readonly begin: () => void
  readonly timer: NodeJS.Timeout
}

interface Caller {
  places: number
  readonly waiting: Set<Waiter>
}

export function createShares(limits: ShareLimits): Shares {
  const callers = new Map<string, Caller>()
  /** Callers with work waiting, the one whose turn it is first. */
  const turns = new Set<Caller>()
  let places = 0
  let waiting = 0

  function hasPlace(caller: Caller): boolean {
    return places < limits.places && caller.places < limits.placesPerCaller
  }

  function begin(caller: Caller, start: () => void): void {
    caller.places += 1
    places += 1
    start()
  }

  function stopWaiting(caller: Caller, waiter: Waiter): boolean {
    if (!caller.waiting.delete(waiter)) return false
    clearTimeout(waiter.timer)
    waiting -= 1
    if (caller.waiting.size === 0) turns.delete(caller)
    return true
  }

  /** Lets the next caller in. It passes over callers that hold their whole share, and there are few of those. */
  function admitNext(): void {
    for (const caller of turns) {
      if (!hasPlace(caller)) continue
      const [waiter] = caller.waiting
      if (!waiter) continue
      turns.delete(caller)
      turns.add(caller)
      stopWaiting(caller, waiter)
      return begin(caller, waiter.begin)
    }
  }

  /** One who was refused leaves later: by then the caller may be known anew, with places that count. */
  function forget(key: string, caller: Caller): void {
    const isIdle = caller.places === 0 && caller.waiting.size === 0
    if (isIdle && callers.get(key) === caller) callers.delete(key)
  }

  return {
    enter(key, start, refuse) {
      let caller = callers.get(key)
      if (caller === undefined) callers.set(key, (caller = { places: 0, waiting: new Set() }))
      const own = caller
      const giveBack = (): void => {
        own.places -= 1
        places -= 1
        admitNext()
        forget(key, own)
      }
      if (own.waiting.size === 0 && hasPlace(own)) {
        begin(own, start)
        return giveBack
      }
      if (own.waiting.size >= limits.waitingPerCaller || waiting >= limits.waiting) {
        forget(key, own)
        refuse(own.waiting.size >= limits.waitingPerCaller ? 429 : 503)
        return () => {}
      }
      let hasBegun = false
      const late = (): void => {
        stopWaiting(own, waiter)
        forget(key, own)
        refuse(503)
      }
      const waiter: Waiter = {
        begin() {
          hasBegun = true
          start()
        },
        timer: setTimeout(late, limits.waitMs),
      }
      own.waiting.add(waiter)
      turns.add(own)
      waiting += 1
      return () => {
        if (hasBegun) return giveBack()
        stopWaiting(own, waiter)
        forget(key, own)
      }
    },
    inUse: () => places,
  }
}
