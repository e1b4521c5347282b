/** The text up to the first mark; all of it when there is none: `before('/a?b', '?')` is `/a`. */
export function before(text: string, mark: string): string {
  const at = text.indexOf(mark)
  return at < 0 ? text : text.slice(0, at)
}
