/** Pasted text is HTML when it starts like HTML; everything else is Markdown, which allows inline HTML anyway. */
export function isHtml(text: string): boolean {
  return /^(?:\uFEFF|\s|<!--[\s\S]*?-->)*<(?:!doctype\b|html\b|head\b|body\b|(?:div|main|section|article|header|style|script|svg|p|h[1-6]|table|form)\b[^>]*>)/i.test(
    text,
  )
}

export function filenameOfText(text: string): 'index.html' | 'index.md' {
  return isHtml(text) ? 'index.html' : 'index.md'
}
