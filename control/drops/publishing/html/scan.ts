/**
 * Reads what publishing needs from an HTML page in one pass over its bytes: where the edge may insert its snippets,
 * the page's own CSP, its title, its charset and its links.
 *
 * It is a tokenizer with the few rules of tree construction that decide where the head and the body end; it builds no
 * tree. A fake `</head>` in a comment, a script, an attribute or a template does not fool it.
 */
import { CSP_LIMITS, MAX_TITLE_CHARS } from '../../../../shared/contracts/limits.ts'
import { findRawTextEnd, isSpace, LESS_THAN, readMarkup, type Attribute, type Tag } from './tokens.ts'
import { decodeReferences, shorten, textOf } from './text.ts'
import { OpenElements, RAW_TEXT } from './open-elements.ts'

export interface MetaPolicy {
  readonly policy: string
  readonly start: number
  readonly end: number
}

export interface HtmlScan {
  /** Byte offset just before the end of the head; in a page of frames, just before its `<frameset>`. */
  readonly head: number
  /** Byte offset just before the end of the body; null in a frameset page. */
  readonly body: number | null
  /**
   * Each `<meta http-equiv=content-security-policy>` of the head; offsets are those of the value inside its quotes. One
   * more than a page may have at most: `tooManyPolicies` then says so.
   */
  readonly csp: readonly MetaPolicy[]
  readonly title?: string
  /** Text of the first h1. */
  readonly heading?: string
  readonly description?: string
  /** As declared by a BOM or a meta element, lower case. */
  readonly charset?: string
  /** `href` of the base element. */
  readonly base?: string
  readonly links: readonly HtmlLink[]
}

/** What a page does with an address that it names. */
export type LinkUse =
  /** Leads people to it. */
  | 'page'
  /** Loads it: a picture, a font, a frame. */
  | 'file'
  | 'script'
  | 'module'
  | 'style'

export interface HtmlLink {
  readonly url: string
  readonly use: LinkUse
}

/** A page with more links is a list; the report stops there. */
const MAX_LINKS = 5000
/** With the tags inside of it. */
const MAX_HEADING_BYTES = 2000
const MAX_DESCRIPTION_CHARS = 300
/** Longer ones are not written by hand. */
const MAX_CONTENT_TYPE_CHARS = 1000

/** As above. */
const MAX_RELATION_CHARS = 200

/** Start tags that leave the parser in the head. */
const HEAD_TAGS: ReadonlySet<string> = new Set(
  'html head meta title link style script noscript base template basefont bgsound noframes'.split(' '),
)

/** End tags that start the body; others, `</head>` aside, are ignored before it. */
const BODY_STARTING_END_TAGS: ReadonlySet<string> = new Set(['body', 'html', 'br'])

/** Start tags after which a frameset can no longer replace the body (the "frameset-ok" flag). */
const FRAMESET_BARS: ReadonlySet<string> = new Set(
  `body pre listing li dd dt button applet marquee object table area br embed img image keygen wbr hr textarea xmp
   iframe select`.split(/\s+/),
)

/** Elements whose address is for people to follow. */
const NAVIGATION: ReadonlySet<string> = new Set(['a', 'area', 'form'])

/**
 * What a `<link>` makes a browser load, by a word of its `rel`. Every other relation (canonical, alternate, next,
 * preconnect, pingback, made, …) only names an address.
 */
const LINK_RELATIONS: ReadonlyMap<string, LinkUse> = new Map([
  ['stylesheet', 'style'],
  ['modulepreload', 'module'],
  ...['preload', 'icon', 'apple-touch-icon', 'apple-touch-icon-precomposed', 'mask-icon', 'manifest'].map(
    (word) => [word, 'file'] as const,
  ),
])

