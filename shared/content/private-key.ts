/**
 * Finds private keys in texts. A mark alone is no key: libraries and manuals are full of them. What follows it tells,
 * up to the mark of its end: only base64, in lines or in the strings of a program. Pure; linear in the text.
 */

/** What a content says about private keys. Each says more than the one before it. */
export type KeyTrace =
  | 'none'
  /** A mark: in a file whose name says that it holds a key, it does. */
  | 'mark'
  /** A mark with what may be a key behind it. */
  | 'key'
  /** A key whose bytes say their own length: it can be used as it stands. */
  | 'whole key'

/** Every key begins with this: without it there is no need to read a content as text. */
export const KEY_MARK = 'PRIVATE KEY'

const MARK = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
const END = '-----END'

/** The largest keys in use have half of it. */
export const MAX_KEY_CHARS = 20_000
/** `Proc-Type`, `DEK-Info`, `Version`, `Comment` and the like stand before a key. */
const MAX_KEY_HEADERS = 8
/** A line of a key has 64 characters or more; names of variables and words of a manual are shorter. */
const MIN_LINE_CHARS = 40

export function keyIn(text: string): KeyTrace {
  let trace: KeyTrace = 'none'
  for (const { index, 0: mark } of text.matchAll(MARK)) {
    const body = bodyAt(text, index + mark.length)
    if (body?.isWhole) return 'whole key'
    if (trace !== 'key') trace = body === undefined ? 'mark' : 'key'
  }
  return trace
}

/** What a mark and its end enclose, or the end of the text; undefined when that is no key. */
function bodyAt(text: string, start: number): { readonly isWhole: boolean } | undefined {
  const { position, hasHeaders } = skipHeaders(text, start)
  BODY.lastIndex = position
  const stretch = BODY.exec(text.slice(0, position + MAX_KEY_CHARS))?.[0] ?? ''
  const end = position + stretch.length
  if (end < text.length && stretch.length < MAX_KEY_CHARS && !text.startsWith(END, end)) return undefined
  const lines = stretch.replaceAll(WRITTEN_BREAK, '\n')
  const base64 = lines.replaceAll(/[^A-Za-z0-9+/=]/g, '')
  const isInLines = hasHeaders || /^[ \t\r]*\n/.test(lines)
  const words = lines.split(/[^A-Za-z0-9+/=]+/).filter((word) => word !== '')
  const isSpaced = lines.split('\n').some((line) => /[ \t"',;\\]/.test(line.trim()))
  const isKey = isInLines && !isSpaced ? words.length > 0 : words.some((word) => word.length >= MIN_LINE_CHARS)
  return isKey ? { isWhole: hasHeaders ? base64.length >= MIN_SEALED_CHARS : isWhole(base64) } : undefined
}

/** What a key consists of, in a file of its own or in the strings of a program. */
const BODY = /[A-Za-z0-9+/=\s\\"',;]*/y
/** A line break as programs and JSON write it. */
const WRITTEN_BREAK = /\\[nr]/g
/** A key with a header before it is sealed with a password or packed by PGP: its bytes say nothing. */
const MIN_SEALED_CHARS = 200

const HEADER = /\s*[A-Z][A-Za-z-]{1,30}: [^\n]{0,200}\n/y

function skipHeaders(text: string, start: number): { position: number; hasHeaders: boolean } {
  let position = start
  for (let count = 0; count < MAX_KEY_HEADERS; count++) {
    HEADER.lastIndex = position
    if (!HEADER.test(text)) break
    position = HEADER.lastIndex
  }
  return { position, hasHeaders: position > start }
}

/** The bytes are a sequence of DER as long as it says, or of OpenSSH's own format. */
function isWhole(base64: string): boolean {
  const bytes = decoded(base64)
  if (bytes.startsWith('openssh-key-v1\0')) return true
  if (bytes.charCodeAt(0) !== 0x30) return false
  const first = bytes.charCodeAt(1)
  if (first < 0x80) return bytes.length === 2 + first
  const lengthBytes = Array.from(bytes.slice(2, 2 + (first & 0x7f)), (byte) => byte.charCodeAt(0))
  const length = lengthBytes.reduce((sum, byte) => sum * 256 + byte, 0)
  return bytes.length === 2 + lengthBytes.length + length
}

/** One character for each byte; empty when it is no base64. */
function decoded(base64: string): string {
  try {
    return atob(base64)
  } catch {
    return ''
  }
}
