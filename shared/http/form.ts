/**
 * Reads what an HTML form sends, application/x-www-form-urlencoded, as the URL standard says and in one pass. Node's own
 * `URLSearchParams` takes quadratic time for text without `=`: a megabyte of `a&` takes seconds. Nothing but this module
 * may hand it foreign text, and this module hands it pairs.
 */
import { isUtf8 } from 'node:buffer'

/** The largest form of ours has a dozen fields. */
export const MAX_FORM_PAIRS = 64
/** Names, addresses and settings. Pages and other long text have bounds of their own. */
export const MAX_FORM_BYTES = 64_000

export type FormProblem = 'too many fields' | 'not UTF-8'

/** Strict: what no browser sends is no form. */
export function parseForm(text: string): URLSearchParams | FormProblem {
  return read(text, { maxPairs: MAX_FORM_PAIRS, isStrict: true })
}

/** The query of an address, whose length the server bounds. */
export function parseQuery(text: string): URLSearchParams {
  const query = read(text, { maxPairs: Infinity, isStrict: false })
  return typeof query === 'string' ? new URLSearchParams() : query
}

interface Terms {
  readonly maxPairs: number
  /** Otherwise bytes that are no UTF-8 become U+FFFD, as the URL standard says. */
  readonly isStrict: boolean
}

function read(text: string, terms: Terms): URLSearchParams | FormProblem {
  const pairs: [string, string][] = []
  for (let start = 0; start < text.length;) {
    const mark = text.indexOf('&', start)
    const end = mark < 0 ? text.length : mark
    if (end > start) {
      if (pairs.length === terms.maxPairs) return 'too many fields'
      const [name, value] = pairOf(text.slice(start, end), terms)
      if (name === undefined || value === undefined) return 'not UTF-8'
      pairs.push([name, value])
    }
    start = end + 1
  }
  return new URLSearchParams(pairs)
}

function pairOf(text: string, terms: Terms): [string | undefined, string | undefined] {
  const equals = text.indexOf('=')
  if (equals < 0) return [decode(text, terms), '']
  return [decode(text.slice(0, equals), terms), decode(text.slice(equals + 1), terms)]
}

/** What is no escape stands for itself. Undefined where the terms are strict and the bytes are no UTF-8. */
function decode(text: string, { isStrict }: Terms): string | undefined {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  const bytes = Buffer.from(spaced)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const escaped = bytes[at] === PERCENT ? hexPair(bytes, at + 1) : -1
    bytes[length++] = escaped < 0 ? bytes[at]! : escaped
    if (escaped >= 0) at += 2
  }
  const decoded = bytes.subarray(0, length)
  return isStrict && !isUtf8(decoded) ? undefined : decoded.toString()
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