/** Attributes that name another file. */
const LINK_ATTRIBUTES: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', ['href']],
  ['area', ['href']],
  ['audio', ['src']],
  ['embed', ['src']],
  ['form', ['action']],
  ['frame', ['src']],
  ['iframe', ['src']],
  ['image', ['href', 'xlink:href']],
  ['img', ['src', 'srcset']],
  ['input', ['src']],
  ['link', ['href']],
  ['object', ['data']],
  ['script', ['src']],
  ['source', ['src', 'srcset']],
  ['track', ['src']],
  ['use', ['href', 'xlink:href']],
  ['video', ['src', 'poster']],
])

export function scanHtml(bytes: Buffer): HtmlScan {
  return new PageScanner(bytes).run()
}

function hasUtf8Mark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

class PageScanner {
  readonly #bytes: Buffer
  readonly #open = new OpenElements()
  #at: number
  #head: number | undefined
  #lastBodyEnd: number | undefined
  #lastHtmlEnd: number | undefined
  /** Before the body starts a frameset is always taken; afterwards only while "frameset-ok" holds. */
  #bodyStarted = false
  #framesetOk = true
  #isFrameset = false
  /** Where the frameset begins, unless a body came before it. */
  #framesetStart: number | undefined
  /** Open templates; what is inserted inside one is never shown. */
  #templates = 0
  #templateStart = 0
  /**
   * Where the first `<select>` begins that no `</select>` has ended. Most tags inside of one are ignored, by some browsers
   * more than by others: one that something else ended is taken for open, which only moves a snippet further up.
   */
  #selectStart: number | undefined
  readonly #csp: MetaPolicy[] = []
  #title: string | undefined
  #heading: string | undefined
  #description: string | undefined
  #charset: string | undefined
  #base: string | undefined
  readonly #links: HtmlLink[] = []

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#at = hasUtf8Mark(bytes) ? 3 : 0
    if (this.#at > 0) this.#charset = 'utf-8'
  }

