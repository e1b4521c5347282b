/**
 * What waits for a place, in one queue per caller. The queues take turns; a caller holds at most `share` places at once,
 * and one who gets none for too long is given up instead of being kept waiting in silence.
 *
 *   add → waits in its caller's queue → take → holds a place → release
 *                                     ↘ onGivenUp, when the caller has held no place for `maxWaitMs`; remove
 */
export interface ShareQueue<Item> {
  add(owner: string, item: Item): void
  /** The next one whose caller may hold another place; the caller holds it from now on. */
  take(): Item | undefined
  /** False when it does not wait any more. */
  remove(owner: string, item: Item): boolean
  /** The caller has one place less. */
  release(owner: string): void
  /** All that wait, which then do no longer. */
  drain(): Item[]
  /** How many wait. */
  readonly size: number
}

interface Caller<Item> {
  readonly waiting: Item[]
  held: number
  /** Runs while the caller waits and holds nothing. */
  timer: NodeJS.Timeout | undefined
}

export function createShareQueue<Item>(options: {
  share: number
  maxWaitMs: number
  onGivenUp(item: Item): void
}): ShareQueue<Item> {
  /** In the order of their turns: a served caller goes to the end. */
  const callers = new Map<string, Caller<Item>>()
  let size = 0

  function settle(owner: string, caller: Caller<Item>): void {
    clearTimeout(caller.timer)
    caller.timer = undefined
    if (caller.waiting.length === 0 && caller.held === 0) callers.delete(owner)
    else if (caller.held === 0) caller.timer = setTimeout(() => giveUp(owner, caller), options.maxWaitMs).unref()
  }

  function giveUp(owner: string, caller: Caller<Item>): void {
    const items = caller.waiting.splice(0)
    size -= items.length
    settle(owner, caller)
    for (const item of items) options.onGivenUp(item)
  }

  return {
    add(owner, item) {
      const caller = callers.get(owner) ?? { waiting: [], held: 0, timer: undefined }
      callers.set(owner, caller)
      caller.waiting.push(item)
      size++
      // The clock of a caller who waits already goes on: a newer job must not make an older one wait longer.
      if (caller.timer === undefined) settle(owner, caller)
    },
    take() {
      for (const [owner, caller] of callers) {
        const item = caller.held < options.share ? caller.waiting.shift() : undefined
        if (item === undefined) continue
        size--
        caller.held++
        callers.delete(owner)
        callers.set(owner, caller)
        settle(owner, caller)
        return item
      }
      return undefined
    },
    remove(owner, item) {
      const caller = callers.get(owner)
      const position = caller?.waiting.indexOf(item) ?? -1
      if (!caller || position < 0) return false
      caller.waiting.splice(position, 1)
      size--
      // As in `add`: the clock of what still waits goes on.
      if (caller.waiting.length === 0) settle(owner, caller)
      return true
    },
    release(owner) {
      const caller = callers.get(owner)
      if (!caller) return
      caller.held--
      settle(owner, caller)
    },
    drain() {
      const items = [...callers.values()].flatMap((caller) => caller.waiting.splice(0))
      size = 0
      for (const [owner, caller] of callers) settle(owner, caller)
      return items
    },
    get size() {
      return size
    },
  }
}
