/** References of a page or a stylesheet to other files, sorted by what the report wants to know. Pure, linear. */
import { MAX_PATH_BYTES } from '../../../../shared/contracts/limits.ts'
import type { HtmlScan, LinkUse } from '../html/scan.ts'
import type { LoadedCode } from '../manifest/immutable.ts'

export interface PageLinks {
  /** Decoded paths inside the drop, without leading slash; each once. A trailing slash is kept. */
  readonly local: readonly LocalLink[]
  /** `http://…` subresources, which browsers block or warn about on an https page. */
  readonly insecure: readonly string[]
  /** `http://localhost:3000/…`, `file:///…` subresources, which work on the publisher's machine only. */
  readonly machineLocal: readonly string[]
}

export interface LocalLink {
  readonly target: string
  readonly use: LinkUse
}

/** What is named in several ways counts as the last of them in this order. */
const USES: readonly LinkUse[] = ['page', 'file', 'script', 'style', 'module']

const CODE_USES: readonly LinkUse[] = ['script', 'style', 'module']

/** Keeps the messages of a very large site small; the report shows far fewer anyway. */
const MAX_LINKS_PER_FILE = 500
/** What else a page names is looked at up to here: one that repeats few addresses is not resolved for ever. */
const MAX_LINKS_READ = 5000
/** No address of a file is longer: its path, encoded, and a query. `data:` addresses are. */
const MAX_ADDRESS_CHARS = 8000
/** Every link is resolved against it. */
const MAX_BASE_CHARS = 2000

