/** Whether text without a name is HTML or Markdown: one guess for the paste box, its preview and MCP. Pure; linear. */

/** Nobody begins a Markdown document with these. */
const PAGE = /<(?:!doctype|html|head|body|title|meta|link|base|style|script|frameset)\b/iy
/** A block of a page, or of a README, at the place where this is tried. */
const BLOCK =
  /<(?:div|main|section|article|header|footer|nav|aside|svg|canvas|p|h[1-6]|ul|ol|dl|table|form|center|details|figure|picture|video)(?=[\s/>])/iy
/** What Markdown looks like at the start of a line: headings, fences, lists, quotes, tables, images and links. */
const MARKDOWN_LINE = /^ {0,3}(?:#{1,6}[ \t]|```|~~~|[-*+][ \t]|\d{1,9}[.)][ \t]|>[ \t]|\|.*\||!?\[[^\]]{0,200}\][([:])/
/** Inside of a line: links, images and emphasis. */
const MARKDOWN_WORDS = /\]\([^\s)]|\*\*[^\s*]/
/** Whose lines are not Markdown even in a Markdown document. */
const VERBATIM = ['script', 'style', 'pre', 'textarea']
/** A document shows what it is long before; the rest is not looked at. */
const MAX_LOOKED_AT_CHARS = 100_000

/**
 * A page says so in its first tag. Text that begins with another block may be either: a README often opens with
 * `<p align="center">`. It is Markdown when a line of it reads like Markdown, or a paragraph stands there without a
 * tag; else HTML. All other text is Markdown, which allows HTML anyway.
 */
export function isHtml(text: string): boolean {
  const start = afterComments(text)
  if (start === undefined) return false
  PAGE.lastIndex = start
  if (PAGE.test(text)) return true
  BLOCK.lastIndex = start
  return BLOCK.test(text) && !hasMarkdown(text.slice(start, start + MAX_LOOKED_AT_CHARS))
}

export function formatOfText(text: string): 'html' | 'markdown' {
  return isHtml(text) ? 'html' : 'markdown'
}

/** The name that pasted text is published under. */
export function filenameOfText(text: string, format = formatOfText(text)): 'index.html' | 'index.md' {
  return format === 'html' ? 'index.html' : 'index.md'
}

function hasMarkdown(text: string): boolean {
  let verbatim: string | undefined
  let isAfterBlank = false
  for (const line of text.split('\n')) {
    const isParagraph = isAfterBlank && /^[^\s<]/.test(line)
    if (verbatim === undefined && (isParagraph || MARKDOWN_LINE.test(line) || MARKDOWN_WORDS.test(line))) return true
    isAfterBlank = line.trim() === ''
    const lower = line.toLowerCase()
    verbatim ??= VERBATIM.find((name) => lower.includes(`<${name}`))
    if (verbatim !== undefined && lower.includes(`</${verbatim}`)) verbatim = undefined
  }
  return false
}

/** Where blanks and comments end; undefined in a comment that does not. */
function afterComments(text: string): number | undefined {
  let at = 0
  for (;;) {
    while (at < text.length && text.charAt(at).trim() === '') at++
    if (!text.startsWith('<!--', at)) return at
    const end = text.indexOf('-->', at + 4)
    if (end < 0) return undefined
    at = end + 3
  }
}
