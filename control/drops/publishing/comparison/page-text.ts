/**
 * The text of a page as readers see it, block by block: what comments point at. Reads the bytes once, in linear time, and
 * builds no tree. What browsers show only by running scripts is not in it.
 */
import { decodeReferences } from '../html/text.ts'
import { findRawTextEnd, LESS_THAN, readMarkup } from '../html/tokens.ts'

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

export function blocksOf(bytes: Buffer): Block[] {
  const blocks: Block[] = []
  let parts: string[] = []
  let tag = 'body'
  let hidden: string | undefined
  let line = 1
  let counted = 0
  let startLine = 1
  let textFrom = 0
  const lineAt = (offset: number): number => {
    for (let at = bytes.indexOf(0x0a, counted); at >= 0 && at < offset; at = bytes.indexOf(0x0a, at + 1)) {
      line++
      counted = at + 1
    }
    return line
  }
  const take = (to: number): void => {
    if (hidden !== undefined || to <= textFrom) return
    const text = bytes.toString('utf8', textFrom, to)
    if (parts.length === 0 && text.trim() !== '') startLine = lineAt(textFrom + leadingBytes(text))
    if (parts.length > 0 || text.trim() !== '') parts.push(text)
  }
  const close = (): void => {
    const text = singleBlanks(decodeReferences(parts.join('')))
    if (text !== '' && blocks.length < MAX_BLOCKS) blocks.push({ tag, text, line: startLine })
    parts = []
  }
  for (let at = bytes.indexOf(LESS_THAN); at >= 0; at = bytes.indexOf(LESS_THAN, at)) {
    const markup = readMarkup(bytes, at, false)
    if (markup.kind === 'unfinished') break
    if (markup.kind === 'text') {
      at++
      continue
    }
    take(at)
    at = markup.end
    textFrom = at
    if (markup.kind === 'other') continue
    const { name } = markup
    if (markup.kind === 'start' && RAW_TEXT.has(name)) {
      const end = findRawTextEnd(bytes, name, at)
      if (end === undefined) break
      at = end.end
      textFrom = at
      continue
    }
    if (UNSEEN.has(name)) {
      if (markup.kind === 'start' && hidden === undefined && !markup.selfClosing) hidden = name
      else if (markup.kind === 'end' && hidden === name) hidden = undefined
      continue
    }
    if (INLINE.has(name)) continue
    if (name === 'br') {
      parts.push(' ')
      continue
    }
    close()
    if (markup.kind === 'start') tag = name
  }
  take(bytes.length)
  close()
  return blocks
}

function leadingBytes(text: string): number {
  return Buffer.byteLength(text.slice(0, text.length - text.trimStart().length))
}

/** singleBlanks is how quotes and pages are written before they are compared. */
export function singleBlanks(text: string): string {
  return text.replace(/[\s\u00a0\u200b\ufeff]+/g, ' ').trim()
}
