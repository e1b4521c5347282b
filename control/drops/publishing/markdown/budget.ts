/**
 * Says beforehand what rendering a Markdown document will cost, and refuses one that costs too much, by its line. Most of
 * micromark is linear. These are not, as counted in its sources:
 *
 *   nesting    each line passes all containers it lies in, and `- - - a` looks to the end of the line for each of them
 *   leaving    whenever what lies in an item ends, or a quote or a footnote, and for each underlined heading, all events
 *              so far are copied (its `EditMap`)
 *   emphasis   a run of `*`, `_` or `~` that may close looks for its opener through all runs of its text
 *   defining   each definition of a link is compared with those before it
 *   scanning   `](`, a tag, a run of backticks or a bracket that fits no other is looked for until the text ends
 *
 * One pass over the lines; it follows lists, quotes, footnotes, fences and tables as far as their costs need. Where it errs,
 * the time limit of the thread is left.
 */
import { errors } from '../../../../shared/contracts/errors.ts'

/** People nest a handful of levels. */
export const MAX_NESTING = 100
/** A step takes micromark some 200 nanoseconds. These are four seconds, and two thirds of the thread's time limit. */
const BASE_STEPS = 20_000_000
const STEPS_PER_CHAR = 100

/** What one of them takes, in steps. */
const MARKER_STEPS = 4
const COPIED_EVENT_STEPS = 0.2
const EMPHASIS_STEPS = 0.33
const SCANNED_CHAR_STEPS = 0.1
const DEFINITION_STEPS = 0.3

/** What there is to copy: the events of a marker, of passing a list's indent, and of the rest of a line. */
const MARKER_EVENTS = 8
const INDENT_EVENTS = 2
const LINE_EVENTS = 2

/** Text that inline Markdown is read from as a whole: a paragraph, an item, a heading, a row. */
interface TextBlock {
  readonly kind: 'text' | 'item' | 'ordered item' | 'table' | 'html'
  chars: number
  lines: number
  /** Runs that may close emphasis. */
  closers: number
  /** What is looked for until the text ends. */
  openers: number
  /** Brackets that are open. */
  brackets: number
  firstLine: string
}

/** What lines lie in. */
interface Container {
  readonly kind: 'item' | 'quote' | 'footnote'
  /** By how much lines are indented that lie in it; a quote has its mark instead. */
  readonly width: number
}

interface Fence {
  readonly mark: string
  /** How many containers it lies in. */
  readonly depth: number
}

/** What stands before the text of a line. */
interface Beginning {
  readonly text: string
  readonly isCode: boolean
  readonly kind: Exclude<TextBlock['kind'], 'table' | 'html'>
}

/** Throws invalid_request. `firstLine`: the number of the first line of the text in what the publisher wrote. */
export function requireRenderable(source: string, firstLine = 1): void {
  const meter = new Meter(BASE_STEPS + STEPS_PER_CHAR * source.length)
  const lines = source.split(/\r\n|\n|\r/)
  for (const [index, line] of lines.entries()) {
    const problem = meter.add(withoutTabs(line))
    if (problem !== undefined)
      throw errors.invalidRequest(`The Markdown cannot be rendered: line ${firstLine + index} ${problem}`)
  }
}

const TOO_MUCH =
  'is where lists, quotes, emphasis or brackets become too much for one page. Separate long texts by blank lines, nest less, split it into several documents, or publish it as HTML.'

class Meter {
  readonly #budget: number
  #steps = 0
  #lines = 0
  /** What the containers of all lines so far have come to. */
  #events = 0
  /** What the line before lay in, the outermost first. */
  #containers: readonly Container[] = []
  #definitions = 0
  #fence: Fence | undefined
  #block: TextBlock | undefined

  constructor(budget: number) {
    this.#budget = budget
  }

  /** What is wrong with the line, in words that follow its number. */
  add(line: string): string | undefined {
    this.#lines++
    this.#events += LINE_EVENTS
    if (isBlank(line)) this.#passBlank()
    else {
      const { at, kept } = this.#keep(line)
      if (!this.#isFenced(line, at, kept)) {
        const { text, isCode, kind } = this.#enter(line, at, kept)
        if (this.#containers.length > MAX_NESTING) return `nests more than ${MAX_NESTING} levels deep. Nest less.`
        if (text === '') this.#endBlock()
        else this.#read(text, isCode, kind)
      }
    }
    return this.#steps + (this.#block ? stepsOf(this.#block) : 0) > this.#budget ? TOO_MUCH : undefined
  }

  /** A blank line ends quotes and what lies in them, but no list and no listing. */
  #passBlank(): void {
    const quote = this.#containers.findIndex(({ kind }) => kind === 'quote')
    if (quote >= 0) {
      this.#containers = this.#containers.slice(0, quote)
      this.#copyEvents()
      if (this.#fence && this.#fence.depth > quote) this.#fence = undefined
    }
    this.#endBlock()
  }

  /** How many of the containers a line goes on with, and where it does. */
  #keep(line: string): { at: number; kept: number } {
    let [at, kept] = [0, 0]
    for (const { kind, width } of this.#containers) {
      const blanks = blanksAt(line, at, kind === 'quote' ? 4 : width)
      if (kind === 'quote') {
        if (blanks > 3 || line[at + blanks] !== '>') break
        at += blanks + 1
        if (line[at] === ' ') at++
        this.#events += MARKER_EVENTS
      } else {
        if (blanks < width) break
        at += width
        this.#events += INDENT_EVENTS
      }
      kept++
    }
    this.#steps += kept
    return { at, kept }
  }

