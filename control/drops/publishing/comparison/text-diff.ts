/** What changed in a text, line by line. Its cost is bounded: texts that have little in common are shown one after the other. */

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** More differences than this are no longer read one by one. The work is at most so many times the lines. */
const MAX_EDITS = 400

/** Every line of both texts, in order. O((lines of both) × MAX_EDITS). */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const [gone, come] = [old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)]
  return [
    ...marked('same', old.slice(0, start)),
    ...(shortestEdit(gone, come) ?? [...marked('removed', gone), ...marked('added', come)]),
    ...marked('same', old.slice(old.length - end)),
  ]
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

const marked = (kind: DiffLine['kind'], lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind, text }))

/** Myers' greedy algorithm ("An O(ND) Difference Algorithm", 1986); undefined beyond MAX_EDITS. */
function shortestEdit(old: readonly string[], fresh: readonly string[]): DiffLine[] | undefined {
  // furthest[middle + k]: how far into `old` the diagonal k = x − y has come with the edits so far.
  const middle = MAX_EDITS + 1
  const furthest = new Int32Array(2 * middle + 1)
  const history: Int32Array[] = []
  for (let edits = 0; edits <= MAX_EDITS; edits++) {
    history.push(furthest.slice())
    for (let k = -edits; k <= edits; k += 2) {
      let x = startOf(furthest, middle, k, edits)
      while (x < old.length && x - k < fresh.length && old[x] === fresh[x - k]) x++
      furthest[middle + k] = x
      if (x >= old.length && x - k >= fresh.length) return walkBack(old, fresh, history, middle)
    }
  }
  return undefined
}

/** One edit further: down from the diagonal above, or right from the one below, whichever has come further. */
function startOf(furthest: Int32Array, middle: number, k: number, edits: number): number {
  const [below, above] = [furthest[middle + k - 1] ?? 0, furthest[middle + k + 1] ?? 0]
  return isDown(below, above, k, edits) ? above : below + 1
}

function isDown(below: number, above: number, k: number, edits: number): boolean {
  return k === -edits || (k !== edits && below < above)
}

function walkBack(
  old: readonly string[],
  fresh: readonly string[],
  history: readonly Int32Array[],
  middle: number,
): DiffLine[] {
  const lines: DiffLine[] = []
  let [x, y] = [old.length, fresh.length]
  const keep = (until: number): void => {
    for (; x > until && y > 0; x--, y--) lines.push({ kind: 'same', text: old[x - 1] ?? '' })
  }
  for (let edits = history.length - 1; edits > 0; edits--) {
    const furthest = history[edits] ?? new Int32Array()
    const k = x - y
    const [below, above] = [furthest[middle + k - 1] ?? 0, furthest[middle + k + 1] ?? 0]
    const down = isDown(below, above, k, edits)
    keep(down ? above : below + 1)
    if (down) lines.push({ kind: 'added', text: fresh[--y] ?? '' })
    else lines.push({ kind: 'removed', text: old[--x] ?? '' })
  }
  keep(0)
  return lines.toReversed()
}
