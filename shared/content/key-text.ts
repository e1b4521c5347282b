/** Looks for private keys in bytes, as they lie in a file or come in pieces: the part of `private-key.ts` that needs Node. */
import { KEY_MARK, keyIn, MAX_KEY_CHARS, type KeyTrace } from './private-key.ts'

/** A file with a zero byte up to here is no text, as git has it. */
const LOOKED_AT_BYTES = 8000
/** More than a mark has. */
const OVERLAP_BYTES = 100
/** What is kept of a content that has marks everywhere. */
const MAX_KEPT_CHARS = 1_000_000

export function keyInBytes(bytes: Buffer): KeyTrace {
  const marked = markedUtf16(bytes)
  if (marked !== undefined) return keyIn(new TextDecoder(marked).decode(bytes))
  return bytes.includes(KEY_MARK) && isText(bytes) ? keyIn(bytes.toString('latin1')) : 'none'
}

/** PowerShell writes what a program prints in this encoding. */
function markedUtf16(bytes: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  const mark = bytes.length < 2 ? undefined : bytes.readUInt16BE(0)
  return mark === 0xff_fe ? 'utf-16le' : mark === 0xfe_ff ? 'utf-16be' : undefined
}

function isText(bytes: Buffer): boolean {
  return !bytes.subarray(0, LOOKED_AT_BYTES).includes(0)
}

/** Keeps what may be a key of a content that is too large to be held. */
export interface KeySearch {
  add(piece: Buffer): void
  found(): KeyTrace
}

export function createKeySearch(): KeySearch {
  let before: Buffer = Buffer.alloc(0)
  let isFirst = true
  let mayBeText = true
  let kept = ''
  /** Bytes after the last mark that are still to be kept. */
  let wanted = 0
  return {
    add(piece) {
      if (isFirst) mayBeText = isText(piece)
      isFirst = false
      if (!mayBeText || kept.length > MAX_KEPT_CHARS) return
      const bytes = Buffer.concat([before, piece])
      const mark = bytes.indexOf(KEY_MARK)
      const start = wanted > 0 ? 0 : Math.max(0, mark - OVERLAP_BYTES)
      if (mark >= 0) wanted = bytes.length + MAX_KEY_CHARS
      kept += bytes.toString('latin1', start, Math.max(start, wanted))
      wanted = Math.max(0, wanted - bytes.length)
      before = wanted > 0 ? Buffer.alloc(0) : Buffer.from(bytes.subarray(-OVERLAP_BYTES))
    },
    found: () => keyIn(kept),
  }
}
