/** Settings that generators keep at the top of a Markdown file, between two lines of dashes; they are not for readers. */

/** The text after the settings. */
export function withoutFrontMatter(source: string): string {
  const start = source.startsWith('\ufeff') ? 1 : 0
  for (let from = start; from < source.length;) {
    const newline = source.indexOf('\n', from)
    const end = newline < 0 ? source.length : newline
    const line = source.slice(from, end).replace(/\r$/, '')
    if (from === start ? !isFence(line) : !isFrontMatter(line)) return source
    if (from > start && isFence(line)) return source.slice(end + 1)
    from = end + 1
  }
  return source
}

/** The line above and the line below. */
function isFence(line: string): boolean {
  return line.startsWith('---') && /^[ \t]*$/.test(line.slice(3))
}

/** `name: value`, an indented or empty line, an item of a list, or the end. */
function isFrontMatter(line: string): boolean {
  return isFence(line) || /^(?:$|[ \t]|-[ \t]|[A-Za-z_][\w-]*[ \t]*:)/.test(line)
}
