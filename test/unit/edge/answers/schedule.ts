/**
 * What one visitor asks for, how the answers come about, and how the visitor reads them: generated from a seed. Flaws of
 * sources, stalls, cancelled streams and reset connections stand at any byte.
 */

/** A visit: one connection with its requests. */
export interface Schedule {
  readonly seed: number
  readonly protocol: Protocol
  /** The worker's held bytes from which on room is scarce. */
  readonly scarceFrom: number
  readonly answers: readonly PlannedAnswer[]
  readonly reader: Reader
}

export type Protocol = 'HTTP/1.1' | 'HTTP/2'

export interface PlannedAnswer {
  readonly source: 'memory' | 'file' | 'relay' | 'stream'
  /** Where its body stands in CONTENT, and how long it is. */
  readonly start: number
  readonly size: number
  readonly isAnnounced: boolean
  /** Sizes of the chunks of a source, used again and again, and turns of the event loop before each. */
  readonly chunks: readonly number[]
  readonly pauses: readonly number[]
  readonly flaw: Flaw | undefined
}

/** What goes wrong with a source after so many bytes. */
export interface Flaw {
  readonly kind: 'error' | 'close' | 'short' | 'long'
  readonly at: number
}

export interface Reader {
  /** HTTP/1.1: all requests at once, or each after the answer before. */
  readonly isPipelined: boolean
  /** Turns of the event loop before the first byte is read. */
  readonly lateTurns: number
  /** A pause of so many turns after so many bytes, again and again. */
  readonly pauseAfter: number
  readonly pauseTurns: number
  /** HTTP/2: the window of each stream. */
  readonly windowBytes: number
  /** The visitor resets the connection after so many bytes. */
  readonly resetAt: number | undefined
  /** HTTP/2: the visitor cancels this stream after so many bytes. */
  readonly cancels: { readonly index: number; readonly at: number } | undefined
  /** The visitor stops reading until the edge has given them up. */
  readonly isAbandoning: boolean
  /** HTTP/1.1: the connection is to end after this request, which says so or is of HTTP/1.0. */
  readonly closing: { readonly index: number; readonly isHttp10: boolean } | undefined
}

const MAX_ANSWERS = 8
/** More would take long, and show nothing new. */
const MAX_CHUNKS = 30
/** Around the pieces, the room of a connection, a TLS record and a kernel's buffer. */
const SIZES = [0, 1, 1023, 1024, 1025, 8191, 8192, 8193, 16_384, 16_385, 24_577, 65_536, 131_073, 300_000, 524_289]
export const CONTENT_BYTES = 1_200_000
export const CONTENT: Buffer = contentOf(CONTENT_BYTES)

export function scheduleOf(seed: number, protocol: Protocol): Schedule {
  const random = createRandom(seed)
  const count = 1 + random.below(MAX_ANSWERS)
  // Where many are wrong, the first of them ends everything: mostly one is, or none.
  const flawed = random.chance(0.4) ? random.below(count) : -1
  const answers = Array.from({ length: count }, (_, index) => answerOf(random, index === flawed))
  const total = answers.reduce((sum, { size }) => sum + size, 0)
  const isAbandoning = random.chance(0.02)
  const schedule = {
    seed,
    protocol,
    scarceFrom: random.pick([0, 20_000, 16_000_000]),
    answers,
    reader: {
      isPipelined: random.chance(0.7),
      lateTurns: random.pick([0, 0, 3, 40]),
      pauseAfter: random.pick([1000, 10_000, 100_000, 1_000_000]),
      pauseTurns: random.below(5),
      windowBytes: random.pick([2000, 8192, 65_535, 1_000_000]),
      resetAt: random.chance(0.15) ? random.below(total + 500 * count) : undefined,
      cancels: random.chance(0.15) ? cancelledOf(random, answers) : undefined,
      isAbandoning,
    },
  }
  const closing = random.chance(0.4) ? closingOf(random, answers) : undefined
  return { ...schedule, reader: { ...schedule.reader, closing } }
}

function answerOf(random: Random, isFlawed: boolean): PlannedAnswer {
  const size = random.chance(0.5) ? random.pick(SIZES) : random.below(random.pick([100, 20_000, 400_000]))
  const source = random.pick(['memory', 'file', 'relay', 'stream'] as const)
  const kind = source === 'stream' ? random.pick(['error', 'close', 'short', 'long'] as const) : 'error'
  const at = size === 0 ? 0 : random.below(size)
  const leastChunk = 1 + Math.floor(size / MAX_CHUNKS)
  const isAnnounced = source === 'relay' ? random.chance(0.5) : true
  return {
    source,
    start: random.below(CONTENT_BYTES - size - 100),
    size,
    isAnnounced,
    chunks: Array.from({ length: 4 }, () => leastChunk + random.below(random.pick([300, 20_000, 150_000]))),
    pauses: Array.from({ length: 3 }, () => random.pick([0, 0, 1, 4])),
    // Bytes in memory cannot fail, nor can an empty source be cut.
    flaw: isFlawed && size > 0 && (source === 'relay' || source === 'stream') ? { kind, at } : undefined,
  }
}

function cancelledOf(random: Random, answers: readonly PlannedAnswer[]): { index: number; at: number } {
  const index = random.below(answers.length)
  return { index, at: random.below((answers[index]?.size ?? 0) + 1) }
}

/** HTTP/1.0 knows no chunks: an answer without a length would have no end that can be told from a loss. */
function closingOf(random: Random, answers: readonly PlannedAnswer[]): { index: number; isHttp10: boolean } {
  const index = random.below(answers.length)
  return { index, isHttp10: random.chance(0.5) && answers[index]?.isAnnounced === true }
}

interface Random {
  below(limit: number): number
  chance(share: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

/** mulberry32: the same numbers for the same seed, everywhere. */
function createRandom(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    chance: (share) => next() < share,
    pick: <Item>(items: readonly Item[]) => items[below(items.length)] as Item,
  }
}

/** No two places of it look alike for long. */
function contentOf(size: number): Buffer {
  const random = createRandom(1)
  return Buffer.from(Uint8Array.from({ length: size }, () => random.below(256)))
}
