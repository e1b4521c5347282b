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

/** Results in order. After a failure nothing new is started, and it is thrown when the rest has ended. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const failures: unknown[] = []
  const waiting = items.entries()
  async function runner(): Promise<void> {
    // All runners take from the same list.
    for (const [index, item] of waiting) {
      if (failures.length > 0) return
      try {
        results[index] = await work(item)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, runner))
  if (failures.length > 0) throw failures[0]
  return results
}

export interface BoundedWork {
  /** Resolves once the work has begun, not when it is done. Throws the first failure: nothing new begins after it. */
  begin(work: () => Promise<void>): Promise<void>
  /** Resolves when everything is done; throws the first failure. */
  end(): Promise<void>
}

/** For work that arrives one by one, such as the parts of a form: at most `width` of it at a time. */
export function createBoundedWork(width: number): BoundedWork {
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []
  return {
    async begin(work) {
      if (running.size >= width) await Promise.race(running)
      if (failures.length > 0) throw failures[0]
      const one = work()
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(one))
      running.add(one)
    },
    async end() {
      await Promise.all(running)
      if (failures.length > 0) throw failures[0]
    },
  }
}