  run(): HtmlScan {
    const end = this.#walk()
    const unsafe = Math.min(this.#shownBefore(end), this.#templates > 0 ? this.#templateStart : end)
    // What stands right before a frameset is still of the head.
    const head = Math.min((this.#isFrameset ? this.#framesetStart : undefined) ?? this.#head ?? unsafe, unsafe)
    const tail = Math.min(this.#lastBodyEnd ?? this.#lastHtmlEnd ?? unsafe, unsafe)
    return {
      head,
      body: this.#isFrameset ? null : Math.max(head, tail),
      csp: this.#csp,
      ...(this.#title && { title: this.#title }),
      ...(this.#heading && { heading: this.#heading }),
      ...(this.#description && { description: this.#description }),
      ...(this.#charset && { charset: this.#charset }),
      ...(this.#base !== undefined && { base: this.#base }),
      links: this.#links,
    }
  }

  /** The last place up to this one where an element of ours is shown. */
  #shownBefore(at: number): number {
    return Math.min(at, this.#open.foreignStart ?? at, this.#selectStart ?? at)
  }

  /** Walks to the end; returns the last offset where markup may be inserted: the end, or the start of what never ends. */
  #walk(): number {
    for (;;) {
      const lessThan = this.#bytes.indexOf(LESS_THAN, this.#at)
      this.#text(this.#at, lessThan < 0 ? this.#bytes.length : lessThan)
      if (lessThan < 0) return this.#bytes.length
      const markup = readMarkup(this.#bytes, lessThan, this.#open.isForeign)
      switch (markup.kind) {
        case 'unfinished':
          return lessThan
        case 'text':
          this.#visibleText(lessThan)
          this.#at = lessThan + 1
          break
        case 'other':
          if (this.#open.isForeign && this.#isCdata(lessThan)) this.#visibleText(lessThan)
          this.#at = markup.end
          break
        case 'end':
          this.#endTag(markup)
          this.#at = markup.end
          break
        case 'start':
          if (!this.#startTag(markup)) return lessThan
          break
        default:
          markup satisfies never
      }
    }
  }

  #isCdata(lessThan: number): boolean {
    return this.#bytes.toString('latin1', lessThan + 2, lessThan + 9) === '[CDATA['
  }

  #text(from: number, to: number): void {
    // Only until it has had its effect: once the body has begun and no frameset can come, text decides nothing.
    if (this.#bodyStarted && !this.#framesetOk) return
    for (let at = from; at < to; at++) if (!isSpace(this.#bytes[at])) return this.#visibleText(at)
  }

  #visibleText(at: number): void {
    this.#framesetOk = false
    this.#startBody(at)
  }

  #startBody(at: number): void {
    if (this.#templates > 0) return
    this.#endHead(at)
    this.#bodyStarted = true
  }

  #endHead(at: number): void {
    if (this.#head === undefined && this.#templates === 0) this.#head = at
  }

  #endTag(tag: Tag): void {
    if (this.#open.endTag(tag.name)) return
    if (tag.name === 'template') {
      if (this.#templates > 0) this.#templates--
      return
    }
    if (this.#templates > 0) return
    if (tag.name === 'select') this.#endSelect()
    if (tag.name === 'head') this.#endHead(tag.start)
    if (BODY_STARTING_END_TAGS.has(tag.name)) this.#startBody(tag.start)
    if (tag.name === 'br') this.#framesetOk = false
    // In a `<select>` or a drawing these end tags end nothing, and what stands before them is not shown.
    if (tag.name === 'body') this.#lastBodyEnd = this.#shownBefore(tag.start)
    if (tag.name === 'html') this.#lastHtmlEnd = this.#shownBefore(tag.start)
  }

  /** A drawing inside of it that is still open may be none to a browser, or shield it. */
  #endSelect(): void {
    const isShielded = (this.#open.foreignStart ?? -1) > (this.#selectStart ?? -1)
    if (!isShielded) this.#selectStart = undefined
  }

  /** False when the document ends inside the element, so that nothing can be inserted after its start. */
  #startTag(tag: Tag): boolean {
    this.#collectLinks(tag)
    this.#at = tag.end
    if (this.#open.startTag(tag, (name) => this.#value(tag, name))) return true
    this.#buildPage(tag)
    if (tag.name === 'plaintext') return false
    return RAW_TEXT.has(tag.name) ? this.#rawText(tag) : true
  }

  #buildPage(tag: Tag): void {
    if (tag.name === 'frameset') this.#frameset(tag)
    else if (!this.#staysInHead(tag.name)) this.#startBody(tag.start)
    if (this.#barsFrameset(tag)) this.#framesetOk = false
    switch (tag.name) {
      case 'template':
        if (this.#templates++ === 0) this.#templateStart = tag.start
        break
      case 'select':
        if (this.#templates === 0) this.#selectStart ??= tag.start
        break
      case 'h1':
        this.#firstHeading(tag)
        break
      case 'meta':
        this.#meta(tag)
        break
      case 'base':
        this.#base ??= this.#value(tag, 'href')
        break
    }
  }

  #frameset(tag: Tag): void {
    if (this.#templates > 0) return
    this.#endHead(tag.start)
    if (!this.#bodyStarted) this.#framesetStart ??= tag.start
    if (!this.#bodyStarted || this.#framesetOk) this.#isFrameset = true
  }

  /** After `</head>` elements of the head still go there, except for noscript. */
  #staysInHead(name: string): boolean {
    return HEAD_TAGS.has(name) && !(name === 'noscript' && this.#head !== undefined)
  }

  #barsFrameset(tag: Tag): boolean {
    if (tag.name === 'input') return this.#value(tag, 'type')?.toLowerCase() !== 'hidden'
    return FRAMESET_BARS.has(tag.name)
  }

  #rawText(tag: Tag): boolean {
    const end = findRawTextEnd(this.#bytes, tag.name, tag.end)
    if (!end) return false
    if (tag.name === 'title' && this.#title === undefined && this.#templates === 0) {
      const text = this.#bytes.toString('utf8', tag.end, end.start)
      this.#title = shorten(decodeReferences(text), MAX_TITLE_CHARS)
    }
    this.#at = end.end
    return true
  }

  #firstHeading(tag: Tag): void {
    if (this.#heading !== undefined || this.#templates > 0) return
    const part = this.#bytes.toString('utf8', tag.end, tag.end + MAX_HEADING_BYTES)
    this.#heading = shorten(textOf(part.split(/<\/h1/i, 1)[0] ?? ''), MAX_TITLE_CHARS)
  }

  #meta(tag: Tag): void {
    if (this.#templates > 0) return
    const equivalent = this.#value(tag, 'http-equiv')?.toLowerCase()
    const content = this.#value(tag, 'content')
    if (equivalent === 'content-security-policy') this.#contentSecurityPolicy(tag)
    this.#charset ??= declaredCharset(this.#value(tag, 'charset'), equivalent === 'content-type' ? content : undefined)
    if (this.#value(tag, 'name')?.toLowerCase() === 'description' && content !== undefined) {
      this.#description ??= shorten(content, MAX_DESCRIPTION_CHARS)
    }
  }

  /** Only a policy in the head counts for a browser, and only a quoted one can be extended in place. */
  #contentSecurityPolicy(tag: Tag): void {
    const content = tag.attributes.get('content')
    if (this.#head !== undefined || !content?.quoted || this.#csp.length > CSP_LIMITS.inPage.policies) return
    this.#csp.push({ policy: this.#decode(content), start: content.start, end: content.end })
  }

  #collectLinks(tag: Tag): void {
    const names = LINK_ATTRIBUTES.get(tag.name)
    // What stands in a template is loaded when a script uses it, which may change its addresses first.
    if (!names || this.#templates > 0) return
    const use = this.#useOf(tag)
    if (use === undefined) return
    for (const name of names) {
      const value = this.#value(tag, name)
      if (value === undefined) continue
      for (const url of name === 'srcset' ? srcsetUrls(value) : [value]) {
        if (this.#links.length < MAX_LINKS) this.#links.push({ url: url.trim(), use })
      }
    }
  }

  /** Undefined when the element only mentions its address. */
  #useOf(tag: Tag): LinkUse | undefined {
    switch (tag.name) {
      case 'link':
        return relationOf(this.#value(tag, 'rel') ?? '')
      case 'script':
        return this.#value(tag, 'type')?.trim().toLowerCase() === 'module' ? 'module' : 'script'
      default:
        return NAVIGATION.has(tag.name) ? 'page' : 'file'
    }
  }

  #value(tag: Tag, name: string): string | undefined {
    const found = tag.attributes.get(name)
    return found && this.#decode(found)
  }

  #decode(found: Attribute): string {
    return decodeReferences(this.#bytes.toString('utf8', found.start, found.end))
  }
}

/** `preload stylesheet` is both; the first that makes more of the address than a file counts. */
function relationOf(rel: string): LinkUse | undefined {
  const uses = rel
    .slice(0, MAX_RELATION_CHARS)
    .toLowerCase()
    .split(/\s+/)
    .map((word) => LINK_RELATIONS.get(word))
    .filter((use) => use !== undefined)
  return uses.find((use) => use !== 'file') ?? uses[0]
}

function declaredCharset(charset: string | undefined, contentType: string | undefined): string | undefined {
  if (charset !== undefined) return charset.trim().toLowerCase()
  return contentType && charsetParameter(contentType.slice(0, MAX_CONTENT_TYPE_CHARS).toLowerCase())
}

/** `text/html; charset="latin1"`, as the standard extracts it (§2.5.4): blanks and one quote may stand before it. */
function charsetParameter(contentType: string): string | undefined {
  const [, ...parameters] = contentType.split('charset')
  for (const parameter of parameters) {
    const value = parameter.trimStart()
    if (!value.startsWith('=')) continue
    const name = value.slice(1).trimStart().replace(/^["']/, '').trimStart()
    return name.split(/[\s;"']/, 1)[0] || undefined
  }
  return undefined
}

/** `a.png 1x, b.png 2x`; a data address may hold commas, so a candidate ends at a comma that is followed by a space. */
function srcsetUrls(value: string): string[] {
  return value
    .split(/,\s+|,$/)
    .map((candidate) => candidate.trim().split(/\s+/)[0] ?? '')
    .filter((url) => url !== '')
}
