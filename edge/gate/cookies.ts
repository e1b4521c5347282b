/** Reading one cookie of a request. */

/** Each value costs a comparison; a header full of them must not cost hundreds. */
const MAX_COOKIE_VALUES = 4

/** The values of one name: a browser may send two, and the right one counts; more are never an accident. */
export function cookieValues(header: string, name: string): string[] {
  const values: string[] = []
  for (let start = 0; start < header.length && values.length < MAX_COOKIE_VALUES;) {
    const mark = header.indexOf(';', start)
    const end = mark < 0 ? header.length : mark
    const nameAt = pastSpaces(header, start)
    const equalsAt = pastSpaces(header, nameAt + name.length)
    if (equalsAt < end && header.startsWith(name, nameAt) && header[equalsAt] === '=')
      values.push(header.slice(equalsAt + 1, end).trim())
    start = end + 1
  }
  return values
}

function pastSpaces(text: string, from: number): number {
  let at = from
  while (text[at] === ' ') at += 1
  return at
}
