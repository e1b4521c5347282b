/**
 * What changed in a text, line by line. Short texts that have little in common are shown one after the other, of long ones
 * no reader would find the change. The steps are counted, and more of them than a budget are not taken.
 */

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** More differences than this are no longer read one by one. */
const MAX_EDITS = 400
/** Lines of both texts that are shown one after the other. */
const MAX_LINES_APART = 10_000
/** An honest file of thousands of lines with hundreds of changes takes a tenth of it. A step takes some nanoseconds. */
export const MAX_DIFF_STEPS = 2_000_000

/** Every line of both texts, in order; undefined where they differ too much to be compared. */
export function diffLines(before: string, after: string, maxSteps = MAX_DIFF_STEPS): DiffLine[] | undefined {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const [gone, come] = [old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)]
  const edit = shortestEdit(gone, come, maxSteps)
  if (!edit && gone.length + come.length > Math.min(maxSteps, MAX_LINES_APART)) return undefined
  return [
    ...marked('same', old.slice(0, start)),
    ...(edit ?? [...marked('removed', gone), ...marked('added', come)]),
    ...marked('same', old.slice(old.length - end)),
  ]
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

const marked = (kind: DiffLine['kind'], lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind, text }))

/** The same number for the same line, so that lines are compared in one step however long they are. */
function numbered(lines: readonly string[], numbers: Map<string, number>): Int32Array {
  return Int32Array.from(lines, (line) => {
    const known = numbers.get(line) ?? numbers.size
    numbers.set(line, known)
    return known
  })
}

/** Myers' greedy algorithm ("An O(ND) Difference Algorithm", 1986); undefined beyond MAX_EDITS or the budget. */
function shortestEdit(old: readonly string[], fresh: readonly string[], maxSteps: number): DiffLine[] | undefined {
  const numbers = new Map<string, number>()
  const [before, after] = [numbered(old, numbers), numbered(fresh, numbers)]
  // furthest[middle + k]: how far into `old` the diagonal k = x − y has come with the edits so far.
  const middle = MAX_EDITS + 1
  const furthest = new Int32Array(2 * middle + 1)
  const history: Int32Array[] = []
  let steps = 0
  for (let edits = 0; edits <= MAX_EDITS; edits++) {
    history.push(furthest.slice())
    for (let k = -edits; k <= edits; k += 2) {
      const from = startOf(furthest, middle, k, edits)
      let x = from
      while (x < before.length && x - k < after.length && before[x] === after[x - k]) x++
      furthest[middle + k] = x
      if (x >= before.length && x - k >= after.length) return walkBack(old, fresh, history, middle)
      steps += 1 + x - from
      if (steps > maxSteps) return undefined
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
