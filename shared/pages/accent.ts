/**
 * One colour of an operator's choice becomes the four that pages use, in light and in dark. Whatever was chosen, texts in
 * these colours meet WCAG AA: the colour is made darker on paper, and lighter in the dark, until they do.
 */

/** `#rrggbb` each. */
export interface Shades {
  readonly accent: string
  readonly strong: string
  readonly soft: string
  readonly onAccent: string
}

export interface Palette {
  readonly light: Shades
  readonly dark: Shades
}

/** The colours of the house. */
export const HOUSE_PALETTE: Palette = {
  light: { accent: '#0a6864', strong: '#064a47', soft: '#dcf0ec', onAccent: '#fff' },
  dark: { accent: '#62d2c5', strong: '#9be9df', soft: '#12332f', onAccent: '#04211d' },
}

/** Contrast of text with what is behind it, WCAG 2.2 §1.4.3. */
const AA = 4.5
/** The darkest of the light surfaces and the lightest of the dark ones (design.ts): what is readable there is so on all. */
const LIGHT_SURFACE = '#ecf2f0'
const DARK_SURFACE = '#14201e'
const DARK_PAPER = '#0d1514'
/** How far a colour moves at a time. */
const STEP = 0.04

type Rgb = readonly [red: number, green: number, blue: number]

export function isColour(text: string): boolean {
  return /^#[0-9a-f]{6}$/i.test(text)
}

export function paletteOf(colour: string): Palette {
  const chosen = rgbOf(colour)
  const light = until(chosen, [0, 0, 0], rgbOf(LIGHT_SURFACE))
  const dark = until(chosen, [255, 255, 255], rgbOf(DARK_SURFACE))
  const lightSoft = mixed(light, [255, 255, 255], 0.88)
  const darkSoft = mixed(dark, rgbOf(DARK_PAPER), 0.84)
  return {
    light: {
      accent: hexOf(light),
      strong: hexOf(until(mixed(light, [0, 0, 0], 0.3), [0, 0, 0], lightSoft)),
      soft: hexOf(lightSoft),
      onAccent: '#fff',
    },
    dark: {
      accent: hexOf(dark),
      strong: hexOf(until(mixed(dark, [255, 255, 255], 0.4), [255, 255, 255], darkSoft)),
      soft: hexOf(darkSoft),
      onAccent: hexOf(mixed(dark, [0, 0, 0], 0.88)),
    },
  }
}

/** Moves a colour towards another until it is readable on a surface; at the latest it arrives. */
function until(colour: Rgb, towards: Rgb, surface: Rgb): Rgb {
  let share = 0
  let moved = colour
  while (contrast(moved, surface) < AA && share < 1) {
    share = Math.min(1, share + STEP)
    moved = mixed(colour, towards, share)
  }
  return moved
}

function mixed(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (index: 0 | 1 | 2): number => Math.round(from[index] + (to[index] - from[index]) * share)
  return [part(0), part(1), part(2)]
}

function contrast(a: Rgb, b: Rgb): number {
  const [lighter, darker] = [luminance(a), luminance(b)].toSorted((x, y) => y - x)
  return ((lighter ?? 0) + 0.05) / ((darker ?? 0) + 0.05)
}

function luminance([red, green, blue]: Rgb): number {
  const linear = (value: number): number => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

export function contrastOf(a: string, b: string): number {
  return contrast(rgbOf(a), rgbOf(b))
}

function rgbOf(hex: string): Rgb {
  const long = hex.length === 4 ? hex.replaceAll(/[0-9a-f]/gi, '$&$&') : hex
  const part = (at: number): number => Number.parseInt(long.slice(at, at + 2), 16)
  return [part(1), part(3), part(5)]
}

function hexOf(colour: Rgb): string {
  return `#${colour.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}
