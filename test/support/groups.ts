/** Many things to do, a few at a time. */
export async function inGroups<Item>(
  items: readonly Item[],
  size: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = items.values()
  await Promise.all(
    Array.from({ length: size }, async () => {
      for (const item of waiting) await work(item)
    }),
  )
}
