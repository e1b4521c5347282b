/**
 * Looks at JSON before it is parsed: nesting and the number of values have bounds, whatever the number of bytes. A
 * parser recurses for each bracket, and everything behind it pays for each value. One pass over the bytes, which stops
 * at the first bound; what is no JSON at all is left to the parser.
 */
import { errors, type ApiError } from '../../../../shared/contracts/errors.ts'

export interface JsonBounds {
  readonly maxDepth: number
  /** Members of objects and arrays, all together. */
  readonly maxValues: number
}

/** The list of a bundle of 20,000 files has four per file. */
export const JSON_BOUNDS: JsonBounds = { maxDepth: 32, maxValues: 200_000 }

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d

/** Throws invalid_json for a text that is nested deeper, or holds more values, than its bounds allow. */
export function requireJsonShape(bytes: Buffer, bounds: JsonBounds = JSON_BOUNDS): void {
  let depth = 0
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1)
    } else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) {
      values++
      if (++depth > bounds.maxDepth) throw tooDeep(bounds)
    } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) {
      depth--
    } else if (byte === COMMA && ++values > bounds.maxValues) {
      throw tooMany(bounds)
    }
  }
}

/** The position of the closing quote, or the end. */
function endOfString(bytes: Buffer, start: number): number {
  for (let quote = bytes.indexOf(QUOTE, start); quote >= 0; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let backslashes = 0
    while (bytes[quote - 1 - backslashes] === BACKSLASH && quote - 1 - backslashes >= start) backslashes++
    if (backslashes % 2 === 0) return quote
  }
  return bytes.length
}

function tooDeep({ maxDepth }: JsonBounds): ApiError {
  return errors.invalidJson(`The JSON is nested more than ${maxDepth} levels deep.`)
}

function tooMany({ maxValues }: JsonBounds): ApiError {
  return errors.invalidJson(`The JSON has more than ${maxValues} values.`)
}
