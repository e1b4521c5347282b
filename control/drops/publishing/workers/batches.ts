/** Splits the work on many files into jobs of similar size, so that several uploads take turns on the worker threads. */
const BATCH_BYTES = 4_000_000
const BATCH_FILES = 64

export function batchesOf<Item>(items: readonly Item[], sizeOf: (item: Item) => number): Item[][] {
  const batches: Item[][] = []
  let bytes = 0
  for (const item of items) {
    const current = batches.at(-1)
    const isFull = !current || current.length >= BATCH_FILES || bytes + sizeOf(item) > BATCH_BYTES
    if (isFull) {
      batches.push([item])
      bytes = sizeOf(item)
    } else {
      current.push(item)
      bytes += sizeOf(item)
    }
  }
  return batches
}
