/**
 * The card of a drop: the picture that is shown where its address is shared. Title and address on a colour that is the
 * drop's own. Our font has Latin, Greek and Cyrillic letters: a title in another script is left out rather than drawn as
 * empty boxes, and the address stands in its place.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hash } from 'node:crypto'
import { initWasm, Resvg } from '@resvg/resvg-wasm'
import { CARD_HEIGHT, CARD_WIDTH } from '../../../../shared/contracts/route-record.ts'
import { paletteOf } from '../../../../shared/pages/accent.ts'
import { escape } from '../../../../shared/pages/html.ts'
import { onFirstUse } from '../../../../shared/values/on-first-use.ts'
import { readFont, type Font } from './font.ts'

/** What a card shows. */
export interface CardText {
  readonly title: string
  /** `my-page.dropway.example`. */
  readonly host: string
}

const MARGIN = 88
const TEXT_WIDTH = CARD_WIDTH - 2 * MARGIN
const MAX_TITLE_CHARS = 300
/** The largest counts at which the title fits in its lines with its words whole; its last line ends with … where none does. */
const TITLE_SIZES = [
  { size: 88, lines: 3 },
  { size: 68, lines: 4 },
  { size: 54, lines: 5 },
] as const
const LINE_HEIGHT = 1.18
const HOST_SIZE = 34
const FAMILY = 'Inter'
const require = createRequire(import.meta.url)

/** Calm, and far enough from each other that two drops in a list are told apart. */
const COLOURS = ['#0a6864', '#2f4f9e', '#6a3d9a', '#8a3b5c', '#8a5a14', '#3f6b2a', '#1f6f8b', '#7a4630']

/** A PNG. The same text gives the same bytes. */
export async function drawCard(text: CardText): Promise<Uint8Array> {
  const { font, bytes } = await tools()
  const drawing = new Resvg(cardSvg(text, font), {
    font: { fontBuffers: [bytes], loadSystemFonts: false, defaultFontFamily: FAMILY },
  })
  try {
    const image = drawing.render()
    try {
      return image.asPng()
    } finally {
      image.free()
    }
  } finally {
    drawing.free()
  }
}

/** The library and the font are read when the first card is drawn. */
const tools = onFirstUse(async () => {
  await initWasm(readFileSync(require.resolve('@resvg/resvg-wasm/index_bg.wasm')))
  const bytes = readFileSync(require.resolve('@expo-google-fonts/inter/700Bold/Inter_700Bold.ttf'))
  return { bytes, font: readFont(bytes) }
})

/** Pure. */
export function cardSvg({ title, host }: CardText, font: Font): string {
  const { strong, soft, accent } = paletteOf(colourOf(host)).light
  const headline = drawable(title, font)
  const { size, lines } = fitted(headline ?? host, font)
  const top = MARGIN + size * 0.8
  const titleLines = lines.map(
    (line, index) =>
      `<text x="${MARGIN}" y="${Math.round(top + index * size * LINE_HEIGHT)}" font-size="${size}" fill="#fff">${escape(line)}</text>`,
  )
  const address =
    headline === undefined
      ? ''
      : `<text x="${MARGIN}" y="${CARD_HEIGHT - MARGIN}" font-size="${HOST_SIZE}" fill="${soft}">${escape(cut(host, HOST_SIZE, font))}</text>`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${CARD_WIDTH}" height="${CARD_HEIGHT}" font-family="${FAMILY}" font-weight="700">`,
    `<rect width="${CARD_WIDTH}" height="${CARD_HEIGHT}" fill="${strong}"/>`,
    `<circle cx="1090" cy="560" r="300" fill="${accent}" opacity="0.55"/><circle cx="1150" cy="470" r="170" fill="${soft}" opacity="0.12"/>`,
    `<rect y="${CARD_HEIGHT - 12}" width="${CARD_WIDTH}" height="12" fill="${accent}"/>`,
    ...titleLines,
    address,
    '</svg>',
  ].join('')
}

function colourOf(host: string): string {
  const number = Number.parseInt(hash('sha256', host, 'hex').slice(0, 8), 16)
  return COLOURS[number % COLOURS.length] ?? ''
}

/** The title without pictures and marks that only change how others look; undefined where letters are missing in the font. */
export function drawable(title: string, font: Font): string | undefined {
  const text = title
    .slice(0, MAX_TITLE_CHARS)
    .normalize('NFC')
    .replace(/(?![0-9#*©®™])\p{Emoji}|\p{Emoji_Modifier}|\p{Cc}|\p{Cf}|\p{Cs}|[\ufe00-\ufe0f\u20e3]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return text !== '' && Array.from(text).every((character) => font.has(character)) ? text : undefined
}

function fitted(text: string, font: Font): { size: number; lines: string[] } {
  for (const { size, lines: most } of TITLE_SIZES) {
    const isWhole = text.split(' ').every((word) => fits(word, size, font))
    const lines = wrapped(text, size, font)
    if (isWhole && lines.length <= most) return { size, lines }
  }
  const { size, lines: most } = TITLE_SIZES[2]
  const all = wrapped(text, size, font)
  if (all.length <= most) return { size, lines: all }
  return { size, lines: [...all.slice(0, most - 1), cut(all.slice(most - 1).join(' '), size, font)] }
}

/** Words in lines; one that is wider than a line is divided. */
function wrapped(text: string, size: number, font: Font): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ').flatMap((each) => pieces(each, size, font))) {
    const longer = line === '' ? word : `${line} ${word}`
    if (fits(longer, size, font)) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = word
  }
  return [...lines, line]
}

function pieces(word: string, size: number, font: Font): string[] {
  if (fits(word, size, font)) return [word]
  const found: string[] = []
  let piece = ''
  for (const character of word) {
    if (!fits(piece + character, size, font)) {
      found.push(piece)
      piece = ''
    }
    piece += character
  }
  return [...found, piece]
}

function cut(text: string, size: number, font: Font): string {
  if (fits(text, size, font)) return text
  const characters = Array.from(text)
  while (characters.length > 0 && !fits(`${characters.join('')}…`, size, font)) characters.pop()
  return `${characters.join('').trimEnd()}…`
}

function fits(text: string, size: number, font: Font): boolean {
  return font.widthOf(text) * size <= TEXT_WIDTH
}
