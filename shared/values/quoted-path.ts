const MAX_QUOTED_CHARS = 120
// oxlint-disable-next-line no-control-regex -- control characters are exactly what must be replaced
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** A path as it may appear in an error message: printable and short. */
export function quotePath(path: string): string {
  const start = path.slice(0, MAX_QUOTED_CHARS)
  const printable = start.replace(UNPRINTABLE, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  const isWhole = path.length <= MAX_QUOTED_CHARS && printable.length <= MAX_QUOTED_CHARS
  const text = isWhole ? printable : `${printable.slice(0, MAX_QUOTED_CHARS - 3)}…`
  return `"${text.toWellFormed()}"`
}
