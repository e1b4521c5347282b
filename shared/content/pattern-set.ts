/**
 * Many path patterns asked at once, in one pass over the path. The cost depends on how many patterns the path agrees with
 * for a while, hardly on how many there are: literal paths are one look-up; the others form a tree of literal runs with
 * placeholders between them, and at each node a binary search finds all runs that the path continues with. What stands
 * behind a splat is found in the same way from the path's end.
 *
 *   /blog/:year/:slug     '/blog/' ─▶ (:year) ─▶ '/' ─▶ (:slug) ─▶ exact
 *   /blog/:year/*                            ─▶ ''  ─▶ subtree
 */
import { endOfSegment, isEnd, matchTail, type PathPattern, type PatternEnd, type PatternForm } from './path-pattern.ts'

export interface PatternSet {
  /** Positions of the patterns that match, ascending: the order of the file. */
  matching(path: string): readonly number[]
  readonly size: number
}

type Splat = Extract<PatternEnd, { kind: 'splat' }>

/** What may follow a literal run: patterns that end here, and the node behind a placeholder. */
interface Edge {
  exact: number[]
  subtree: number[]
  /** Anything may follow. */
  open: number[]
  /** Patterns by the last run of what must follow, read backwards. */
  splats: Map<string, { readonly end: Splat; readonly pattern: number }[]>
  next: Branches
}

type Branches = Map<string, Edge>

/** The same, made ready for look-ups. */
interface Arrival extends Pick<Edge, 'exact' | 'subtree' | 'open'> {
  readonly splats: RunIndex<readonly { readonly end: Splat; readonly pattern: number }[]> | undefined
  readonly next: RunIndex<Arrival> | undefined
}

const NONE: readonly number[] = []

export function createPatternSet(patterns: readonly PathPattern[]): PatternSet {
  const literals = new Map<string, number[]>()
  const branches: Branches = new Map()
  let longestLiteral = 0
  for (const [position, { names, form }] of patterns.entries()) {
    if (names.length > 0) insert(branches, form, position)
    else {
      const text = form.first
      longestLiteral = Math.max(longestLiteral, text.length)
      orMake(literals, text, () => []).push(position)
    }
  }
  const root = toIndex(branches)
  return {
    size: patterns.length,
    matching(path) {
      // No literal is longer: the path need not be hashed.
      const isShort = path.length <= longestLiteral + 1
      const exact = isShort ? literals.get(path) : undefined
      const bare = isShort && path.length > 1 && path.endsWith('/') ? literals.get(path.slice(0, -1)) : undefined
      if (root === undefined && bare === undefined) return exact ?? NONE
      const found = [...(exact ?? NONE), ...(bare ?? NONE)]
      if (root !== undefined) new Walk(path, found).enter(root, 0)
      return found.length > 1 ? ascending(found) : found
    },
  }
}

function insert(branches: Branches, { first, rest, end }: PatternForm, pattern: number): void {
  let edge = orMake(branches, first, newEdge)
  for (const run of rest) edge = orMake(edge.next, run, newEdge)
  switch (end.kind) {
    case 'exact':
      return void edge.exact.push(pattern)
    case 'subtree':
      return void edge.subtree.push(pattern)
    case 'splat':
      if (end.tail.before.length === 0 && end.tail.last === '') return void edge.open.push(pattern)
      return void orMake(edge.splats, backwards(end.tail.last), () => []).push({ end, pattern })
    default:
      return end satisfies never
  }
}

function newEdge(): Edge {
  return { exact: [], subtree: [], open: [], splats: new Map(), next: new Map() }
}

function orMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  let value = map.get(key)
  if (value === undefined) map.set(key, (value = make()))
  return value
}

function toIndex(branches: Branches): RunIndex<Arrival> | undefined {
  if (branches.size === 0) return undefined
  const arrivals = new Map<string, Arrival>()
  for (const [run, { exact, subtree, open, splats, next }] of branches) {
    const splatIndex = splats.size === 0 ? undefined : new RunIndex(splats)
    arrivals.set(run, { exact, subtree, open, splats: splatIndex, next: toIndex(next) })
  }
  return new RunIndex(arrivals)
}

interface Run<Value> {
  readonly text: string
  readonly value: Value
  /** The longest other run that this one begins with. */
  readonly shorter: Run<Value> | undefined
}

