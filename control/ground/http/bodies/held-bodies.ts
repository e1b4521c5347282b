/**
 * Bodies that are read whole lie in memory until their request is answered. All together, and those of one network, have a
 * bound: a caller over it comes back in a moment, and the process keeps its memory.
 */
import { errors } from '../../../../shared/errors.ts'

const MAX_HELD_BYTES = 160_000_000
/** Twice the largest that is read whole, a message of 32 MB: a client may send one while the answer to its last goes out. */
const MAX_HELD_BYTES_PER_CALLER = 64_000_000

export interface HeldBodies {
  /** What one request holds; throws 503 when it is too much. */
  open(caller: string): HeldBody
}

export interface HeldBody {
  /** Fewer than none are given back. */
  add(bytes: number): void
  /** The request is answered. */
  release(): void
}

export function createHeldBodies(
  limits: { total: number; perCaller: number } = { total: MAX_HELD_BYTES, perCaller: MAX_HELD_BYTES_PER_CALLER },
): HeldBodies {
  const callers = new Map<string, number>()
  let total = 0

  function move(caller: string, bytes: number): void {
    const held = (callers.get(caller) ?? 0) + bytes
    if (held === 0) callers.delete(caller)
    else callers.set(caller, held)
    total += bytes
  }

  return {
    open(caller) {
      let own = 0
      return {
        add(bytes) {
          if (total + bytes > limits.total || (callers.get(caller) ?? 0) + bytes > limits.perCaller)
            throw errors.unavailable('Too much is being sent at once. Try again in a moment.')
          own += bytes
          move(caller, bytes)
        },
        release() {
          move(caller, -own)
          own = 0
        },
      }
    },
  }
}
