/**
 * Bodies that are read whole lie in memory until their request is answered. All together, and those of one network, have a
 * bound: a caller over it comes back in a moment, and the process keeps its memory. Of one network's requests the one that
 * began first goes first: large ones that come at once would otherwise each take a part of the room, and none would be whole.
 */
import { errors } from '../../../../shared/contracts/errors.ts'

const MAX_HELD_BYTES = 160_000_000
/** Twice the largest that is read whole, a message of 32 MB: a client may send one while the answer to its last goes out. */
const MAX_HELD_BYTES_PER_CALLER = 64_000_000

export interface HeldBodies {
  /** What one request holds; throws 503 when it is too much. */
  open(caller: string, reading: Reading): HeldBody
}

/** How a request is told that its room went to one that began before it. */
export interface Reading {
  isOver(): boolean
  stop(reason: Error): void
}

export interface HeldBody {
  /** Counts bytes that are held; a negative number gives them back. Who is refused once holds nothing any more. */
  add(bytes: number): void
  /** The request is answered. */
  release(): void
}

interface Holder {
  readonly reading: Reading
  bytes: number
}

interface Caller {
  bytes: number
  /** In the order in which they began. */
  readonly holders: Set<Holder>
}

export function createHeldBodies(
  limits: { total: number; perCaller: number } = { total: MAX_HELD_BYTES, perCaller: MAX_HELD_BYTES_PER_CALLER },
): HeldBodies {
  const callers = new Map<string, Caller>()
  let total = 0

  function callerOf(name: string): Caller {
    const caller = callers.get(name) ?? { bytes: 0, holders: new Set() }
    callers.set(name, caller)
    return caller
  }

  return {
    open(name, reading) {
      const caller = callerOf(name)
      const own: Holder = { reading, bytes: 0 }
      caller.holders.add(own)

      function take(holder: Holder, bytes: number): void {
        holder.bytes += bytes
        caller.bytes += bytes
        total += bytes
      }

      function leave(holder: Holder): void {
        if (!caller.holders.delete(holder)) return
        take(holder, -holder.bytes)
        if (caller.holders.size === 0) callers.delete(name)
      }

      return {
        add(bytes) {
          const isIn = caller.holders.has(own)
          const hasRoom = isIn && total + bytes <= limits.total
          const giving = hasRoom ? givingWay(caller, own, caller.bytes + bytes - limits.perCaller) : undefined
          if (!giving) {
            // What it held is free at once: until its answer is out, no other one shall give way for it.
            leave(own)
            throw tooMuchAtOnce()
          }
          for (const holder of giving) {
            leave(holder)
            holder.reading.stop(tooMuchAtOnce())
          }
          take(own, bytes)
        },
        release: () => leave(own),
      }
    },
  }
}

/**
 * Chooses who gives way: the largest that began later and are still being read, the youngest of equals first; undefined
 * when even all of them would not free enough.
 */
function givingWay({ holders }: Caller, own: Holder, excess: number): readonly Holder[] | undefined {
  if (excess <= 0) return []
  const order = [...holders]
  const later = order.slice(order.indexOf(own) + 1).filter(({ reading }) => !reading.isOver())
  const giving: Holder[] = []
  for (const holder of later.toReversed().toSorted((a, b) => b.bytes - a.bytes)) {
    giving.push(holder)
    excess -= holder.bytes
    if (excess <= 0) return giving
  }
  return undefined
}

function tooMuchAtOnce(): Error {
  return errors.unavailable('Too much is being sent at once. Try again in a moment.')
}
