/**
 * The arrays that our queries use, as literals. The driver would ask every new connection for all array types, and end
 * the process where Postgres goes away during that question (no caller awaits the answer).
 */
const TEXT_ARRAY = 1009
const BIGINT_ARRAY = 1016
const DATE_ARRAY = 1182

type Elements = readonly (string | number | null)[]

export function arrayLiteral(elements: Elements): string {
  // Lists of hashes are long, and nothing in them has to be escaped.
  if (elements.length > 0 && !elements.includes(null) && !/["\\]/.test(elements.join('')))
    return `{"${elements.join('","')}"}`
  const quoted = elements.map((element) =>
    element === null ? 'NULL' : `"${String(element).replaceAll(/["\\]/g, String.raw`\$&`)}"`,
  )
  return `{${quoted.join(',')}}`
}

/** One dimension, as Postgres prints it: quoted where it must be. */
export function parseTextArray(literal: string): (string | null)[] {
  return Array.from(literal.matchAll(/"((?:[^"\\]|\\.)*)"|[^,{}]+/gsu), ([bare, quoted]) => {
    if (quoted !== undefined) return quoted.replaceAll(/\\(.)/gsu, '$1')
    return bare === 'NULL' ? null : bare
  })
}

const numbers = (literal: string): (number | null)[] =>
  parseTextArray(literal).map((element) => (element === null ? null : Number(element)))

export const arrayTypes = {
  texts: { to: TEXT_ARRAY, from: [TEXT_ARRAY], serialize: arrayLiteral, parse: parseTextArray },
  bigints: { to: BIGINT_ARRAY, from: [BIGINT_ARRAY], serialize: arrayLiteral, parse: numbers },
  dates: { to: DATE_ARRAY, from: [DATE_ARRAY], serialize: arrayLiteral, parse: parseTextArray },
}
