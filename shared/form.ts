/**
 * Reads what an HTML form sends, application/x-www-form-urlencoded, as the URL standard says and in one pass. Node's own
 * `URLSearchParams` takes quadratic time for text without `=`: a megabyte of `a&` takes seconds. Nothing but this module
 * may hand it foreign text, and this module hands it pairs.
 */

/** The largest form of ours has a dozen fields. */
export const MAX_FORM_PAIRS = 64
/** Names, addresses and settings. Pages and other long text have bounds of their own. */
export const MAX_FORM_BYTES = 64_000

/** Undefined when there are more pairs than that. */
export function parseForm(text: string, maxPairs = MAX_FORM_PAIRS): URLSearchParams | undefined {
  const pairs: [string, string][] = []
  for (let start = 0; start < text.length;) {
    const mark = text.indexOf('&', start)
    const end = mark < 0 ? text.length : mark
    if (end > start) {
      if (pairs.length === maxPairs) return undefined
      pairs.push(pairOf(text.slice(start, end)))
    }
    start = end + 1
  }
  return new URLSearchParams(pairs)
}

/** The query of an address, whose length the server bounds. */
export function parseQuery(text: string): URLSearchParams {
  return parseForm(text, text.length) ?? new URLSearchParams()
}

function pairOf(text: string): [string, string] {
  const equals = text.indexOf('=')
  return equals < 0 ? [decode(text), ''] : [decode(text.slice(0, equals)), decode(text.slice(equals + 1))]
}

/** What is no escape stands for itself; bytes that are no UTF-8 become U+FFFD. */
function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  const bytes = Buffer.from(spaced)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const escaped = bytes[at] === PERCENT ? hexPair(bytes, at + 1) : -1
    bytes[length++] = escaped < 0 ? bytes[at]! : escaped
    if (escaped >= 0) at += 2
  }
  return bytes.toString('utf8', 0, length)
}

const PERCENT = 0x25

/** -1 where there are no two hexadecimal digits. */
function hexPair(bytes: Buffer, at: number): number {
  const [high, low] = [hexDigit(bytes[at]), hexDigit(bytes[at + 1])]
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
