/**
 * Where a comment belongs after a page has changed. Pure. The order of the attempts is the decision:
 *
 * 1. the block that held the quote is unchanged and in its place            → same
 * 2. the same block stands elsewhere                                        → moved
 * 3. a block like it stands in its place, or is clearly the only one like it:
 *    the quote is in it → same or moved; other words stand there            → changed
 * 4. the quote, long enough to be no accident, is in exactly one other block → moved
 * 5. the whole page says the same in other words, block by block            → changed
 * 6. otherwise                                                              → gone
 *
 * A comment that is lost is told as gone; one on a wrong passage would mislead, so every doubt ends in 6.
 */
import { singleBlanks, type Block } from './page-text.ts'
import { diffLines } from './text-diff.ts'

/**
 * What someone pointed at, by the selectors of W3C's Web Annotation: a quote with the text around it (TextQuoteSelector),
 * and for an element its structure path (CssSelector). `exact` is then the element's text, and empty where it has none.
 */
export interface Anchor {
  readonly exact: string
  readonly prefix: string
  readonly suffix: string
  /** The structure path of an element, as the browser saw it. */
  readonly element?: string | undefined
  /** What an element without text shows, as the page writes it. */
  readonly src?: string | undefined
  /** A point in an image: shares of its width and height. */
  readonly point?: { readonly x: number; readonly y: number } | undefined
}

export interface FoundAnchor extends Anchor {
  /** The uploaded file that made the page, and where in it. */
  readonly file?: string | undefined
  readonly line?: number | undefined
}

export type AnchorPlacement = 'same' | 'moved' | 'changed' | 'gone'

export interface Placed {
  readonly placement: AnchorPlacement
  /** Where it is now; undefined when it is gone. */
  readonly at?: { readonly exact: string; readonly prefix: string; readonly suffix: string; readonly block: number }
}

/** Around a quote: as much as tells two places apart. */
export const CONTEXT_CHARS = 64
/** Two blocks are alike from here on; below, too much is chance. */
const ALIKE = 0.5
/** How much more alike than the next one. */
const CLEARLY = 0.12
/** Shorter blocks are words, not sentences: one changed word changes everything. */
const SHORT_WORDS = 4
/** A quote that may be found by itself: an accident has fewer. */
const LONG_QUOTE_WORDS = 4
const LONG_QUOTE_CHARS = 20
/** Blocks that are compared with one that is looked for, at most: the nearest. */
const MAX_COMPARED = 200
/** A translated page keeps at most this share of its blocks: names, figures, code. */
const TRANSLATED_SHARE = 0.6

const GONE: Placed = { placement: 'gone' }

/** How texts are compared: quotes and dashes as generators exchange them are one. Keeps the length. */
export function folded(text: string): string {
  return text
    .replace(/[\u2018\u2019\u02bc]/g, "'")
    .replace(/[\u201c\u201d\u00ab\u00bb]/g, '"')
    .replace(/[\u2010-\u2015]/g, '-')
}

/** A quote in a page: the block, and from where to where in its text. */
interface Spot {
  readonly block: number
  readonly start: number
  readonly end: number
}

/** spotOf finds the quote whose surroundings fit best; undefined where it is nowhere, or two places fit alike. */
export function spotOf(blocks: readonly Block[], { exact, prefix, suffix }: Anchor): Spot | undefined {
  const quote = folded(singleBlanks(exact))
  if (quote === '') return undefined
  const before = folded(singleBlanks(prefix))
  const after = folded(singleBlanks(suffix))
  let best: { spot: Spot; score: number } | undefined
  let isTie = false
  for (const [block, { text }] of blocks.entries()) {
    const own = folded(text)
    // The surroundings are read only as far as they are compared: a page may say one word a million times.
    const previous = folded((blocks[block - 1]?.text ?? '').slice(-CONTEXT_CHARS))
    const next = folded((blocks[block + 1]?.text ?? '').slice(0, CONTEXT_CHARS))
    for (let start = own.indexOf(quote); start >= 0; start = own.indexOf(quote, start + 1)) {
      const end = start + quote.length
      const near = own.slice(Math.max(0, start - CONTEXT_CHARS - 1), start)
      const left = (start > CONTEXT_CHARS ? near : `${previous} ${near}`).trimEnd()
      const right = `${own.slice(end, end + CONTEXT_CHARS + 1)} ${next}`.trimStart()
      const score = commonEnd(left, before) + commonStart(right, after)
      isTie = best !== undefined && score === best.score
      if (best === undefined || score > best.score) best = { spot: { block, start, end }, score }
    }
  }
  // Without surroundings the first one is meant, as everywhere on the web.
  return isTie && (before !== '' || after !== '') && best?.score === 0 ? undefined : best?.spot
}

