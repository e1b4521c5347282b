/** Zipf's law: what is most popular is asked for twice as often as the second, three times as often as the third, … */

/** Draws ranks from 0 on. Rank r is drawn in proportion to 1/(r + 1), by the inverse of the law. */
export function createZipf(count: number, random: () => number): () => number {
  const total = Math.log(count + 1)
  return () => Math.min(count - 1, Math.floor(Math.exp(random() * total)) - 1)
}
