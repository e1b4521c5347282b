/** "Did you mean …?" Pure; quadratic in MAX_NAME_CHARS, which bounds what somebody typed. */

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
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      let cost = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + (isSame ? 0 : 1))
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        cost = Math.min(cost, before[column - 2]! + 1)
      current.push(cost)
    }
    before = previous
    previous = current
  }
  return previous[b.length]!
}