export function commonEnd(one: string, other: string): number {
  const most = Math.min(one.length, other.length, CONTEXT_CHARS)
  let count = 0
  while (count < most && one.at(-1 - count) === other.at(-1 - count)) count++
  return count
}

export function commonStart(one: string, other: string): number {
  const most = Math.min(one.length, other.length, CONTEXT_CHARS)
  let count = 0
  while (count < most && one[count] === other[count]) count++
  return count
}

/** mainQuoteOf is what of a quote over several blocks is looked for: its longest part in one block. */
export function mainQuoteOf(blocks: readonly Block[], anchor: Anchor): Anchor {
  const quote = folded(singleBlanks(anchor.exact))
  if (spotOf(blocks, anchor) !== undefined) return anchor
  const inside = blocks.filter(({ text }) => text.length >= LONG_QUOTE_CHARS && quote.includes(folded(text)))
  const longest = inside.toSorted((a, b) => b.text.length - a.text.length)[0]
  return longest ? { ...anchor, exact: longest.text, prefix: '', suffix: '' } : anchor
}

/** How the blocks of two versions of a page belong together. */
export interface Alignment {
  readonly before: readonly Block[]
  readonly after: readonly Block[]
  /** For each old block the new one that stands in its place unchanged; -1 for none. */
  readonly same: Int32Array
  /** New blocks that no old one is. */
  readonly fresh: readonly number[]
  /** Whether the page says the same in other words. */
  readonly isTranslated: boolean
}

export function align(before: readonly Block[], after: readonly Block[]): Alignment {
  const same = new Int32Array(before.length).fill(-1)
  const isTaken = new Uint8Array(after.length)
  const [old, fresh] = [before, after].map((blocks) => blocks.map(({ text }) => folded(text)).join('\n'))
  const lines = before.length === 0 || after.length === 0 ? undefined : diffLines(old ?? '', fresh ?? '')
  let [x, y] = [0, 0]
  for (const { kind } of lines ?? []) {
    if (kind === 'same') {
      same[x] = y
      isTaken[y] = 1
    }
    if (kind !== 'added') x++
    if (kind !== 'removed') y++
  }
  const kept = same.reduce((count, to) => count + (to < 0 ? 0 : 1), 0)
  const hasSameShape = before.length === after.length && before.every(({ tag }, index) => tag === after[index]?.tag)
  return {
    before,
    after,
    same,
    fresh: Array.from(after.keys()).filter((index) => isTaken[index] === 0),
    isTranslated: hasSameShape && before.length >= SHORT_WORDS && kept <= before.length * TRANSLATED_SHARE,
  }
}

/** place says where a quote of the old page is in the new one. */
export function place(alignment: Alignment, anchor: Anchor): Placed | undefined {
  const { before, after, same } = alignment
  const wanted = mainQuoteOf(before, anchor)
  const spot = spotOf(before, wanted)
  if (!spot) return undefined
  const stays = same[spot.block] ?? -1
  if (stays >= 0) return foundAt('same', after, stays, spot.start, spot.end)
  return (
    movedWhole(alignment, spot) ??
    likeIt(alignment, spot) ??
    elsewhere(alignment, spot) ??
    translated(alignment, spot) ??
    GONE
  )
}

/** placeWithout is for a quote whose old page is no longer kept: only a place that its surroundings prove will do. */
export function placeWithout(after: readonly Block[], anchor: Anchor): Placed {
  const spot = spotOf(after, anchor)
  if (!spot) return GONE
  const text = after[spot.block]?.text ?? ''
  const left = folded(`${after[spot.block - 1]?.text ?? ''} ${text.slice(0, spot.start)}`.trimEnd())
  const right = folded(`${text.slice(spot.end)} ${after[spot.block + 1]?.text ?? ''}`.trimStart())
  const [prefix, suffix] = [folded(singleBlanks(anchor.prefix)), folded(singleBlanks(anchor.suffix))]
  const common = commonEnd(left, prefix) + commonStart(right, suffix)
  const wanted = Math.min(prefix.length, CONTEXT_CHARS) + Math.min(suffix.length, CONTEXT_CHARS)
  const isUnique = occurrences(after, anchor.exact) === 1
  if (wanted > 0 && common >= wanted * ALIKE) return foundAt('same', after, spot.block, spot.start, spot.end)
  if (isUnique && isLong(anchor.exact))
    return foundAt(wanted === 0 ? 'same' : 'moved', after, spot.block, spot.start, spot.end)
  return GONE
}

function occurrences(blocks: readonly Block[], exact: string): number {
  const quote = folded(singleBlanks(exact))
  let count = 0
  for (const { text } of blocks) {
    const own = folded(text)
    for (let at = own.indexOf(quote); at >= 0 && count < 2; at = own.indexOf(quote, at + 1)) count++
  }
  return count
}

