/** Puts the snippets into a page, at the places that a real HTML scan found when the version was published. */
import type { ManifestFile } from '../../shared/manifest.ts'
import type { Snippets } from '../context.ts'
import { extendPolicy, MAX_POLICIES, MAX_POLICY_CHARS } from './csp.ts'

export type Injection = NonNullable<ManifestFile['injection']>

interface Edit {
  readonly start: number
  readonly end: number
  readonly bytes: Buffer
}

/** All other bytes of the page stay as they were published. A page that was not scanned gets everything at its end. */
export function inject(bytes: Buffer, injection: Injection | undefined, snippets: Snippets): Buffer {
  if (injection === undefined) return append(bytes, snippets)
  const parts: Buffer[] = []
  let position = 0
  for (const edit of editsOf(bytes, injection, snippets)) {
    if (edit.start < position || edit.end > bytes.length)
      throw new RangeError(`injection offset ${edit.start} does not fit a page of ${bytes.length} bytes`)
    parts.push(bytes.subarray(position, edit.start), edit.bytes)
    position = edit.end
  }
  parts.push(bytes.subarray(position))
  return Buffer.concat(parts)
}

/** Browsers take what follows `</html>` for the end of the body. */
function append(bytes: Buffer, { head, body }: Snippets): Buffer {
  return Buffer.concat([bytes, encodedLike(bytes, head), encodedLike(bytes, body)])
}

/** Snippets are ASCII, which fits every page but one in UTF-16. */
function encodedLike(page: Buffer, ascii: Buffer): Buffer {
  if (page[0] === 0xff && page[1] === 0xfe) return Buffer.from(ascii.toString(), 'utf16le')
  if (page[0] === 0xfe && page[1] === 0xff) return Buffer.from(ascii.toString(), 'utf16le').swap16()
  return ascii
}

/** In the order of the page. A frameset page has no body: it only gets what belongs into the head. */
function editsOf(bytes: Buffer, { head, body, csp }: Injection, snippets: Snippets): Edit[] {
  const edits: Edit[] = [{ start: head, end: head, bytes: snippets.head }]
  if (body !== null) edits.push({ start: body, end: body, bytes: snippets.body })
  for (const { policy, start, end } of mayBeExtended(csp ?? []) ? csp! : []) {
    const value = attributeValue(extendPolicy(policy, snippets.csp), isQuoted(bytes, start))
    edits.push({ start, end, bytes: Buffer.from(value) })
  }
  // Equal offsets (a page without body) keep the head first: sorting is stable.
  return edits.sort((a, b) => a.start - b.start)
}

/** All policies hold at once, so extending some of them is of no use. */
function mayBeExtended(policies: NonNullable<Injection['csp']>): boolean {
  return (
    policies.length > 0 &&
    policies.length <= MAX_POLICIES &&
    policies.reduce((sum, { policy }) => sum + policy.length, 0) <= MAX_POLICY_CHARS
  )
}

function isQuoted(bytes: Buffer, start: number): boolean {
  const before = bytes[start - 1]
  return before === 0x22 || before === 0x27
}

/** Only ASCII goes out, so that the charset of the page does not matter. An unquoted value gets quotes. */
function attributeValue(text: string, quoted: boolean): string {
  const escaped = text.replace(/[^\x20\x23-\x25\x28-\x3b\x3d\x3f-\x7e]/gu, (char) => `&#${char.codePointAt(0)};`)
  return quoted ? escaped : `"${escaped}"`
}
