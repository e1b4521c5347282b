/**
 * Configuration files of other hosts that lie in an upload. None of them is published. What four of them say about
 * redirects, headers and clean URLs is translated; everything else is named in the report, because a publisher may rely
 * on it. Pure.
 */

/** A rule in the terms of `_redirects`. */
export interface TranslatedRedirect {
  /** Where it stands: `redirects[2]`. */
  readonly at: string
  readonly from: string
  readonly to: string
  readonly status: number
  readonly force: boolean
}

/** A rule in the terms of `_headers`. */
export interface TranslatedHeaders {
  readonly at: string
  readonly from: string
  readonly set: readonly (readonly [name: string, value: string])[]
}

export interface Translation {
  readonly redirects: readonly TranslatedRedirect[]
  readonly headers: readonly TranslatedHeaders[]
  /** What does nothing here, each with its place and the reason. */
  readonly ignored: readonly string[]
}

/** How the pages of an upload lie in it. */
export interface PageLayout {
  /** `about.html`: its address has no slash at the end. */
  readonly hasFlatPages: boolean
  /** `about/index.html`: its address has one. */
  readonly hasFolderPages: boolean
}

/** Read and translated when they lie at the root; where two of them are, the earlier one counts first. */
export const TRANSLATED_FILES = ['netlify.toml', 'vercel.json', 'firebase.json', 'staticwebapp.config.json'] as const
export type TranslatedFile = (typeof TRANSLATED_FILES)[number]

/** Servers read these in every folder, without regard to case; a worker is a file or a folder. */
const OTHER_FILES = /(?:^|\/)(?:\.htaccess|web\.config)$|^_worker\.js(?:\/|$)/i

export function isTranslatedFile(path: string): path is TranslatedFile {
  return (TRANSLATED_FILES as readonly string[]).includes(path)
}

/** True for every file that another host would read and not serve. */
export function isHostFile(path: string): boolean {
  return isTranslatedFile(path) || OTHER_FILES.test(path)
}

/** What one file says, while it is read. */
export interface TranslationDraft extends Translation {
  readonly redirects: TranslatedRedirect[]
  readonly headers: TranslatedHeaders[]
  readonly ignored: string[]
}

export function newDraft(): TranslationDraft {
  return { redirects: [], headers: [], ignored: [] }
}

/** Names the settings that are not among the known ones. */
export function ignoreOthers(draft: TranslationDraft, config: Fields, known: readonly string[]): void {
  const others = Object.keys(config).filter((name) => !known.includes(name) && name !== '$schema')
  if (others.length > 0) draft.ignored.push(`${others.join(', ')}: nothing here corresponds to it.`)
}

/** `/about.html` leads to `/about`, as the edge serves it anyway. */
export function addCleanUrls(draft: TranslationDraft, at: string, status: 301 | 308): void {
  const rules = [
    ['/index.html', '/'],
    ['/*/index.html', '/:splat/'],
    ['/*.html', '/:splat'],
  ] as const
  for (const [from, to] of rules) draft.redirects.push({ at, from, to, status, force: true })
}

/** Addresses of folders end with a slash here, those of pages do not: where a site has only one of them, it agrees. */
export function addTrailingSlash(draft: TranslationDraft, at: string, wantsSlash: boolean, layout: PageLayout): void {
  if (wantsSlash ? layout.hasFlatPages : layout.hasFolderPages)
    draft.ignored.push(`${at}: addresses of folders end with a slash here, those of pages do not.`)
}

/** Values of a foreign document, read without trust. */
export type Fields = Readonly<Record<string, unknown>>

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

/** `[{ key, value }]`, as several hosts write headers. */
export function keyedHeaders(value: unknown): [name: string, value: string][] {
  return listOf(value).map((entry) => {
    const { key, value: said } = fieldsOf(entry)
    return [scalarText(key), scalarText(said)]
  })
}

/** A destination in which `:name` or `:name*` is all the rest of the address. */
export function withSplat(to: string, name: string): string {
  return to.replaceAll(/:(\w+)\*?/g, (found: string, word: string) => (word === name ? ':splat' : found))
}
