/** "Did you mean …?" Pure; quadratic in MAX_NAME_CHARS, which bounds what was typed. */

/** Longer words are no slips of the finger. */
const MAX_NAME_CHARS = 64

/** The candidate that a misspelt name most likely meant; undefined when none is near. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > MAX_NAME_CHARS) return undefined
  // One slip in a short word, two in a longer one; more would be guessing.
  let best: string | undefined
  let bestDistance = name.length <= 4 ? 1.5 : 2.5
  for (const candidate of candidates) {
    if (candidate.length > MAX_NAME_CHARS) continue
    const distance = distanceBetween(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** Letters to insert, remove or replace, and neighbours to swap (optimal string alignment). */
function distanceBetween(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  let distance = b.length
  for (let row = 1; row <= a.length; row++) {
    let left = row
    let diagonal = row - 1
    const current = [left]
    for (const [index, above] of previous.slice(1).entries()) {
      let cost = Math.min(above + 1, left + 1, diagonal + (a[row - 1] === b[index] ? 0 : 1))
      const beforeSwap = before[index - 1]
      if (beforeSwap !== undefined && a[row - 1] === b[index - 1] && a[row - 2] === b[index])
        cost = Math.min(cost, beforeSwap + 1)
      current.push(cost)
      left = cost
      diagonal = above
    }
    before = previous
    previous = current
    distance = left
  }
  return distance
}
