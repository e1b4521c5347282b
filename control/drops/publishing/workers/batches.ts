/** Splits the work on many files into jobs of similar size, so that several uploads take turns on the worker threads. */
const BATCH_BYTES = 4_000_000
const BATCH_FILES = 64
/** Files of an archive in one job: each takes little to check and store, and those stored together share syncs of the disk. */
export const ARCHIVE_BATCH_FILES = 512

export function batchesOf<Item>(
  items: readonly Item[],
  sizeOf: (item: Item) => number,
  maxFiles = BATCH_FILES,
): Item[][] {
  const batches: Item[][] = []
  let bytes = 0
  for (const item of items) {
    const current = batches.at(-1)
    const isFull = !current || current.length >= maxFiles || bytes + sizeOf(item) > BATCH_BYTES
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
