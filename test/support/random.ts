/** What tests leave to chance, from one number: the same seed gives the same run. */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** An integer in [0, below). */
  below(limit: number): number
  between(low: number, high: number): number
  chance(probability: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

/** mulberry32: small, quick, and good enough to shuffle events. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    next,
    below,
    between: (low, high) => low + below(high - low + 1),
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)]!,
  }
}