const MACHINE_LOCAL =
  /^(?:file:|(?:https?:|wss?:)?\/\/(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\])(?=[:/?#]|$))/i

export function htmlLinks(path: string, scan: HtmlScan): PageLinks {
  const sorter = new LinkSorter(baseOf(path, scan.base))
  for (const { url, use } of scan.links) sorter.add(url, use)
  return sorter.links
}

export function cssLinks(path: string, css: string): PageLinks {
  const sorter = new LinkSorter(`/${path}`)
  for (const url of cssUrls(css)) sorter.add(url, 'file')
  return sorter.links
}

/** What a stylesheet names with `url(…)` and `@import "…"`, outside of comments and other strings. Reads it once. */
function* cssUrls(css: string): Generator<string> {
  const marks = /\/\*|["']|url\(|@import/gi
  /** The string that starts at a quote is an address. */
  let isNamed = false
  for (let mark = marks.exec(css); mark; mark = marks.exec(css)) {
    const start = marks.lastIndex
    switch (mark[0]) {
      case '/*': {
        const end = css.indexOf('*/', start)
        if (end < 0) return
        marks.lastIndex = end + 2
        break
      }
      case '"':
      case "'": {
        const end = stringEnd(css, start, mark[0])
        if (isNamed) yield css.slice(start, end)
        marks.lastIndex = end + 1
        isNamed = false
        break
      }
      default: {
        const next = skipBlanks(css, start)
        isNamed = css[next] === '"' || css[next] === "'"
        marks.lastIndex = next
        if (isNamed || mark[0].startsWith('@')) break
        const end = bareEnd(css, next)
        if (css[skipBlanks(css, end)] === ')') yield css.slice(next, end)
        marks.lastIndex = end
      }
    }
  }
}

/** Its closing quote, or the end of its line. */
function stringEnd(css: string, start: number, quote: string): number {
  let at = start
  while (at < css.length && css[at] !== quote && css[at] !== '\n') at += css[at] === '\\' ? 2 : 1
  return at
}

function skipBlanks(css: string, start: number): number {
  let at = start
  while (at < css.length && css.charAt(at).trim() === '') at++
  return at
}

/** Where an address without quotes ends. */
function bareEnd(css: string, start: number): number {
  let at = start
  while (at < css.length && css.charAt(at).trim() !== '' && !`"'()`.includes(css.charAt(at))) at++
  return at
}

/**
 * Links as one string. They wait in memory for the next deploy and travel between threads, where a string costs a copy
 * of its bytes and a list costs an object for each link.
 */
export type EncodedLinks = string

/** Undefined for a file without any. */
export function encodeLinks({ local, insecure, machineLocal }: PageLinks): EncodedLinks | undefined {
  if (local.length + insecure.length + machineLocal.length === 0) return undefined
  const byUse = USES.map((use) => local.filter((link) => link.use === use).map((link) => link.target))
  return JSON.stringify([byUse, insecure, machineLocal])
}

export function decodeLinks(encoded: EncodedLinks): PageLinks {
  const [byUse, insecure, machineLocal] = JSON.parse(encoded) as [string[][], string[], string[]]
  return {
    local: USES.flatMap((use, index) => (byUse[index] ?? []).map((target) => ({ target, use }))),
    insecure,
    machineLocal,
  }
}

/**
 * The scripts and stylesheets of a page as one string. The pages of a site mostly have the same, so that a few strings
 * say what all of them load.
 */
export type EncodedCode = string

/** Undefined for a page without any. */
export function encodeCode({ local }: PageLinks): EncodedCode | undefined {
  const byUse = CODE_USES.map((use) => local.filter((link) => link.use === use).map((link) => link.target))
  return byUse.every((targets) => targets.length === 0) ? undefined : JSON.stringify(byUse)
}

export function decodeCode(encoded: Iterable<EncodedCode>): LoadedCode {
  const loaded = { scripts: new Set<string>(), styles: new Set<string>(), modules: new Set<string>() }
  for (const one of encoded) {
    const [ofScripts = [], ofStyles = [], ofModules = []] = JSON.parse(one) as string[][]
    for (const target of ofScripts) loaded.scripts.add(target)
    for (const target of ofStyles) loaded.styles.add(target)
    for (const target of ofModules) loaded.modules.add(target)
  }
  return loaded
}

/** The address that relative links start from: the page's own, or what its base element says. */
function baseOf(path: string, base: string | undefined): string {
  return base === undefined ? `/${path}` : base.trim()
}

class LinkSorter {
  readonly #base: URL | null
  readonly #local = new Map<string, LocalLink>()
  readonly #insecure = new Set<string>()
  readonly #machineLocal = new Set<string>()
  #read = 0

  constructor(base: string) {
    // `drop.invalid` stands for whatever address the drop has.
    this.#base = base.length > MAX_BASE_CHARS ? null : URL.parse(base, 'https://drop.invalid/')
  }

  add(raw: string, use: LinkUse): void {
    if (raw.length > MAX_ADDRESS_CHARS || this.#count >= MAX_LINKS_PER_FILE || this.#read++ >= MAX_LINKS_READ) return
    const url = raw.trim()
    if (url === '' || url.startsWith('#')) return
    // A link to somewhere else is the author's word: a tutorial says http://localhost:3000, a manual file:///usr.
    if (MACHINE_LOCAL.test(url)) {
      if (use !== 'page') this.#machineLocal.add(url)
    } else if (!/^http:\/\//i.test(url)) this.#addLocal(url, use)
    else if (use !== 'page') this.#insecure.add(url)
  }

  get links(): PageLinks {
    return { local: [...this.#local.values()], insecure: [...this.#insecure], machineLocal: [...this.#machineLocal] }
  }

  get #count(): number {
    return this.#local.size + this.#insecure.size + this.#machineLocal.size
  }

  #addLocal(url: string, use: LinkUse): void {
    const resolved = this.#base && URL.parse(url, this.#base.href)
    if (!resolved || resolved.origin !== 'https://drop.invalid') return
    const target = decodePath(resolved.pathname)
    // The service's own addresses and templates that a script will fill in are no files.
    if (target === undefined || target.startsWith('.dropway/') || /[{}<>]/.test(target)) return
    // No file has such a name; a rule may answer for it.
    if (Buffer.byteLength(target) > MAX_PATH_BYTES) return
    const known = this.#local.get(target)
    if (!known || USES.indexOf(use) > USES.indexOf(known.use)) this.#local.set(target, { target, use })
  }
}

function decodePath(pathname: string): string | undefined {
  try {
    return decodeURIComponent(pathname.replace(/^\/+/, ''))
  } catch {
    return undefined
  }
}