/** Finds all of a set of strings that a text has at a position. */
class RunIndex<Value> {
  /** Sorted by UTF-16 code units. */
  readonly #runs: readonly Run<Value>[]
  readonly longest: number

  constructor(values: ReadonlyMap<string, Value>) {
    const runs: Run<Value>[] = []
    // Sorted, a run comes after all that it begins with: the run before it, or one that this begins with in turn.
    let shorter: Run<Value> | undefined
    for (const [text, value] of [...values].sort(([a], [b]) => (a < b ? -1 : 1))) {
      while (shorter !== undefined && !text.startsWith(shorter.text)) ({ shorter } = shorter)
      runs.push((shorter = { text, value, shorter }))
    }
    this.#runs = runs
    this.longest = Math.max(...runs.map(({ text }) => text.length))
  }

  /** All runs that the text continues with are beginnings of the last one that does not sort after it. */
  each(text: string, position: number, use: (value: Value, length: number) => void): void {
    const runs = this.#runs
    let run = runs.length === 1 ? runs[0] : this.#lastNotAfter(text.slice(position, position + this.longest))
    if (run === undefined) return
    const common = commonLength(run.text, text, position)
    for (; run !== undefined; run = run.shorter) {
      const { length } = run.text
      if (length <= common) use(run.value, length)
    }
  }

  #lastNotAfter(text: string): Run<Value> | undefined {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#runs[middle]!.text <= text) low = middle + 1
      else high = middle
    }
    return low === 0 ? undefined : this.#runs[low - 1]
  }
}

function commonLength(run: string, text: string, position: number): number {
  const length = Math.min(run.length, text.length - position)
  let index = 0
  while (index < length && run.charCodeAt(index) === text.charCodeAt(position + index)) index++
  return index
}

/** One path on its way through the tree. */
class Walk {
  readonly #path: string
  readonly #found: number[]
  #slashes: readonly number[] | undefined

  constructor(path: string, found: number[]) {
    this.#path = path
    this.#found = found
  }

  enter(branches: RunIndex<Arrival>, position: number): void {
    branches.each(this.#path, position, (arrival, length) => this.#arrive(arrival, position + length))
  }

  #arrive({ exact, subtree, open, splats, next }: Arrival, position: number): void {
    const path = this.#path
    const found = this.#found
    if (exact.length > 0 && isEnd(path, position)) found.push(...exact)
    if (subtree.length > 0 && (position === path.length || path[position] === '/')) found.push(...subtree)
    if (open.length > 0) found.push(...open)
    if (splats !== undefined) this.#findSplats(splats, position)
    if (next === undefined) return
    const segmentEnd = endOfSegment(path, position)
    if (segmentEnd > position) this.enter(next, segmentEnd)
  }

  /** With a slash at the end there are two ends to look from; what both find is found twice and counted once. */
  #findSplats(splats: NonNullable<Arrival['splats']>, position: number): void {
    const path = this.#path
    const end = backwards(path.slice(Math.max(position, path.length - splats.longest - 1)))
    const use = (candidates: readonly { readonly end: Splat; readonly pattern: number }[]): void => {
      for (const candidate of candidates)
        if (matchTail(candidate.end, path, position, this.#startOfSegment)) this.#found.push(candidate.pattern)
    }
    splats.each(end, 0, use)
    if (end.startsWith('/')) splats.each(end, 1, use)
  }

  /** Answers as `lastIndexOf` would, which reads a long segment again for each pattern that asks. */
  readonly #startOfSegment = (path: string, end: number): number => {
    const slashes = (this.#slashes ??= slashesOf(path))
    let low = 0
    let high = slashes.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (slashes[middle]! < end) low = middle + 1
      else high = middle
    }
    return low === 0 ? 0 : slashes[low - 1]! + 1
  }
}

function slashesOf(path: string): number[] {
  const positions: number[] = []
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) positions.push(at)
  return positions
}

/** Reverses code units, not characters: the result is only compared, never read. */
function backwards(text: string): string {
  let reversed = ''
  for (let index = text.length - 1; index >= 0; index--) reversed += text.charAt(index)
  return reversed
}

function ascending(numbers: number[]): number[] {
  return numbers.sort((a, b) => a - b).filter((number, index) => number !== numbers[index - 1])
}
