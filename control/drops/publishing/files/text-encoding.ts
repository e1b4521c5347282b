/** Which characters bytes stand for, where UTF-8 is not the answer. */

/** Encodings that are no superset of ASCII: markup in them can be neither found nor inserted byte by byte. */
const ISO_2022_JP: ReadonlySet<string> = new Set(['iso-2022-jp', 'csiso2022jp'])

/** The text of a document: UTF-16 where a byte order mark says so, else UTF-8. The mark is no part of it. */
export function decodeText(bytes: Uint8Array): string {
  return new TextDecoder(markedUtf16(bytes) ?? 'utf-8').decode(bytes)
}

/**
 * A page in UTF-16 or ISO-2022-JP as UTF-8; undefined when it can be served as it is. It begins with a byte order mark,
 * which outranks the encoding that the page, or a header, still declares.
 */
export function pageAsUtf8(bytes: Uint8Array, declaredCharset: string | undefined): Buffer | undefined {
  const isJapanese = declaredCharset !== undefined && ISO_2022_JP.has(declaredCharset)
  const encoding = markedUtf16(bytes) ?? (isJapanese ? 'iso-2022-jp' : undefined)
  return encoding && Buffer.from(`\ufeff${new TextDecoder(encoding).decode(bytes)}`)
}

/** Without a mark it is not taken for UTF-16; browsers do not either. */
function markedUtf16(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return undefined
}
