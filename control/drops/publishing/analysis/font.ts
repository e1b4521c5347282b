/** What a TrueType font says of its characters: whether it has one, and how wide it is. Our own font, read once. */

export interface Font {
  has(character: string): boolean
  /** In parts of the size that the text is drawn at, without kerning, which makes it narrower at most. */
  widthOf(text: string): number
}

/** A run of characters whose glyphs are numbered one after another. */
interface Segment {
  readonly first: number
  readonly last: number
  readonly glyph: number
}

/** Reads a font whose characters are listed in segments of 32 bits (cmap format 12), as large fonts have them. */
export function readFont(bytes: Buffer): Font {
  const at = (tag: string): number => offsetOf(bytes, tag)
  const unitsPerEm = bytes.readUInt16BE(at('head') + 18)
  const metricsCount = bytes.readUInt16BE(at('hhea') + 34)
  const metrics = at('hmtx')
  const segments = segmentsOf(bytes, at('cmap'))
  const glyphs = new Map<string, number>()

  function glyphOf(character: string): number {
    let glyph = glyphs.get(character)
    if (glyph === undefined) glyphs.set(character, (glyph = glyphIn(segments, character.codePointAt(0) ?? 0)))
    return glyph
  }

  return {
    has: (character) => glyphOf(character) !== 0,
    widthOf(text) {
      let units = 0
      for (const character of text)
        units += bytes.readUInt16BE(metrics + 4 * Math.min(glyphOf(character), metricsCount - 1))
      return units / unitsPerEm
    },
  }
}

function offsetOf(bytes: Buffer, tag: string): number {
  const count = bytes.readUInt16BE(4)
  for (let entry = 12; entry < 12 + 16 * count; entry += 16)
    if (bytes.toString('latin1', entry, entry + 4) === tag) return bytes.readUInt32BE(entry + 8)
  throw new Error(`the font has no table ${tag}`)
}

function segmentsOf(bytes: Buffer, cmap: number): Segment[] {
  const count = bytes.readUInt16BE(cmap + 2)
  for (let entry = cmap + 4; entry < cmap + 4 + 8 * count; entry += 8) {
    const table = cmap + bytes.readUInt32BE(entry + 4)
    if (bytes.readUInt16BE(table) !== 12) continue
    const groups = bytes.readUInt32BE(table + 12)
    return Array.from({ length: groups }, (_, index) => {
      const group = table + 16 + 12 * index
      return {
        first: bytes.readUInt32BE(group),
        last: bytes.readUInt32BE(group + 4),
        glyph: bytes.readUInt32BE(group + 8),
      }
    })
  }
  throw new Error('the font has no list of characters in segments of 32 bits')
}

/** Segments stand in order. 0 is the glyph of what the font does not have. */
function glyphIn(segments: readonly Segment[], codePoint: number): number {
  let [low, high] = [0, segments.length - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    const { first, last, glyph } = segments[middle]!
    if (codePoint < first) high = middle - 1
    else if (codePoint > last) low = middle + 1
    else return glyph + codePoint - first
  }
  return 0
}