  /** Whether the line is part of a listing. One ends with what it lies in. */
  #isFenced(line: string, at: number, kept: number): boolean {
    const fence = this.#fence
    if (!fence) return false
    const isInside = kept >= fence.depth
    if (!isInside || closes(line.slice(at), fence)) this.#fence = undefined
    return isInside
  }

  /** Follows the markers behind what goes on, and leaves what does not. */
  #enter(line: string, from: number, kept: number): Beginning {
    const left = this.#containers.slice(kept)
    const entered: Container[] = []
    let [at, blanks, kind]: [number, number, Beginning['kind']] = [from, blanksAt(line, from, 4), 'text']
    while (blanks <= 3) {
      const rest = line.slice(at + blanks)
      const marker = isBreak(rest) ? undefined : markerOf(rest)
      if (!marker) break
      entered.push({ kind: marker.kind, width: blanks + marker.width })
      if (marker.kind === 'item') kind = marker.isOrdered ? 'ordered item' : 'item'
      if (marker.kind === 'footnote') {
        this.#steps += DEFINITION_STEPS * this.#definitions++
        this.#events += MARKER_EVENTS
      }
      at += blanks + marker.chars
      blanks = blanksAt(line, at, 4)
      if (entered.length > MAX_NESTING) break
    }
    const text = line.slice(at + blanksAt(line, at, line.length))
    if (entered.length === 0 && this.#goesOnWith(text)) return { text, isCode: false, kind }
    this.#steps += MARKER_STEPS * entered.length ** 2
    this.#events += MARKER_EVENTS * entered.length
    // The next item of a list ends the one before, of which nothing is copied where nothing lay in it.
    const isNextItem = left.length === 1 && left[0]!.kind === 'item' && entered[0]?.kind === 'item'
    if (left.length > 0 && !isNextItem) this.#copyEvents()
    this.#containers = [...this.#containers.slice(0, kept), ...entered]
    return { text, isCode: blanks > 3, kind }
  }

  /** Words go on with a paragraph, and lie where it does, whether or not they are indented so. */
  #goesOnWith(text: string): boolean {
    const kind = this.#block?.kind
    return kind !== undefined && kind !== 'table' && kind !== 'html' && WORDS.test(text)
  }

  #copyEvents(): void {
    this.#steps += COPIED_EVENT_STEPS * this.#events
  }

  #read(text: string, isCode: boolean, kind: TextBlock['kind']): void {
    const fence = isCode ? undefined : FENCE.exec(text)?.[1]
    if (fence !== undefined) {
      this.#endBlock()
      this.#fence = { mark: fence, depth: this.#containers.length }
      return
    }
    if (this.#startsBlock(text, kind)) this.#endBlock()
    const block = (this.#block ??= newBlock(kind, text))
    if (block.lines > 0 && /^(?:=+|-+) *$/.test(text)) this.#steps += this.#lines
    block.lines++
    block.chars += text.length + 1
    if (block.lines === 2 && block.kind !== 'html' && isTableRule(block.firstLine, text)) {
      this.#endBlock()
      this.#block = newBlock('table', text)
      return
    }
    if (block.kind === 'html') return
    count(text, block)
    // Each row of a table, each heading and each definition before a text is a text of its own.
    if (block.kind === 'table') return this.#endBlock(true)
    const isDefinition = block.lines === 1 && /^\[[^\]]{1,999}\]:/.test(text)
    if (isDefinition) this.#steps += DEFINITION_STEPS * this.#definitions++
    if (isDefinition || (block.lines === 1 && /^#{1,6}[ \t]/.test(text))) this.#endBlock()
  }

  /** Numbers other than 1 go on with a paragraph, unless it is an item of a numbered list itself. */
  #startsBlock(text: string, kind: TextBlock['kind']): boolean {
    if (kind === 'item') return text !== ''
    return kind === 'ordered item' && this.#block?.kind === 'ordered item' && text !== ''
  }

  #endBlock(goesOn = false): void {
    if (this.#block) this.#steps += stepsOf(this.#block)
    this.#block = goesOn ? newBlock('table', '') : undefined
  }
}

interface Marker {
  readonly kind: Container['kind']
  readonly isOrdered: boolean
  readonly chars: number
  readonly width: number
}

