/**
 * The text of a page as readers see it, block by block: what comments point at. Reads the bytes once, in linear time, and
 * builds no tree. What browsers show only by running scripts is not in it.
 */
import { decodeReferences } from '../html/text.ts'
import { findRawTextEnd, LESS_THAN, readMarkup, type Tag } from '../html/tokens.ts'

/** A paragraph, a heading, a cell: text that no other block divides. */
export interface Block {
  readonly tag: string
  /** Blanks are single, none at either end. */
  readonly text: string
  /** Where it begins in the file, from 1. */
  readonly line: number
}

/** Text flows through these; every other tag divides it. */
const INLINE: ReadonlySet<string> = new Set(
  `a abbr b bdi bdo cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span strong sub sup
   time tt u var wbr img`.split(/\s+/),
)
/** Their content is no text of the page. */
const UNSEEN: ReadonlySet<string> = new Set('script style template noscript title textarea iframe object'.split(' '))
const RAW_TEXT: ReadonlySet<string> = new Set('script style title textarea iframe noscript'.split(' '))
/** A page of so many is cut: no one points at the rest of it one by one. */
const MAX_BLOCKS = 20_000

/** What of a page is seen, in its order: text from one byte to another, and the tags between. */
type Piece = { readonly kind: 'text'; readonly from: number; readonly to: number } | Tag

/** Reads each byte once. Elements whose content is unseen are told by their start tag. */
function* piecesOf(bytes: Buffer): Generator<Piece> {
  let hidden: string | undefined
  let textFrom = 0
  for (let at = bytes.indexOf(LESS_THAN); at >= 0; at = bytes.indexOf(LESS_THAN, at)) {
    const markup = readMarkup(bytes, at, false)
    if (markup.kind === 'unfinished') break
    if (markup.kind === 'text') {
      at++
      continue
    }
    if (hidden === undefined && at > textFrom) yield { kind: 'text', from: textFrom, to: at }
    at = markup.end
    textFrom = at
    if (markup.kind === 'other') continue
    const { name } = markup
    if (hidden === undefined && markup.kind === 'start') yield markup
    if (markup.kind === 'start' && RAW_TEXT.has(name)) {
      const end = findRawTextEnd(bytes, name, at)
      if (end === undefined) return
      at = end.end
      textFrom = at
    } else if (UNSEEN.has(name)) {
      if (markup.kind === 'start' && hidden === undefined && !markup.selfClosing) hidden = name
      else if (markup.kind === 'end' && hidden === name) hidden = undefined
    } else if (hidden === undefined && markup.kind === 'end') yield markup
  }
  if (hidden === undefined && textFrom < bytes.length) yield { kind: 'text', from: textFrom, to: bytes.length }
}

/** Counts lines up to offsets that only grow. */
function lineCounter(bytes: Buffer): (offset: number) => number {
  let line = 1
  let counted = 0
  return (offset) => {
    for (let at = bytes.indexOf(0x0a, counted); at >= 0 && at < offset; at = bytes.indexOf(0x0a, at + 1)) {
      line++
      counted = at + 1
    }
    return line
  }
}

export function blocksOf(bytes: Buffer): Block[] {
  const blocks: Block[] = []
  const lineAt = lineCounter(bytes)
  let parts: string[] = []
  let tag = 'body'
  let startLine = 1
  const close = (): void => {
    const text = singleBlanks(decodeReferences(parts.join('')))
    if (text !== '' && blocks.length < MAX_BLOCKS) blocks.push({ tag, text, line: startLine })
    parts = []
  }
  for (const piece of piecesOf(bytes)) {
    if (piece.kind === 'text') {
      const text = bytes.toString('utf8', piece.from, piece.to)
      if (parts.length === 0 && text.trim() !== '') startLine = lineAt(piece.from + leadingBytes(text))
      if (parts.length > 0 || text.trim() !== '') parts.push(text)
      continue
    }
    const { name } = piece
    if (INLINE.has(name) || UNSEEN.has(name)) continue
    if (name === 'br') {
      parts.push(' ')
      continue
    }
    close()
    if (piece.kind === 'start') tag = name
  }
  close()
  return blocks
}

/** An image, a drawing, a field: an element that people point at and that has no text of its own. */
export interface Figure {
  readonly tag: string
  /** What it shows, as the page writes it; empty where it names nothing. */
  readonly src: string
  readonly alt: string
  /** Text of the page around it. */
  readonly before: string
  readonly after: string
  readonly line: number
}

const FIGURES: ReadonlySet<string> = new Set(
  'img svg video audio canvas iframe hr input select textarea math'.split(' '),
)
/** As many as people point at one by one. */
const MAX_FIGURES = 2000
/** Longer ones are content written into the page: their beginning tells them apart. */
export const MAX_SRC_CHARS = 500

/** figuresOf finds the figures of a page. Takes time in proportion to the page. */
export function figuresOf(bytes: Buffer): Figure[] {
  const lineAt = lineCounter(bytes)
  const texts: string[] = []
  const found: (Omit<Figure, 'before' | 'after'> & { readonly at: number })[] = []
  let length = 0
  let endsBlank = true
  const add = (text: string): void => {
    const single = text.replace(BLANKS, ' ')
    const own = endsBlank && single.startsWith(' ') ? single.slice(1) : single
    if (own === '') return
    texts.push(own)
    length += own.length
    endsBlank = own.endsWith(' ')
  }
  for (const piece of piecesOf(bytes)) {
    if (piece.kind === 'text') add(decodeReferences(bytes.toString('utf8', piece.from, piece.to)))
    else {
      if (!INLINE.has(piece.name)) add(' ')
      if (piece.kind === 'start' && FIGURES.has(piece.name) && found.length < MAX_FIGURES)
        found.push({ ...describedBy(bytes, piece), line: lineAt(piece.start), at: length })
    }
  }
  const whole = texts.join('')
  return found.map(({ at, ...figure }) => ({
    ...figure,
    before: whole.slice(Math.max(0, at - FIGURE_CONTEXT_CHARS), at).trim(),
    after: whole.slice(at, at + FIGURE_CONTEXT_CHARS).trim(),
  }))
}

const FIGURE_CONTEXT_CHARS = 64

function describedBy(bytes: Buffer, { name, attributes }: Tag): Pick<Figure, 'tag' | 'src' | 'alt'> {
  const valueOf = (attribute: string): string | undefined => {
    const found = attributes.get(attribute)
    return found && decodeReferences(bytes.toString('utf8', found.start, found.end)).trim()
  }
  const src = valueOf('src') ?? valueOf('poster') ?? valueOf('name') ?? ''
  return { tag: name, src: src.slice(0, MAX_SRC_CHARS), alt: (valueOf('alt') ?? '').slice(0, MAX_SRC_CHARS) }
}

function leadingBytes(text: string): number {
  return Buffer.byteLength(text.slice(0, text.length - text.trimStart().length))
}

/** singleBlanks is how quotes and pages are written before they are compared. */
export function singleBlanks(text: string): string {
  return text.replace(BLANKS, ' ').trim()
}

const BLANKS = /[\s\u00a0\u200b\ufeff]+/g
