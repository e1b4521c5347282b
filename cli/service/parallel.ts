/** Does the work for every item, `width` at a time. After a failure nothing new is begun, and the first one is thrown. */
export async function inParallel<Item>(
  items: Iterable<Item>,
  width: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]()
  const failures: unknown[] = []
  async function runner(): Promise<void> {
    while (failures.length === 0) {
      const next = iterator.next()
      if (next.done) return
      try {
        await work(next.value)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: width }, runner))
  if (failures.length > 0) throw failures[0]
}
