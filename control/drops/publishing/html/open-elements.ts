/**
 * Which elements are open, as far as it decides what the next tag means. In SVG and MathML `<style>`, `<title>` and
 * `<script>` are not raw text, CDATA sections exist, and a `<template>` is no template; in their integration points
 * (`<foreignObject>`, `<mi>`, …) HTML rules hold again. An end tag of an HTML element around them ends them too, unless
 * something in between shields that element (standard, §13.2.4.2, §13.2.6.5).
 *
 * Each question is answered by positions that are kept for it, so that the work is linear however deep the page is.
 */
import type { Tag } from './tokens.ts'

/** HTML start tags that end SVG or MathML content by their mere presence (standard, §13.2.6.5). */
const BREAKOUT_TAGS = setOf(
  `b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr
   ol p pre ruby s small span strong strike sub sup table tt u ul var`,
)

const SVG_INTEGRATION = setOf('foreignobject desc title')
const MATHML_INTEGRATION = setOf('mi mo mn ms mtext')
const FONT_BREAKOUT_ATTRIBUTES: readonly string[] = ['color', 'face', 'size']

/** Their content is text up to their end tag. noscript: to a browser with scripting. */
export const RAW_TEXT = setOf('script style title textarea xmp iframe noembed noframes noscript')
const VOID = setOf(
  `area base basefont bgsound br col embed frame hr img image input keygen link meta param source track wbr`,
)
/** They are there once, and their end tags close nothing that is open above them. */
const NEVER_CLOSED = setOf('html head body frameset form')
/** End tags of other elements do not reach beyond these. */
const SPECIAL = setOf(
  `address applet article aside blockquote body button caption center colgroup dd details dialog dir div dl dt
   fieldset figcaption figure footer form h header hgroup li listing main marquee menu nav object ol p pre search
   section select summary table tbody td template tfoot th thead tr ul`,
)
/** Those of special elements do not reach beyond these. */
const SCOPES = setOf('applet caption marquee object table td template th')
/** Those of the parts of a table do not reach beyond these. */
const TABLE_SCOPES = setOf('table template')

/** A part of a table ends every open part of its own rank or below. */
const TABLE_RANKS: ReadonlyMap<string, number> = new Map(
  [['table'], ['caption', 'colgroup', 'tbody', 'thead', 'tfoot'], ['tr'], ['td', 'th']].flatMap((names, rank) =>
    names.map((name) => [name, rank] as const),
  ),
)

interface Open {
  /** Foreign names have a prefix: an SVG `<title>` is not the title of the page. */
  readonly name: string
  readonly language: 'html' | 'svg' | 'math'
  /** The content of this foreign element is HTML. */
  readonly isIntegration: boolean
  /** Where its start tag begins. */
  readonly start: number
}

type Kind = 'html' | 'special' | 'scope' | 'table scope' | 'foreign'

export class OpenElements {
  readonly #open: Open[] = []
  /** Where elements of a name or kind are open, the innermost last. */
  readonly #positions = new Map<string, number[]>()

  /** The current node is SVG or MathML and its content follows foreign rules. */
  get isForeign(): boolean {
    const current = this.#open.at(-1)
    return current !== undefined && current.language !== 'html' && !current.isIntegration
  }

  /** Where the outermost drawing or formula begins that is open; undefined when none is. */
  get foreignStart(): number | undefined {
    const outermost = this.#positions.get('kind:foreign')?.[0]
    return outermost === undefined ? undefined : this.#open[outermost]?.start
  }

  /** True when the tag stays foreign; false when HTML rules apply to it. */
  startTag(tag: Tag, value: (attribute: string) => string | undefined): boolean {
    if (this.isForeign) {
      const language = this.#open.at(-1)?.language === 'math' ? 'math' : 'svg'
      if (!isBreakout(tag)) {
        if (!tag.selfClosing) this.#push(foreign(tag, language, isIntegration(tag, language, value)))
        return true
      }
      this.#breakOut()
    }
    if (tag.name === 'svg' || tag.name === 'math') {
      if (!tag.selfClosing) this.#push(foreign(tag, tag.name, false))
    } else this.#startHtml(nameOf(tag.name), tag.start)
    return false
  }

