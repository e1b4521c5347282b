/** References of a page or a stylesheet to other files, sorted by what the report wants to know. Pure. */
import type { HtmlScan } from './html-scan.ts'

export interface PageLinks {
  /** Decoded paths inside the drop, without leading slash; each once. A trailing slash is kept. */
  readonly local: readonly LocalLink[]
  /** `http://…` subresources, which browsers block or warn about on an https page. */
  readonly insecure: readonly string[]
  /** `http://localhost:3000/…`, `file:///…`: work on the publisher's machine only. */
  readonly machineLocal: readonly string[]
}

export interface LocalLink {
  readonly target: string
  /** A page that people go to, as opposed to a file that the page needs. */
  readonly isPage: boolean
}

/** Keeps the messages of a very large site small; the report shows far fewer anyway. */
const MAX_LINKS_PER_FILE = 500

const MACHINE_LOCAL =
  /^(?:file:|(?:https?:|wss?:)?\/\/(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1\])(?=[:/?#]|$))/i
const NAVIGATION: ReadonlySet<string> = new Set(['a', 'area', 'form'])

export function htmlLinks(path: string, scan: HtmlScan): PageLinks {
  const sorter = new LinkSorter(baseOf(path, scan.base))
  for (const link of scan.links) sorter.add(link.url, NAVIGATION.has(link.tag))
  return sorter.links
}

export function cssLinks(path: string, css: string): PageLinks {
  const sorter = new LinkSorter(`/${path}`)
  const withoutComments = css.replace(/\/\*[\s\S]*?\*\//g, '')
  for (const match of withoutComments.matchAll(
    /url\(\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^"'()\s]+))\s*\)|@import\s+(?:"([^"\n]*)"|'([^'\n]*)')/gi,
  )) {
    sorter.add(match.slice(1).find((group) => group !== undefined) ?? '', false)
  }
  return sorter.links
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

  constructor(base: string) {
    // `drop.invalid` stands for whatever address the drop has.
    this.#base = URL.parse(base, 'https://drop.invalid/')
  }

  add(raw: string, isPage: boolean): void {
    const url = raw.trim()
    if (url === '' || url.startsWith('#') || this.#count >= MAX_LINKS_PER_FILE) return
    if (MACHINE_LOCAL.test(url)) this.#machineLocal.add(url)
    else if (!/^http:\/\//i.test(url)) this.#addLocal(url, isPage)
    else if (!isPage) this.#insecure.add(url)
  }

  get links(): PageLinks {
    return { local: [...this.#local.values()], insecure: [...this.#insecure], machineLocal: [...this.#machineLocal] }
  }

  get #count(): number {
    return this.#local.size + this.#insecure.size + this.#machineLocal.size
  }

  #addLocal(url: string, isPage: boolean): void {
    const resolved = this.#base && URL.parse(url, this.#base.href)
    if (!resolved || resolved.origin !== 'https://drop.invalid') return
    const target = decodePath(resolved.pathname)
    // The service's own addresses and templates that a script will fill in are no files.
    if (target === undefined || target.startsWith('.dropway/') || /[{}<>]|\$\{/.test(target)) return
    const known = this.#local.get(target)
    this.#local.set(target, { target, isPage: isPage && (known?.isPage ?? true) })
  }
}

function decodePath(pathname: string): string | undefined {
  try {
    return decodeURIComponent(pathname.replace(/^\/+/, ''))
  } catch {
    return undefined
  }
}
