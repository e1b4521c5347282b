/**
 * Says beforehand what rendering a Markdown document will cost, and refuses one that costs too much, by its line. Most of
 * micromark is linear. These are not, as counted in its sources:
 *
 *   nesting    each line passes all containers it lies in, and `- - - a` looks to the end of the line for each of them
 *   leaving    whenever a nested list or a quote ends, also before the next item of the list around it, and for each
 *              underlined heading, all events so far are copied (its `EditMap`)
 *   emphasis   a run of `*`, `_` or `~` that may close looks for its opener through all runs of its text
 *   defining   each definition of a link is compared with those before it
 *   scanning   `](`, a tag, a run of backticks or a bracket that fits no other is looked for until the text ends
 *
 * One pass over the lines; it follows lists, fences and tables as far as their costs need. Where it errs, the time limit of
 * the thread is left.
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

interface Fence {
  readonly mark: string
  readonly indent: number
}

/** Throws invalid_request. `firstLine`: the number of the first line of the text in what the publisher wrote. */
export function requireRenderable(source: string, firstLine = 1): void {
  const meter = new Meter(BASE_STEPS + STEPS_PER_CHAR * source.length)
  let number = firstLine
  for (let from = 0; from < source.length; number++) {
    const newline = source.indexOf('\n', from)
    const end = newline < 0 ? source.length : newline
    const problem = meter.add(source.slice(from, end))
    if (problem !== undefined) throw errors.invalidRequest(`The Markdown cannot be rendered: line ${number} ${problem}`)
    from = end + 1
  }
  if (meter.isOver()) throw errors.invalidRequest(`The Markdown cannot be rendered: line ${number - 1} ${TOO_MUCH}`)
}

const TOO_MUCH =
  'is where lists, quotes, emphasis or brackets become too much for one page. Separate long texts by blank lines, nest less, split it into several documents, or publish it as HTML.'

class Meter {
  readonly #budget: number
  #steps = 0
  #lines = 0
  /** What the containers of all lines so far have come to. */
  #events = 0
  /** Where the content of the open list items begins, the outermost first. */
  #items: number[] = []
  #quotes = 0
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
    if (isBlank(line)) {
      this.#endBlock()
      // A blank line ends a quote, but no list.
      if (this.#quotes > 0) this.#copyEvents()
      this.#quotes = 0
      return this.isOver() ? TOO_MUCH : undefined
    }
    const indent = indentOf(line)
    if (this.#fence) {
      if (indent >= this.#fence.indent && !closes(line, this.#fence)) return undefined
      const isClosed = closes(line, this.#fence)
      this.#fence = undefined
      if (isClosed) return undefined
    }
    const { depth, text, isItem, isOrdered } = this.#containersOf(line, indent)
    if (depth > MAX_NESTING) return `nests more than ${MAX_NESTING} levels deep. Nest less.`
    this.#read(text, indent, isItem ? (isOrdered ? 'ordered item' : 'item') : 'text')
    return this.isOver() ? TOO_MUCH : undefined
  }

  isOver(): boolean {
    return this.#steps + (this.#block ? stepsOf(this.#block) : 0) > this.#budget
  }

  /** Follows the markers at the beginning of a line, and leaves what it does not lie in. */
  #containersOf(line: string, indent: number): { depth: number; text: string; isItem: boolean; isOrdered: boolean } {
    const before = { items: this.#items.length, quotes: this.#quotes }
    this.#items = this.#items.filter((offset) => offset <= indent)
    const passed = this.#items.length
    let [rest, column, quotes, markers] = [line.slice(widthOf(line)), indent, 0, 0]
    let [isItem, isOrdered] = [false, false]
    while (!isBreak(rest)) {
      const marker = MARKER.exec(rest)?.[0]
      if (marker === undefined) break
      markers++
      column += marker.length
      rest = rest.slice(marker.length)
      if (marker.startsWith('>')) quotes++
      else {
        this.#items.push(column)
        isItem = true
        isOrdered = /\d/.test(marker)
      }
      if (markers > MAX_NESTING) break
    }
    this.#quotes = quotes
    const depth = this.#items.length + quotes
    this.#steps += MARKER_STEPS * markers * markers + depth
    this.#events += MARKER_EVENTS * markers + INDENT_EVENTS * passed
    // An item goes on with the list that it stands in, and ends those within.
    const remaining = isItem ? passed + 1 : passed
    if (remaining < before.items || quotes < before.quotes) this.#copyEvents()
    return { depth, text: rest, isItem, isOrdered }
  }

  #copyEvents(): void {
    this.#steps += COPIED_EVENT_STEPS * this.#events
  }

  #read(text: string, indent: number, kind: TextBlock['kind']): void {
    const fence = FENCE.exec(text)?.[1]
    const isCode = indent - (this.#items.at(-1) ?? 0) > 3
    if (fence !== undefined && !isCode) {
      this.#endBlock()
      this.#fence = { mark: fence, indent: Math.max(0, this.#items.at(-1) ?? 0) }
      return
    }
    if (this.#startsBlock(text, kind)) this.#endBlock()
    const block = (this.#block ??= newBlock(kind, text))
    if (block.lines > 0 && /^(?:=+|-+)[ \t]*\r?$/.test(text)) this.#steps += this.#lines
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

/** A quote, a bullet, or a number of at most nine digits, with a blank after it or at the end. */
const MARKER = /^(?:> ?|[-+*](?:[ \t]{1,4}|$)|\d{1,9}[.)](?:[ \t]{1,4}|$))/
const FENCE = /^(`{3,}|~{3,})/
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
  return widthOf(line) === line.length
}

/** How many characters of white space a line begins with. */
function widthOf(line: string): number {
  let at = 0
  while (at < line.length && isSpace(line.charCodeAt(at))) at++
  return at
}

/** The column of its first character; a tab goes on to the next multiple of four. */
function indentOf(line: string): number {
  let column = 0
  for (let at = 0; at < line.length && isSpace(line.charCodeAt(at)); at++)
    column = line[at] === '\t' ? column + 4 - (column % 4) : column + 1
  return column
}

/** `- - -`, which is a line across the page and no list. */
function isBreak(text: string): boolean {
  const mark = text[0]
  return (mark === '-' || mark === '*') && /^(?:-[ \t]*){3,}\r?$|^(?:\*[ \t]*){3,}\r?$/.test(text)
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
  return /^[ \t|:-]+\r?$/.test(line) && line.includes('-') && cellsOf(head) === cellsOf(line)
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