/** A bullet, or a number of at most nine digits, and the blanks up to its text; before a listing in it there are more. */
const ITEM = /^(?:[-+*]|\d{1,9}[.)])(?: {1,4}(?! )| (?= {4})|$)/
const FOOTNOTE = /^\[\^[^\s[\]]{1,999}\]:/
/** Lines of a footnote are indented like a listing. */
const FOOTNOTE_WIDTH = 4

function markerOf(text: string): Marker | undefined {
  if (text.startsWith('>')) return { kind: 'quote', isOrdered: false, chars: text[1] === ' ' ? 2 : 1, width: 0 }
  const footnote = FOOTNOTE.exec(text)?.[0]
  if (footnote !== undefined)
    return { kind: 'footnote', isOrdered: false, chars: footnote.length, width: FOOTNOTE_WIDTH }
  const item = ITEM.exec(text)?.[0]
  if (item === undefined) return undefined
  const isBare = !item.endsWith(' ')
  return { kind: 'item', isOrdered: /^\d/.test(item), chars: item.length, width: item.length + (isBare ? 1 : 0) }
}

/** A line that begins nothing else. */
const WORDS = /^[A-Za-z0-9\u0080-\uffff]/
/** What is behind backticks holds none, or it is code in a line. */
const FENCE = /^(`{3,}(?!.*`)|~{3,})/
/** Elements whose start makes the lines up to the next blank one HTML, of those that people write. */
const HTML =
  /^<(?:!--|\/?(?:address|article|aside|blockquote|body|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|head|header|hr|html|iframe|li|link|main|menu|nav|ol|p|pre|script|section|style|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul)(?:[\s>/]|$))/i

function newBlock(kind: TextBlock['kind'], firstLine: string): TextBlock {
  const isHtml = kind !== 'table' && HTML.test(firstLine)
  return { kind: isHtml ? 'html' : kind, chars: 0, lines: 0, closers: 0, openers: 0, brackets: 0, firstLine }
}

function stepsOf({ chars, closers, openers }: TextBlock): number {
  return EMPHASIS_STEPS * closers * closers + SCANNED_CHAR_STEPS * openers * chars
}

/** Adds what a line of text has of both. */
function count(text: string, block: TextBlock): void {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === STAR || code === UNDERSCORE || code === TILDE) {
      const start = at
      while (text.charCodeAt(at + 1) === code) at++
      const isAfterSpace = start === 0 || isSpace(text.charCodeAt(start - 1))
      if (!isAfterSpace && !(code === UNDERSCORE && isWordCharacter(text.charCodeAt(at + 1)))) block.closers++
    } else if (code === BACKTICK) {
      while (text.charCodeAt(at + 1) === BACKTICK) at++
      block.openers++
    } else if (code === OPENING_BRACKET) {
      block.brackets++
    } else if (code === CLOSING_BRACKET) {
      if (block.brackets === 0 || text.charCodeAt(at + 1) === PARENTHESIS) block.openers++
      block.brackets = Math.max(0, block.brackets - 1)
    } else if (code === LESS_THAN) {
      block.openers++
    }
  }
}

const STAR = 0x2a
const LESS_THAN = 0x3c
const PARENTHESIS = 0x28
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const UNDERSCORE = 0x5f
const BACKTICK = 0x60
const TILDE = 0x7e

function isSpace(code: number): boolean {
  return code <= 0x20
}

function isWordCharacter(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code >= 0x80
  )
}

function isBlank(line: string): boolean {
  return blanksAt(line, 0, line.length) === line.length
}

/** How many blanks stand there, as far as it matters. */
function blanksAt(line: string, at: number, most: number): number {
  let blanks = 0
  while (blanks < most && line[at + blanks] === ' ') blanks++
  return blanks
}

/** A tab goes on to the next column of four. */
function withoutTabs(line: string): string {
  const parts = line.split('\t')
  let text = parts[0]!
  for (const part of parts.slice(1)) text += ' '.repeat(4 - (text.length % 4)) + part
  return text
}

/** `- - -`, which is a line across the page and no list. */
function isBreak(text: string): boolean {
  const mark = text[0]
  return (mark === '-' || mark === '*') && /^(?:- *){3,}$|^(?:\* *){3,}$/.test(text)
}

function closes(line: string, { mark }: Fence): boolean {
  const text = line.trim()
  return text.length >= mark.length && text.startsWith(mark) && isOnly(text, mark[0])
}

function isOnly(text: string, character: string | undefined): boolean {
  for (const one of text) if (one !== character) return false
  return true
}

/** `|---|:-:|` under a line of as many cells. */
function isTableRule(head: string, line: string): boolean {
  return /^[ |:-]+$/.test(line) && line.includes('-') && cellsOf(head) === cellsOf(line)
}

function cellsOf(line: string): number {
  const text = line.trim().replace(/^\|/, '')
  let cells = 1
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '|' && at < text.length - 1) cells++
  }
  return cells
}
