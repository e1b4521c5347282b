/** What a page may start with, at the place where this is tried. */
const OPENING =
  /<(?:!doctype\b|html\b|head\b|body\b|(?:div|main|section|article|header|style|script|svg|p|h[1-6]|table|form)\b[^>]*>)/iy

/**
 * Pasted text is HTML when it starts like HTML; everything else is Markdown, which allows inline HTML anyway. Reads
 * each character at most twice.
 */
export function isHtml(text: string): boolean {
  const start = afterComments(text)
  if (start === undefined) return false
  OPENING.lastIndex = start
  return OPENING.test(text)
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

export function filenameOfText(text: string): 'index.html' | 'index.md' {
  return isHtml(text) ? 'index.html' : 'index.md'
}
