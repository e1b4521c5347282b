/** Decisions about what machines read. Pure. */
import { CARD_PATH, type SiteRoute } from '../../../shared/contracts/route-record.ts'
import type { ManifestFile } from '../../../shared/contracts/manifest.ts'
import type { Intent, SiteIndex } from '../../context.ts'

export const LLMS_PATH = '/llms.txt'
export const ROBOTS_PATH = '/robots.txt'

type Asset = Extract<Intent, { kind: 'asset' }>

/** Markdown that the publisher wrote: a file of that name beside the page, else what the page was made of. */
export function markdownBeside(
  { path, file }: Pick<Asset, 'path' | 'file'>,
  { files }: Pick<SiteIndex, 'files'>,
): Pick<ManifestFile, 'hash' | 'size'> | undefined {
  const beside = files.get(path.replace(/\.html?$/, '.md'))
  if (beside?.type.startsWith('text/markdown')) return beside
  return file.source !== undefined && /\.(?:md|markdown)$/i.test(file.source.path) ? file.source : undefined
}

/** The address of a page as visitors write it. */
export function shownPath(path: string): string {
  const name = path.replace(/(^|\/)index\.html?$/, '$1')
  return `/${name === path ? path.replace(/\.html$/, '') : name}`
}

/** contentsignals.org: what the owner allows machines to do with the content. */
export function signalOf(ai: SiteRoute['ai']): string | undefined {
  switch (ai) {
    case undefined:
      return undefined
    case 'no-training':
      return 'ai-train=no'
    case 'none':
      return 'ai-train=no, ai-input=no'
    default:
      return ai satisfies never
  }
}

export function robotsTxt(ai: SiteRoute['ai']): string | undefined {
  const signal = signalOf(ai)
  return signal === undefined ? undefined : `User-agent: *\nContent-Signal: ${signal}\nAllow: /\n`
}

/** The picture of a drop, whatever stands behind its name in the address. */
export function isCard(target: string): boolean {
  return target.startsWith(CARD_PATH) && (target.length === CARD_PATH.length || target[CARD_PATH.length] === '?')
}

/** Nothing of the drop itself answers here: there is no such file, or its single page answers to every path. */
export function isGenerated(target: string, intent: Intent, spaFallback: boolean): boolean {
  if (isCard(target)) return true
  if (target !== LLMS_PATH && target !== ROBOTS_PATH) return false
  if (intent.kind === 'asset')
    return intent.status === 404 || (spaFallback && intent.path === 'index.html' && intent.file.injection !== undefined)
  return intent.kind === 'missing'
}
