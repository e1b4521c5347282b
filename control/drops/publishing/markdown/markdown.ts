/**
 * Markdown → one finished page: CommonMark with the GitHub additions (tables, task lists, strikethrough, autolinks,
 * footnotes), heading anchors, highlighted code. Raw HTML passes through, as CommonMark says: a published page is its
 * publisher's own. What would take too long is refused beforehand (budget.ts); it runs in a worker thread with a time limit.
 */
import { MAX_TITLE_CHARS } from '../../../../shared/contracts/limits.ts'
import hljs from 'highlight.js/lib/common'
import { micromark, type Options } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import { toNfc } from '../../../../shared/values/nfc.ts'
import { decodeReferences, shorten, textOf } from '../html/text.ts'
import { requireRenderable } from './budget.ts'
import { withoutFrontMatter } from './front-matter.ts'
import { markdownPage } from './page.ts'

type HtmlExtension = NonNullable<Options['htmlExtensions']>[number]

export interface RenderedPage {
  readonly html: string
  readonly title: string
}

const MAX_DESCRIPTION_CHARS = 200
/** Longer listings stay plain; highlighting them costs more than it tells. */
const MAX_HIGHLIGHTED_CHARS = 50_000

export function renderMarkdown(source: string, options: { title?: string; filename?: string } = {}): RenderedPage {
  const text = withoutFrontMatter(source)
  requireRenderable(text, 1 + countLines(source.slice(0, source.length - text.length)))
  const body = renderBody(text)
  const given = options.title?.trim()
  const title = shorten(given || body.heading || nameOf(options.filename) || 'Untitled', MAX_TITLE_CHARS)
  return { title, html: markdownPage({ title, description: descriptionOf(body.html), body: body.html }) }
}

function countLines(text: string): number {
  return text.split('\n').length - 1
}

export interface RenderedBody {
  readonly html: string
  /** Text of the first heading. */
  readonly heading: string | undefined
}

/** `plain`: CommonMark and nothing else, byte for byte as its specification says. */
export function renderBody(source: string, dialect: 'plain' | 'full' = 'full'): RenderedBody {
  const allow = { allowDangerousHtml: true, allowDangerousProtocol: true }
  if (dialect === 'plain') return { html: micromark(source, allow), heading: undefined }
  const html = micromark(source, {
    ...allow,
    extensions: [gfm()],
    htmlExtensions: [gfmHtml({ clobberPrefix: '' }), rawHtml, headingAnchors(), highlightedCode()],
  })
  return { html, heading: firstHeadingOf(html) }
}

/** The GitHub additions include a filter of raw HTML, which is for pages that carry other people's text. */
const rawHtml: HtmlExtension = {
  exit: {
    htmlFlowData(token) {
      this.raw(this.encode(this.sliceSerialize(token)))
    },
    htmlTextData(token) {
      this.raw(this.encode(this.sliceSerialize(token)))
    },
  },
}

/** Headings get ids that stay the same as long as their text does, and a link to themselves. */
function headingAnchors(): HtmlExtension {
  const used = new Map<string, number>()

  function heading(rank: number, inner: string): string {
    const text = textOf(inner)
    const id = uniqueId(slugOf(text), used)
    const anchor = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
    return `<h${rank} id="${id}">${inner}${anchor}</h${rank}>`
  }

  return {
    exit: {
      atxHeadingSequence(token) {
        if (this.getData('headingRank')) return
        this.setData('headingRank', this.sliceSerialize(token).length)
        this.lineEndingIfNeeded()
        this.buffer()
      },
      atxHeading() {
        this.tag(heading(this.getData('headingRank') ?? 1, this.resume()))
        this.setData('headingRank')
      },
      setextHeading() {
        const inner = this.resume()
        this.lineEndingIfNeeded()
        this.tag(heading(this.getData('headingRank') ?? 1, inner))
        this.setData('slurpAllLineEndings')
        this.setData('headingRank')
      },
    },
  }
}

/** Letters and digits of any script survive; everything else separates words. */
function slugOf(text: string): string {
  const slug = toNfc(text.toLowerCase())
    .split(/[^\p{L}\p{N}\p{M}]+/u)
    .filter((word) => word !== '')
    .join('-')
  return slug === '' ? 'section' : slug
}

function uniqueId(slug: string, used: Map<string, number>): string {
  const count = used.get(slug) ?? 0
  used.set(slug, count + 1)
  return count === 0 ? slug : uniqueId(`${slug}-${count}`, used)
}

/** Fenced code whose language we know is coloured here, so that the page needs no script. */
function highlightedCode(): HtmlExtension {
  let language: string | undefined
  return {
    enter: {
      codeFenced() {
        language = undefined
        this.lineEndingIfNeeded()
        this.tag('<pre><code')
        this.setData('fencesCount', 0)
      },
    },
    exit: {
      codeFencedFenceInfo() {
        const info = this.resume()
        language = decodeReferences(info)
        this.tag(` class="language-${info}"`)
      },
      codeFencedFence() {
        const count = this.getData('fencesCount') ?? 0
        if (count === 0) {
          this.tag('>')
          this.setData('slurpOneLineEnding', true)
          this.buffer()
        }
        this.setData('fencesCount', count + 1)
      },
      codeFenced() {
        const isClosed = (this.getData('fencesCount') ?? 0) >= 2
        // micromark puts the last line ending of an unclosed block inside a container outside of it; CommonMark does not.
        const isInContainer = (this.getData('tightStack') ?? []).length > 0
        if (!isClosed && isInContainer && !this.getData('lastWasTag')) this.raw('\n')
        if (this.getData('flowCodeSeenData')) this.lineEndingIfNeeded()
        this.tag(`${highlight(this.resume(), language)}</code></pre>`)
        if (!isClosed) this.lineEndingIfNeeded()
        this.setData('flowCodeSeenData')
        this.setData('fencesCount')
        this.setData('slurpOneLineEnding')
      },
    },
  }
}

function highlight(encoded: string, language: string | undefined): string {
  if (language === undefined || encoded.length > MAX_HIGHLIGHTED_CHARS || !hljs.getLanguage(language)) return encoded
  return hljs.highlight(decodeReferences(encoded), { language, ignoreIllegals: true }).value
}

/** `notes/Trip to Rome.md` → `Trip to Rome`. */
function nameOf(filename: string | undefined): string | undefined {
  return filename?.replace(/^.*\//, '').replace(/\.[^.]*$/, '')
}

/** The first paragraph, as search engines and messengers show it. */
function descriptionOf(html: string): string {
  const start = html.indexOf('<p>')
  const end = html.indexOf('</p>', start)
  return start < 0 || end < 0 ? '' : shorten(textOf(html.slice(start, end)), MAX_DESCRIPTION_CHARS)
}

/** In the order of the document, those written as HTML included; one that holds only a picture says nothing. */
function firstHeadingOf(html: string): string | undefined {
  const opening = /<h[1-6](?=[\s>])/gi
  const closing = /<\/h[1-6]/gi
  for (let start = opening.exec(html); start; start = opening.exec(html)) {
    closing.lastIndex = start.index
    const end = closing.exec(html)
    if (!end) return undefined
    const text = textOf(html.slice(start.index, end.index).replace(ANCHOR, ''))
    if (text !== '') return text
    opening.lastIndex = end.index
  }
  return undefined
}

/** The link that a heading of ours ends with. */
const ANCHOR = /<a class="anchor" href="#[^"]*" aria-label="[^"]*">#<\/a>$/
