/**
 * Counts what JavaScript hands to the engine: characters searched, copied, compared. The counter of blocks sees such a
 * call as one step however long it takes, so each adds the characters or elements that it reads or writes.
 *
 * Slices of strings and views of buffers copy nothing and add nothing. A regular expression adds what lies between where
 * it began and where it ended; `test/unit/regular-expressions.test.ts` shows of each that it reads no character twice.
 */
let units = 0

/** What was counted since the last call. */
export function takeUnits(): number {
  const counted = units
  units = 0
  return counted
}

// oxlint-disable-next-line typescript/no-explicit-any -- stands for the values of every method of the language
type Anything = any
type Method = (this: Anything, ...given: Anything[]) => Anything
type Cost = (self: Anything, given: Anything[], result: Anything) => number

/** How far a search looked: up to what it found, or to the end. */
const searched: Cost = (self, [what, from], result) => {
  const start = Math.max(0, Number(from) || 0)
  const end = typeof result === 'number' && result >= 0 ? result + (what?.length ?? 1) : self.length
  return Math.max(0, end - start)
}
const own: Cost = (self) => self.length
const made: Cost = (_self, _given, result) => result.length
const removed: Cost = (self, _given, result) => self.length - result.length
const compared: Cost = (_self, [what]) => what?.length ?? 1

/** Normalising sorts the marks above each letter by exchanging neighbours. */
function sortedMarks(text: string): number {
  let steps = 0
  for (const [marks] of text.matchAll(/\p{M}+/gu)) steps += marks.length ** 2 / 4
  return steps
}

const STRINGS: Readonly<Record<string, Cost>> = {
  indexOf: searched,
  includes: own,
  lastIndexOf: own,
  split: (self, [, limit], result) => (limit === undefined ? self.length : result.join('').length + result.length),
  replaceAll: own,
  toLowerCase: own,
  toUpperCase: own,
  normalize: (self) => self.length + sortedMarks(self),
  toWellFormed: own,
  isWellFormed: own,
  trim: removed,
  trimStart: removed,
  trimEnd: removed,
  repeat: made,
  padStart: made,
  padEnd: made,
  startsWith: compared,
  endsWith: compared,
  localeCompare: compared,
}
const ARRAYS: Readonly<Record<string, Cost>> = {
  indexOf: searched,
  includes: own,
  lastIndexOf: own,
  join: made,
  slice: made,
  splice: own,
  shift: own,
  unshift: own,
  concat: made,
  reverse: own,
  toReversed: own,
  sort: own,
  toSorted: own,
  flat: made,
}
const BUFFERS: Readonly<Record<string, Cost>> = {
  indexOf: searched,
  includes: own,
  lastIndexOf: own,
  toString: made,
  latin1Slice: made,
  utf8Slice: made,
  asciiSlice: made,
  copy: (_self, _given, result) => result,
  fill: own,
  set: compared,
  equals: own,
  compare: own,
}

/** Replaces the methods of the language by ones that count. Only for a process of its own. */
export function countNativeWork(): void {
  wrapAll(String.prototype, STRINGS)
  wrapAll(Array.prototype, ARRAYS)
  wrapAll(Buffer.prototype, BUFFERS)
  wrap(Buffer, 'concat', made)
  wrap(Buffer, 'from', made)
  wrap(RegExp.prototype, 'exec', matched)
  wrap(TextDecoder.prototype, 'decode', (_self, [bytes]) => bytes?.byteLength ?? 0)
  wrap(JSON, 'parse', (_self, [text]) => text.length)
  wrap(JSON, 'stringify', (_self, _given, result) => result?.length ?? 0)
  wrap(URL, 'parse', (_self, [text]) => String(text).length)
  for (const name of ['decodeURIComponent', 'encodeURIComponent', 'decodeURI', 'encodeURI'])
    wrap(globalThis, name, (_self, [text]) => String(text).length)
}

/** A search from `lastIndex`, or one at that place alone. */
function matched(self: RegExp, [text]: unknown[], result: RegExpExecArray | null): number {
  if (result) return result[0].length + (self.sticky ? 0 : result.index - startOf(self, result))
  return self.sticky ? 1 : Math.max(0, String(text).length - self.lastIndex)
}

/** Where a search began is gone when it has succeeded; the one before it ended there. */
function startOf(self: RegExp, { index }: RegExpExecArray): number {
  return self.global ? Math.min(index, starts.get(self) ?? 0) : 0
}
const starts = new WeakMap<RegExp, number>()

function wrapAll(owner: object, costs: Readonly<Record<string, Cost>>): void {
  for (const [name, cost] of Object.entries(costs)) wrap(owner, name, cost)
}

function wrap(owner: object, name: string, cost: Cost): void {
  const original = (owner as Record<string, unknown>)[name] as Method
  const counting: Method = function (...given) {
    if (this instanceof RegExp) starts.set(this, this.lastIndex)
    const result = original.apply(this, given)
    units += cost(this, given, result)
    return result
  }
  Object.defineProperty(owner, name, { value: counting, writable: true, configurable: true })
}