function isLong(quote: string): boolean {
  return quote.length >= LONG_QUOTE_CHARS && wordsOf(quote).length >= LONG_QUOTE_WORDS
}

/** The very block, somewhere else. */
function movedWhole({ before, after, fresh }: Alignment, spot: Spot): Placed | undefined {
  const own = folded(before[spot.block]?.text ?? '')
  const equal = fresh.filter((index) => folded(after[index]?.text ?? '') === own)
  if (equal.length === 0) return undefined
  const neighbour = (blocks: readonly Block[], index: number): string => folded(blocks[index]?.text ?? '')
  const scored = equal.map((index) => ({
    index,
    score:
      Number(neighbour(after, index - 1) === neighbour(before, spot.block - 1)) +
      Number(neighbour(after, index + 1) === neighbour(before, spot.block + 1)),
  }))
  const [best, second] = scored.toSorted((a, b) => b.score - a.score)
  // Two that cannot be told apart: neither is known to be the one.
  if (!best || (second && second.score === best.score)) return undefined
  const isWords = wordsOf(own).length < SHORT_WORDS
  if (isWords && best.score === 0) return undefined
  return foundAt('moved', after, best.index, spot.start, spot.end)
}

interface Candidate {
  readonly index: number
  readonly score: number
  readonly isHere: boolean
}

/** A block that is like the one that held the quote: in its place, or clearly the only one. */
function likeIt(alignment: Alignment, spot: Spot): Placed | undefined {
  const { before, after } = alignment
  const own = before[spot.block]
  if (!own) return undefined
  const gap = gapOf(alignment, spot.block)
  const candidates = nearest(alignment, spot.block).map((index): Candidate => ({
    index,
    score: likeness(own.text, after[index]?.text ?? ''),
    isHere: gap.after.includes(index),
  }))
  const [best, second] = candidates.toSorted((a, b) => b.score - a.score)
  if (!best) return undefined
  const isShort = wordsOf(own.text).length < SHORT_WORDS
  const isPaired =
    gap.before.length === gap.after.length && gap.before.indexOf(spot.block) === gap.after.indexOf(best.index)
  const isLike = best.score >= (isShort ? 0.6 : ALIKE) && (!isShort || (isPaired && after[best.index]?.tag === own.tag))
  const isClear = !second || best.score - second.score >= CLEARLY || (best.isHere && isPaired)
  if (!isLike || !isClear) return undefined
  // Another old block that is gone as well may be even more like it: then this one is that one's.
  const rival = gap.before.some(
    (index) =>
      index !== spot.block && likeness(before[index]?.text ?? '', after[best.index]?.text ?? '') > best.score + CLEARLY,
  )
  if (rival) return undefined
  return within(alignment, spot, best)
}

/** The quote inside a block that is like the old one. */
function within({ before, after }: Alignment, spot: Spot, { index, isHere }: Candidate): Placed | undefined {
  const own = before[spot.block]?.text ?? ''
  const text = after[index]?.text ?? ''
  const quote = own.slice(spot.start, spot.end)
  const inBlock: Block[] = [{ tag: '', text, line: 0 }]
  const exact = spotOf(inBlock, { exact: quote, prefix: own.slice(0, spot.start), suffix: own.slice(spot.end) })
  if (exact) return foundAt(isHere ? 'same' : 'moved', after, index, exact.start, exact.end)
  const range = changedRange(own, spot, text)
  return range && foundAt('changed', after, index, range.start, range.end)
}

/** Which words of the new block stand where the quote stood; undefined when nothing does. */
function changedRange(own: string, spot: Spot, text: string): { start: number; end: number } | undefined {
  const [old, fresh] = [wordsOf(own), wordsOf(text)]
  const lines = diffLines(
    old.map(({ word }) => folded(word)).join('\n'),
    fresh.map(({ word }) => folded(word)).join('\n'),
  )
  if (!lines) return undefined
  let [x, y] = [0, 0]
  let [first, last] = [-1, -1]
  for (const { kind } of lines) {
    const here = old[x]
    const isInside = here !== undefined && here.end > spot.start && here.start < spot.end
    const wasInside = x > 0 && (old[x - 1]?.end ?? 0) > spot.start && (old[x - 1]?.start ?? 0) < spot.end
    // A word that came in counts when the quote goes on after it, or when it takes the place of the quote's last word.
    const counts = kind === 'removed' ? false : kind === 'same' ? isInside : isInside || wasInside
    if (counts) {
      if (first < 0) first = y
      last = y
    }
    if (kind !== 'added') x++
    if (kind !== 'removed') y++
  }
  const [from, to] = [fresh[first], fresh[last]]
  return from && to ? { start: from.start, end: to.end } : undefined
}

