/**
 * A message that is too large to be kept is answered all the same, as a tool's error that says how to publish it: a
 * client shows that to its model, but hides an HTTP 413. For that the id of the call is read off the body while
 * it passes by. Linear, and it keeps nothing but the id.
 */

import { errors } from '../../../shared/contracts/errors.ts'

/** What a body turned out to be. */
export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'oversize'; readonly id: RpcId }

type RpcId = string | number | null

/** An id is a number or a short text. */
const MAX_ID_CHARS = 200

export async function readBody(
  body: AsyncIterable<Buffer>,
  limits: { maxBytes: number; maxDrainedBytes: number },
  hold: (bytes: number) => void,
): Promise<Body> {
  const chunks: Buffer[] = []
  const scanner = createIdScanner()
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limits.maxDrainedBytes) return endless(scanner.id(), limits.maxDrainedBytes)
    if (size <= limits.maxBytes) {
      hold(chunk.length)
      chunks.push(chunk)
    } else if (chunks.length > 0) {
      hold(-(size - chunk.length))
      chunks.length = 0
    }
    scanner.push(chunk)
  }
  return size <= limits.maxBytes
    ? { kind: 'whole', bytes: Buffer.concat(chunks) }
    : { kind: 'oversize', id: scanner.id() }
}

/** A call without an id cannot be answered: its client hears at least that the request failed. */
function endless(id: RpcId, maxBytes: number): Body {
  if (id === null) throw errors.uploadTooLarge(maxBytes)
  return { kind: 'oversize', id }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d

/** Follows the structure of a JSON text byte by byte, and notes the value of `id` of the outermost object. */
export function createIdScanner(): { push(chunk: Uint8Array): void; id(): RpcId } {
  let depth = 0
  let inString = false
  let isEscaped = false
  /** What was read of the name or the value at depth 1 that the scanner is at. */
  let text = ''
  let isValue = false
  let name = ''
  let id = 'null'

  function note(byte: number): void {
    if (depth === 1 && text.length < MAX_ID_CHARS) text += String.fromCharCode(byte)
  }

  /** The end of a member of the outermost object. */
  function endMember(): void {
    if (isValue && name === '"id"') id = text
    isValue = false
    text = ''
  }

  function structure(byte: number): void {
    if (isOpening(byte)) depth++
    else if (isClosing(byte)) {
      if (depth === 1) endMember()
      depth--
    } else if (depth === 1 && byte === COLON) {
      name = text.trim()
      text = ''
      isValue = true
    } else if (depth === 1 && byte === COMMA) endMember()
    else note(byte)
  }

  return {
    push(chunk) {
      for (const byte of chunk) {
        if (inString) {
          note(byte)
          if (isEscaped) isEscaped = false
          else if (byte === BACKSLASH) isEscaped = true
          else if (byte === QUOTE) inString = false
        } else if (byte === QUOTE) {
          inString = true
          note(byte)
        } else structure(byte)
      }
    },
    id() {
      try {
        const value: unknown = JSON.parse(id)
        return typeof value === 'string' || typeof value === 'number' ? value : null
      } catch {
        return null
      }
    },
  }
}
