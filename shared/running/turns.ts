/**
 * Work of which only so much may run at once, first come, first served. Where callers compete with each other for places,
 * shares.ts divides them fairly instead.
 */
export interface Turns {
  /** Runs the work when there is a place, and passes on its result or failure. */
  take<Value>(work: () => Promise<Value>): Promise<Value>
  /** Resolves when there is a place, with the function that gives it back; the holder calls it once. */
  enter(): Promise<() => void>
  /** How many wait for a place. */
  readonly waiting: number
}

export function createTurns(width: number): Turns {
  const waiting: (() => void)[] = []
  let free = width

  /** The place is handed over, not freed and taken again: no other caller can slip in between. */
  function leave(): void {
    const next = waiting.shift()
    if (next) next()
    else free++
  }

  async function enter(): Promise<() => void> {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    return leave
  }

  return {
    enter,
    async take(work) {
      await enter()
      try {
        return await work()
      } finally {
        leave()
      }
    },
    get waiting() {
      return waiting.length
    },
  }
}

export interface BoundedWork {
  /** Resolves once the work has begun, not when it is done. Throws the first failure: nothing new begins after it. */
  begin(work: () => Promise<void>): Promise<void>
  /** Resolves when everything is done; throws the first failure. */
  end(): Promise<void>
}

/** Runs work that arrives one by one, such as the parts of a form: at most `width` of it at a time. */
export function createBoundedWork(width: number): BoundedWork {
  const turns = createTurns(width)
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []

  async function run(work: () => Promise<void>, leave: () => void): Promise<void> {
    try {
      await work()
    } catch (error) {
      failures.push(error)
    } finally {
      leave()
    }
  }

  return {
    async begin(work) {
      const leave = await turns.enter()
      if (failures.length > 0) {
        leave()
        throw failures[0]
      }
      const one = run(work, leave).finally(() => running.delete(one))
      running.add(one)
    },
    async end() {
      await Promise.all(running)
      if (failures.length > 0) throw failures[0]
    },
  }
}

/**
 * Does the work for every item, `width` at a time. Results are in the order of the items. After a failure nothing new
 * begins, and the first failure is thrown when the rest has ended.
 */
export async function inParallel<Item, Result>(
  items: Iterable<Item>,
  width: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  // One piece of work, as a page alone has it, needs no turns.
  if (Array.isArray(items) && items.length <= 1)
    return Promise.all((items as readonly Item[]).map((item) => work(item)))
  const bounded = createBoundedWork(width)
  const results: Result[] = []
  let index = 0
  try {
    for (const item of items) {
      const place = index++
      await bounded.begin(async () => {
        results[place] = await work(item)
      })
    }
  } finally {
    await bounded.end()
  }
  return results
}
