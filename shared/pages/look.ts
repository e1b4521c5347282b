/** Whose service it is, as people see it: its name, its mark, its colour and its links. Both planes show the same. */
import { HOUSE_PALETTE, type Palette } from './accent.ts'

export interface Logo {
  readonly type: 'image/svg+xml' | 'image/png'
  readonly bytes: Buffer
}

export interface FooterLink {
  readonly label: string
  /** An address, or a path of the service. */
  readonly url: string
}

export interface Look {
  readonly name: string
  /** Undefined: the mark of the house. */
  readonly logo: Logo | undefined
  readonly palette: Palette
  /** Beside those that every page has at its end. */
  readonly links: readonly FooterLink[]
}

/** What an instance looks like to which nobody has given a name. */
export const HOUSE_LOOK: Look = { name: 'Dropway', logo: undefined, palette: HOUSE_PALETTE, links: [] }

/** A page that may load nothing brings its pictures along. */
export function logoAsData({ type, bytes }: Logo): string {
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** Custom properties that replace those of design.ts; nothing where the colours are the house's. */
export function paletteCss({ palette }: Pick<Look, 'palette'>): string {
  if (palette === HOUSE_PALETTE) return ''
  const tokens = ({ accent, strong, soft, onAccent }: Palette['light']): string =>
    `:root{--accent:${accent};--accent-strong:${strong};--accent-soft:${soft};--on-accent:${onAccent}}`
  return `${tokens(palette.light)}@media (prefers-color-scheme:dark){${tokens(palette.dark)}}`
}

/** The name where programs want one without spaces: `Acme Pages` → `acme-pages`. */
export function programNameOf({ name }: Pick<Look, 'name'>): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
  return plain.replace(/^-/, '').replace(/-$/, '') || 'service'
}
