/**
 * SVG and MathML inside HTML. In them `<style>`, `<title>` and `<script>` are not raw text, CDATA sections exist, and
 * a `<template>` is no template; in their integration points (`<foreignObject>`, `<mi>`, …) HTML rules hold again.
 */
import type { Tag } from './html-tokens.ts'

/** HTML start tags that end SVG or MathML content by their mere presence (standard, §13.2.6.5). */
const BREAKOUT_TAGS: ReadonlySet<string> = new Set(
  `b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr
   ol p pre ruby s small span strong strike sub sup table tt u ul var`.split(/\s+/),
)

const SVG_INTEGRATION: ReadonlySet<string> = new Set(['foreignobject', 'desc', 'title'])
const MATHML_INTEGRATION: ReadonlySet<string> = new Set(['mi', 'mo', 'mn', 'ms', 'mtext'])
const FONT_BREAKOUT_ATTRIBUTES: readonly string[] = ['color', 'face', 'size']

interface Open {
  readonly name: string
  readonly language: 'svg' | 'math'
  /** The content of this element is HTML. */
  readonly isIntegration: boolean
}

export class ForeignContent {
  readonly #open: Open[] = []

  /** Inside SVG or MathML, at any depth. */
  get isOpen(): boolean {
    return this.#open.length > 0
  }

  /** The current node is SVG or MathML and its content follows foreign rules. */
  get isCurrent(): boolean {
    const current = this.#open.at(-1)
    return current !== undefined && !current.isIntegration
  }

  /** `<svg>` or `<math>` in HTML content. */
  enter(tag: Tag): void {
    if (!tag.selfClosing)
      this.#open.push({ name: tag.name, language: tag.name as 'svg' | 'math', isIntegration: false })
  }

  /** True when the tag stays foreign; false when it broke out and HTML rules apply to it. */
  startTag(tag: Tag, value: (attribute: string) => string | undefined): boolean {
    if (isBreakout(tag)) {
      this.#breakOut()
      return false
    }
    const language = this.#open.at(-1)!.language
    if (!tag.selfClosing)
      this.#open.push({ name: tag.name, language, isIntegration: isIntegration(tag, language, value) })
    return true
  }

  /** True when the end tag was for foreign content. */
  endTag(name: string): boolean {
    if (this.isCurrent && (name === 'br' || name === 'p')) {
      this.#breakOut()
      return false
    }
    const index = this.#open.findLastIndex((element) => element.name === name)
    if (index < 0) return false
    this.#open.length = index
    return true
  }

  #breakOut(): void {
    while (this.isCurrent) this.#open.pop()
  }
}

function isBreakout(tag: Tag): boolean {
  if (tag.name !== 'font') return BREAKOUT_TAGS.has(tag.name)
  return tag.attributes.some(({ name }) => FONT_BREAKOUT_ATTRIBUTES.includes(name))
}

function isIntegration(tag: Tag, language: 'svg' | 'math', value: (attribute: string) => string | undefined): boolean {
  if (language === 'svg') return SVG_INTEGRATION.has(tag.name)
  if (MATHML_INTEGRATION.has(tag.name)) return true
  const encoding = tag.name === 'annotation-xml' ? value('encoding')?.toLowerCase() : undefined
  return encoding === 'text/html' || encoding === 'application/xhtml+xml'
}
