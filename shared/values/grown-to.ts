/**
 * Options of an LRU cache with room for so many entries that grows as it is used. With `max` it takes the memory of all
 * of them at once: 11 MB for two hundred thousand that may never come.
 */
export function grownTo(entries: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 }
}
