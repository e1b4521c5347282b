/** Text of HTML: character references resolved where a publisher really uses them, and written safely. */

/** The references that occur in titles and addresses; others stay as written, which only costs a warning's beauty. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['nbsp', '\u00a0'],
  ['ndash', '–'],
  ['mdash', '—'],
  ['hellip', '…'],
  ['copy', '©'],
])

const LAST_CODE_POINT = 0x10ffff

export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,8})|#[xX]([0-9a-fA-F]{1,7})|([a-zA-Z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return NAMED.get(name) ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code > 0 && code <= LAST_CODE_POINT ? String.fromCodePoint(code) : whole
  })
}

/** Text of a piece of markup. */
export function textOf(html: string): string {
  return decodeReferences(html.replace(/<[^<>]*>/g, '')).trim()
}

/** Postgres takes neither U+0000 nor half a surrogate pair; as in HTML, U+FFFD stands for them. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** One line that can be stored, no more than `maxChars`. */
export function shorten(text: string, maxChars: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return storable(line.length <= maxChars ? line : `${line.slice(0, maxChars - 1).trimEnd()}…`)
}
