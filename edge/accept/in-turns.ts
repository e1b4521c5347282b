/**
 * What may come due for hundreds of connections at once, such as their beginning or their end: a few are handled per turn of
 * the event loop, and others are answered in between.
 */

/** Ending a connection takes a fifth of a millisecond, beginning one half of one; on slow processors twice as long. */
const PER_TURN = 10

/** Returns how to add one; each is handled soon, in the order in which they came. */
export function inTurns<Item>(handle: (item: Item) => void): (item: Item) => void {
  let waiting: Item[] = []
  function proceed(): void {
    const due = waiting.slice(0, PER_TURN)
    waiting = waiting.slice(PER_TURN)
    if (waiting.length > 0) setImmediate(proceed)
    for (const item of due) handle(item)
  }
  return (item) => {
    if (waiting.length === 0) setImmediate(proceed)
    waiting.push(item)
  }
}
