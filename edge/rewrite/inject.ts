/**
 * Puts the snippets into a page, at the places that a real HTML scan found when the version was published. The result is
 * a list of pieces, of the page and of ours: small pages are joined in memory, large ones are streamed piece by piece.
 */
import type { ManifestFile } from '../../shared/contracts/manifest.ts'
import type { Snippets } from '../context.ts'
import { CSP_LIMITS } from '../../shared/contracts/limits.ts'
import { extendPolicy } from './csp.ts'

export type Injection = NonNullable<ManifestFile['injection']>

/** Bytes of the page as it was published, up to and without `end`; or bytes of ours. */
export type Piece = { readonly start: number; readonly end: number } | { readonly bytes: Buffer }

interface Edit {
  readonly start: number
  readonly end: number
  readonly bytes: Buffer
}

/** What must be looked at in the page itself before anything is put into it: these ranges, a few bytes each. */
interface Look {
  readonly start: number
  readonly end: number
}

const FRAMESET = '<frameset'
/** Whoever wrote a page with it has chosen a picture. */
const OWN_PICTURE = 'og:image'

/** Enough to find the end of the body in, when it was not looked for before. */
const TAIL_BYTES = 4096

/** All other bytes of the page stay as they were published. A page that was not scanned gets everything at its end. */
export function inject(bytes: Buffer, injection: Injection | undefined, snippets: Snippets): Buffer {
  const seen = looksAt(bytes.length, injection, snippets).map(({ start, end }) => bytes.subarray(start, end))
  const pieces = piecesOf(bytes.length, editsOf(bytes.length, injection, snippets, seen))
  return Buffer.concat(pieces.map((piece) => ('bytes' in piece ? piece.bytes : bytes.subarray(piece.start, piece.end))))
}

/** The same, of a page that is not in memory. */
export async function injectedPieces(
  size: number,
  injection: Injection | undefined,
  snippets: Snippets,
  read: (start: number, end: number) => Promise<Buffer>,
): Promise<Piece[]> {
  const seen: Buffer[] = []
  for (const { start, end } of looksAt(size, injection, snippets)) seen.push(await read(start, end))
  return piecesOf(size, editsOf(size, injection, snippets, seen))
}

export function sizeOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, piece) => sum + lengthOf(piece), 0)
}

/** The pieces of a part of the whole. `end` belongs to it, as in a range of HTTP. */
export function cutPieces(pieces: readonly Piece[], range: { start: number; end: number }): Piece[] {
  const cut: Piece[] = []
  let position = 0
  for (const piece of pieces) {
    const length = lengthOf(piece)
    const from = Math.max(0, range.start - position)
    const to = Math.min(length, range.end + 1 - position)
    if (from < to)
      cut.push(
        'bytes' in piece
          ? { bytes: piece.bytes.subarray(from, to) }
          : { start: piece.start + from, end: piece.start + to },
      )
    position += length
  }
  return cut
}

function lengthOf(piece: Piece): number {
  return 'bytes' in piece ? piece.bytes.length : piece.end - piece.start
}

function piecesOf(size: number, edits: readonly Edit[]): Piece[] {
  const pieces: Piece[] = []
  let position = 0
  for (const edit of edits) {
    if (edit.start < position || edit.end > size)
      throw new RangeError(`injection offset ${edit.start} does not fit a page of ${size} bytes`)
    pieces.push({ start: position, end: edit.start }, { bytes: edit.bytes })
    position = edit.end
  }
  pieces.push({ start: position, end: size })
  return pieces.filter((piece) => lengthOf(piece) > 0)
}

function looksAt(size: number, injection: Injection | undefined, { markup, card }: Snippets): Look[] {
  if (injection) {
    const heads = card === undefined ? [] : [{ start: 0, end: injection.head }]
    const quotes = policiesOf(injection).map(({ start }) => ({ start: Math.max(0, start - 1), end: start }))
    const { head, body } = injection
    const frameset = { start: head, end: Math.min(head + FRAMESET.length, size) }
    return [...quotes, ...heads, ...(body === null ? [frameset] : [])]
  }
  return markup === 'xhtml'
    ? [{ start: Math.max(0, size - TAIL_BYTES), end: size }]
    : [{ start: 0, end: Math.min(2, size) }]
}