  /** True when the end tag was for foreign content. */
  endTag(tagName: string): boolean {
    const current = this.#open.at(-1)
    if (current !== undefined && current.language !== 'html') {
      if (tagName === 'br' || tagName === 'p') this.#breakOut()
      else if (this.#last(foreignName(tagName)) > this.#last('kind:html')) {
        this.#popThrough(this.#last(foreignName(tagName)))
        return true
      }
    }
    const name = nameOf(tagName)
    if (this.#reaches(name)) this.#popThrough(this.#last(name))
    return false
  }

  #startHtml(name: string, start: number): void {
    if (VOID.has(name) || RAW_TEXT.has(name) || NEVER_CLOSED.has(name)) return
    const rank = TABLE_RANKS.get(name)
    if (rank !== undefined && rank > 0) {
      // Outside of a table it is not there; inside of one it ends what stands before its place.
      const table = this.#last('table')
      if (table < 0 || table < this.#last('template')) return
      while (this.#open.length - 1 > table && (this.#rankOfCurrent() ?? rank) >= rank) this.#pop()
    }
    this.#push({ name, language: 'html', isIntegration: false, start })
  }

  #rankOfCurrent(): number | undefined {
    return TABLE_RANKS.get(this.#open.at(-1)?.name ?? '')
  }

  /** Whether the end tag closes an open element. */
  #reaches(name: string): boolean {
    const at = this.#last(name)
    if (at < 0 || NEVER_CLOSED.has(name)) return false
    if (name === 'template') return true
    if (TABLE_RANKS.has(name)) return at >= this.#last('kind:table scope')
    if (name === 'li') return at > Math.max(this.#last('kind:scope'), this.#last('ol'), this.#last('ul'))
    return at >= this.#last(SPECIAL.has(name) ? 'kind:scope' : 'kind:special')
  }

  #breakOut(): void {
    while (this.isForeign) this.#pop()
  }

  #last(key: string): number {
    return this.#positions.get(key)?.at(-1) ?? -1
  }

  #push(element: Open): void {
    const at = this.#open.push(element) - 1
    for (const key of keysOf(element)) {
      const positions = this.#positions.get(key)
      if (positions) positions.push(at)
      else this.#positions.set(key, [at])
    }
  }

  #pop(): void {
    const element = this.#open.pop()
    if (element) for (const key of keysOf(element)) this.#positions.get(key)?.pop()
  }

  #popThrough(at: number): void {
    while (this.#open.length > at) this.#pop()
  }
}

function keysOf({ name, language, isIntegration }: Open): string[] {
  const kinds: Kind[] = []
  if (language === 'html') kinds.push('html')
  if (isIntegration || SPECIAL.has(name)) kinds.push('special')
  if (isIntegration || SCOPES.has(name)) kinds.push('scope')
  if (TABLE_SCOPES.has(name)) kinds.push('table scope')
  if (language !== 'html') kinds.push('foreign')
  return [name, ...kinds.map((kind) => `kind:${kind}`)]
}

/** The end tag of one heading ends any other. */
function nameOf(tagName: string): string {
  return /^h[1-6]$/.test(tagName) ? 'h' : tagName
}

function foreignName(tagName: string): string {
  return `foreign:${tagName}`
}

function foreign({ name, start }: Tag, language: 'svg' | 'math', isIntegrationPoint: boolean): Open {
  return { name: foreignName(name), language, isIntegration: isIntegrationPoint, start }
}

function isBreakout(tag: Tag): boolean {
  if (tag.name !== 'font') return BREAKOUT_TAGS.has(tag.name)
  return FONT_BREAKOUT_ATTRIBUTES.some((name) => tag.attributes.has(name))
}

function isIntegration(tag: Tag, language: 'svg' | 'math', value: (attribute: string) => string | undefined): boolean {
  if (language === 'svg') return SVG_INTEGRATION.has(tag.name)
  if (MATHML_INTEGRATION.has(tag.name)) return true
  const encoding = tag.name === 'annotation-xml' ? value('encoding')?.toLowerCase() : undefined
  return encoding === 'text/html' || encoding === 'application/xhtml+xml'
}

function setOf(names: string): ReadonlySet<string> {
  return new Set(names.split(/\s+/))
}