/** The quote by itself, in exactly one of the blocks that are new. */
function elsewhere({ before, after, fresh }: Alignment, spot: Spot): Placed | undefined {
  const quote = (before[spot.block]?.text ?? '').slice(spot.start, spot.end)
  if (!isLong(quote)) return undefined
  const wanted = folded(quote)
  const found = fresh.filter((index) => folded(after[index]?.text ?? '').includes(wanted))
  const [only] = found
  if (found.length !== 1 || only === undefined) return undefined
  const start = folded(after[only]?.text ?? '').indexOf(wanted)
  return foundAt('moved', after, only, start, start + quote.length)
}

/** The same page in another language: block by block in the same shape. */
function translated({ before, after, isTranslated }: Alignment, spot: Spot): Placed | undefined {
  const text = after[spot.block]?.text
  if (!isTranslated || text === undefined) return undefined
  const ratio = text.length / Math.max(1, before[spot.block]?.text.length ?? 1)
  if (ratio < 0.3 || ratio > 3.5) return undefined
  return foundAt('changed', after, spot.block, 0, text.length)
}

/** Old and new blocks between the neighbours that stayed. */
function gapOf({ same, after }: Alignment, block: number): { before: number[]; after: number[] } {
  let low = block
  while (low > 0 && (same[low - 1] ?? -1) < 0) low--
  let high = block
  while (high + 1 < same.length && (same[high + 1] ?? -1) < 0) high++
  const from = low === 0 ? 0 : (same[low - 1] ?? -1) + 1
  const to = high + 1 === same.length ? after.length : (same[high + 1] ?? after.length)
  return {
    before: Array.from({ length: high - low + 1 }, (_, index) => low + index),
    after: Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index),
  }
}

/** The new blocks nearest to where the old one stood. */
function nearest(alignment: Alignment, block: number): number[] {
  const { fresh } = alignment
  if (fresh.length <= MAX_COMPARED) return [...fresh]
  const { after } = gapOf(alignment, block)
  const middle = after[0] ?? block
  return fresh.toSorted((a, b) => Math.abs(a - middle) - Math.abs(b - middle)).slice(0, MAX_COMPARED)
}

interface Word {
  readonly word: string
  readonly start: number
  readonly end: number
}

function wordsOf(text: string): Word[] {
  return Array.from(text.matchAll(/[^ ]+/g), ({ 0: word, index }) => ({ word, start: index, end: index + word.length }))
}

/** likeness is the share of words and pairs of words that two texts have in common (Dice), from 0 to 1. */
export function likeness(one: string, other: string): number {
  const [a, b] = [piecesOf(one), piecesOf(other)]
  let common = 0
  for (const [piece, count] of a) common += Math.min(count, b.get(piece) ?? 0)
  const total = sizeOf(a) + sizeOf(b)
  return total === 0 ? 0 : (2 * common) / total
}

const PUNCTUATION = new Set('.,;:!?"\'()')

/** A word without the punctuation after it. */
function withoutEnd(word: string): string {
  let end = word.length
  while (end > 0 && PUNCTUATION.has(word[end - 1] ?? '')) end--
  return word.slice(0, end)
}

function sizeOf(pieces: ReadonlyMap<string, number>): number {
  let size = 0
  for (const count of pieces.values()) size += count
  return size
}

/** Words and neighbouring words; of one or two words the letters, three at a time. */
function piecesOf(text: string): Map<string, number> {
  const words = wordsOf(folded(text).toLowerCase()).map(({ word }) => withoutEnd(word))
  const pieces = new Map<string, number>()
  const add = (piece: string): void => void pieces.set(piece, (pieces.get(piece) ?? 0) + 1)
  if (words.length < SHORT_WORDS) {
    const letters = ` ${words.join(' ')} `
    for (let at = 0; at + 3 <= letters.length; at++) add(letters.slice(at, at + 3))
    return pieces
  }
  for (const [index, word] of words.entries()) {
    add(word)
    if (index > 0) add(`${words[index - 1]} ${word}`)
  }
  return pieces
}

function foundAt(
  placement: Exclude<AnchorPlacement, 'gone'>,
  blocks: readonly Block[],
  block: number,
  start: number,
  end: number,
): Placed {
  const text = blocks[block]?.text ?? ''
  const left = `${blocks[block - 1]?.text ?? ''} ${text.slice(0, start)}`
  const right = `${text.slice(end)} ${blocks[block + 1]?.text ?? ''}`
  return {
    placement,
    at: {
      exact: text.slice(start, end),
      prefix: left.slice(-CONTEXT_CHARS),
      suffix: right.slice(0, CONTEXT_CHARS),
      block,
    },
  }
}