/** In the order of the page. A page of frames has no body: the badge is a frame of its own there. */
function editsOf(
  size: number,
  injection: Injection | undefined,
  snippets: Snippets,
  seen: readonly Buffer[],
): readonly Edit[] {
  if (!injection) return snippets.markup === 'xhtml' ? beforeBodyEnd(size, snippets, seen) : atEnd(size, snippets, seen)
  const { head, body } = injection
  const edits: Edit[] = [{ start: head, end: head, bytes: snippets.head }]
  if (snippets.card && !seen[policiesOf(injection).length]?.includes(OWN_PICTURE))
    edits.push({ start: head, end: head, bytes: snippets.card })
  const frames = body === null && isFrameset(seen.at(-1)) ? snippets.frames : undefined
  if (body !== null) edits.push({ start: body, end: body, bytes: snippets.body })
  if (frames)
    edits.push({ start: head, end: head, bytes: frames.open }, { start: size, end: size, bytes: frames.close })
  const needs = frames ? { ...snippets.csp, frameSrc: [...snippets.csp.frameSrc, 'data:'] } : snippets.csp
  // A card asks nothing of a policy, which then stays as it was written.
  const policies = Object.values(needs).some((sources) => sources.length > 0) ? policiesOf(injection) : []
  for (const [index, { policy, start, end }] of policies.entries()) {
    const value = attributeValue(extendPolicy(policy, needs), isQuote(seen[index]?.[0]))
    edits.push({ start, end, bytes: Buffer.from(value) })
  }
  // Equal offsets (a page without body) keep the head first: sorting is stable.
  return edits.sort((a, b) => a.start - b.start)
}

/** Manifests of earlier releases name the end of the head instead, before which nothing can stand around the frames. */
function isFrameset(seen: Buffer | undefined): boolean {
  return seen?.toString('latin1').toLowerCase() === FRAMESET
}

/** Browsers take what follows `</html>` for the end of the body. */
function atEnd(size: number, { head, body }: Snippets, [beginning]: readonly Buffer[]): Edit[] {
  return [{ start: size, end: size, bytes: encodedLike(beginning, Buffer.concat([head, body])) }]
}

/** XML allows no element behind the root. What has no end of a body is no page either. */
function beforeBodyEnd(size: number, { head, body }: Snippets, [tail = Buffer.alloc(0)]: readonly Buffer[]): Edit[] {
  const found = tail.lastIndexOf('</body')
  const at = size - tail.length + found
  return found < 0 ? [] : [{ start: at, end: at, bytes: Buffer.concat([head, body]) }]
}

/** Snippets are ASCII, which fits every page but one in UTF-16. */
function encodedLike(beginning: Buffer | undefined, ascii: Buffer): Buffer {
  if (beginning?.[0] === 0xff && beginning[1] === 0xfe) return Buffer.from(ascii.toString(), 'utf16le')
  if (beginning?.[0] === 0xfe && beginning[1] === 0xff) return Buffer.from(ascii.toString(), 'utf16le').swap16()
  return ascii
}

/** All policies hold at once, so extending some of them is of no use. */
function policiesOf({ csp = [] }: Injection): NonNullable<Injection['csp']> {
  const chars = csp.reduce((sum, { policy }) => sum + policy.length, 0)
  const { extended } = CSP_LIMITS
  return csp.length <= extended.policies && chars <= extended.chars ? csp : []
}

function isQuote(byte: number | undefined): boolean {
  return byte === 0x22 || byte === 0x27
}

/** Only ASCII goes out, so that the charset of the page does not matter. An unquoted value gets quotes. */
function attributeValue(text: string, quoted: boolean): string {
  const escaped = text.replace(/[^\x20\x23-\x25\x28-\x3b\x3d\x3f-\x7e]/gu, (char) => `&#${char.codePointAt(0)};`)
  return quoted ? escaped : `"${escaped}"`
}
