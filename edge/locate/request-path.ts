/**
 * The path of a request target, decoded exactly once. Never by `new URL`: an absolute-form target would
 * switch the host, and `..` would be resolved before it could be refused.
 */
import { toNfc } from '../../shared/values/nfc.ts'

export type RequestPath =
  /** Starts with one slash, single slashes, no `.` or `..` segment, NFC. `query` includes its `?`, or is empty. */
  | { readonly kind: 'path'; readonly path: string; readonly query: string }
  /** A segment contains an encoded slash: no file can have that name. */
  | { readonly kind: 'unreachable'; readonly path: string }
  | { readonly kind: 'malformed' }

const SLASH = 0x2f
const MALFORMED: RequestPath = { kind: 'malformed' }

export function readPath(target: string): RequestPath {
  const mark = target.indexOf('?')
  const raw = mark < 0 ? target : target.slice(0, mark)
  const query = mark < 0 ? '' : target.slice(mark)
  return isPlain(raw) ? { kind: 'path', path: raw, query } : decodePath(raw, query)
}

/** Nearly every request: printable ASCII that stands for itself. One pass, nothing allocated. */
function isPlain(raw: string): boolean {
  if (raw.charCodeAt(0) !== SLASH) return false
  let previous = 0
  for (let index = 0; index < raw.length; index++) {
    const code = raw.charCodeAt(index)
    // Control characters and space, DEL and everything beyond ASCII, % and \.
    if (code <= 0x20 || code >= 0x7f || code === 0x25 || code === 0x5c) return false
    // An empty segment, or one that starts with a dot and may be `.` or `..`.
    if (previous === SLASH && (code === SLASH || code === 0x2e)) return false
    previous = code
  }
  return true
}

function decodePath(raw: string, query: string): RequestPath {
  if (raw.charCodeAt(0) !== SLASH) return MALFORMED
  const decoded = decode(raw)
  if (decoded === undefined || /\p{Cc}/u.test(decoded)) return MALFORMED
  const path = toNfc(decoded.replace(/\/{2,}/g, '/'))
  // `..` hidden behind an encoded slash is refused as well.
  if (/\/\.\.?(?:\/|$)/.test(path)) return MALFORMED
  return /%2f/i.test(raw) ? { kind: 'unreachable', path } : { kind: 'path', path, query }
}

/** Bytes beyond ASCII that arrive unencoded (as latin1, the way Node hands them over) count as UTF-8. */
function decode(raw: string): string | undefined {
  if (/[^\0-\xff]/.test(raw)) return undefined
  try {
    return decodeURIComponent(raw.replace(/[^\0-\x7f]/g, encodeByte))
  } catch {
    return undefined
  }
}

/** Two digits: the lowest that comes here is 0x80. */
function encodeByte(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16)}`
}
