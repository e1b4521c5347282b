/** SERVICE_NAME, SERVICE_LOGO, SERVICE_ACCENT and SERVICE_LINKS: how an instance is called and what it looks like. */
import { readFileSync } from 'node:fs'
import { HOUSE_PALETTE, isColour, paletteOf, type Palette } from '../pages/accent.ts'
import { HOUSE_LOOK, type FooterLink, type Logo, type Look } from '../pages/look.ts'
import type { EnvReader } from './env.ts'

/** It stands in titles, subjects of mails and buttons. */
export const MAX_SERVICE_NAME_CHARS = 60
/** Pages of the edge bring it along: they load nothing. */
export const MAX_LOGO_BYTES = 64_000
/** More would be a navigation of its own. */
export const MAX_FOOTER_LINKS = 8

const PNG_START = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export function readLook(env: EnvReader): Look {
  return { name: readName(env), logo: readLogo(env), palette: readPalette(env), links: readLinks(env) }
}

function readName(env: EnvReader): string {
  const name = env.text('SERVICE_NAME', HOUSE_LOOK.name)
  const isFit = name.length <= MAX_SERVICE_NAME_CHARS && !/[\p{Cc}<>"]/u.test(name)
  if (isFit) return name
  return env.problem(
    `SERVICE_NAME must be one line of at most ${MAX_SERVICE_NAME_CHARS} characters without < > "`,
    HOUSE_LOOK.name,
  )
}

function readLogo(env: EnvReader): Logo | undefined {
  const file = env.file('SERVICE_LOGO')
  if (file === undefined) return undefined
  const logo = logoOf(readFileSync(file))
  return typeof logo === 'string' ? env.problem(`SERVICE_LOGO ${logo}, which "${file}" is not`, undefined) : logo
}

/** The picture, or what it must be. */
export function logoOf(bytes: Buffer): Logo | string {
  if (bytes.length > MAX_LOGO_BYTES) return `must be a file of at most ${MAX_LOGO_BYTES / 1000} kB`
  if (bytes.subarray(0, PNG_START.length).equals(PNG_START)) return { type: 'image/png', bytes }
  const start = bytes.subarray(0, 4000).toString('utf8')
  return /^\uFEFF?\s*</.test(start) && start.includes('<svg')
    ? { type: 'image/svg+xml', bytes }
    : 'must be an SVG or a PNG picture'
}

function readPalette(env: EnvReader): Palette {
  const colour = env.optional('SERVICE_ACCENT')
  if (colour === undefined) return HOUSE_PALETTE
  if (isColour(colour)) return paletteOf(colour)
  return env.problem(`SERVICE_ACCENT must be a colour such as #7a1fa2, not "${colour}"`, HOUSE_PALETTE)
}

function readLinks(env: EnvReader): readonly FooterLink[] {
  const links = env.list('SERVICE_LINKS').map((entry) => {
    const [, label = '', url = ''] = /^([^=]+)=(.+)$/.exec(entry) ?? []
    return { label: label.trim(), url: url.trim() }
  })
  for (const { label, url } of links)
    if (label === '' || label.length > 40 || !/^(?:https?:\/\/|mailto:|\/(?!\/))/.test(url))
      env.problem('SERVICE_LINKS must list "Label=https://…", separated by commas; also mailto:… or a path', undefined)
  if (links.length > MAX_FOOTER_LINKS)
    env.problem(`SERVICE_LINKS must not list more than ${MAX_FOOTER_LINKS} links`, undefined)
  return links
}

/** The sender of mails: a name with other characters than letters, digits and spaces has to stand in quotes (RFC 5322 §3.4). */
export function senderOf(name: string, address: string): string {
  return /^[\p{L}\p{N} ]+$/u.test(name) ? `${name} <${address}>` : `"${name.replaceAll(/[\\"]/g, '')}" <${address}>`
}
