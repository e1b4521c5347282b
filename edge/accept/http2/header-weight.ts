/**
 * Lets V8 feel what the headers of HTTP/2 weigh. node:http2 makes a string outside of V8's heap of each header's value.
 * Only a full collection frees these, and they do not make V8 begin one: fifty thousand requests with addresses of 8 kB
 * left 400 MB behind. Buffers of the same size do, and nobody writes into them, so the system gives them no memory.
 */

/** Ordinary requests have less, and leave more behind in V8's own heap, which it does count. */
const ORDINARY_CHARS = 2000
/** Beyond what the allocator ever keeps for later: such a buffer comes from the system, and untouched. */
const PIECE_BYTES = 33 * 1024 * 1024
/** Held until V8 counts them as old, which it does after a few young collections. */
const MAX_PIECES = 3

export interface HeaderWeight {
  /** Names and values by turns. */
  add(rawHeaders: readonly string[]): void
}

export function createHeaderWeight(): HeaderWeight {
  const pieces: ArrayBuffer[] = []
  let chars = 0
  return {
    add(rawHeaders) {
      let own = 0
      for (const text of rawHeaders) own += text.length
      if (own <= ORDINARY_CHARS) return
      chars += own
      if (chars < PIECE_BYTES) return
      chars = 0
      if (pieces.push(new ArrayBuffer(PIECE_BYTES)) > MAX_PIECES) pieces.shift()
    },
  }
}
