/**
 * SVG and MathML inside HTML. In them `<style>`, `<title>` and `<script>` are not raw text, CDATA sections exist, and
 * a `<template>` is no template; in their integration points (`<foreignObject>`, `<mi>`, …) HTML rules hold again.
 */
import type { Tag } from './tokens.ts'

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
  /** How many of a name are open: an end tag of none is known at once, however many others are open. */
  readonly #counts = new Map<string, number>()

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
    if (!tag.selfClosing) this.#push({ name: tag.name, language: tag.name as 'svg' | 'math', isIntegration: false })
  }

  /** True when the tag stays foreign; false when it broke out and HTML rules apply to it. */
  startTag(tag: Tag, value: (attribute: string) => string | undefined): boolean {
    const language = this.#open.at(-1)?.language
    if (language === undefined || isBreakout(tag)) {
      this.#breakOut()
      return false
    }
    if (!tag.selfClosing) this.#push({ name: tag.name, language, isIntegration: isIntegration(tag, language, value) })
    return true
  }

  /** True when the end tag was for foreign content. */
  endTag(name: string): boolean {
    if (this.isCurrent && (name === 'br' || name === 'p')) {
      this.#breakOut()
      return false
    }
    if (!this.#counts.get(name)) return false
    for (let popped = this.#pop(); popped !== undefined && popped !== name; popped = this.#pop());
    return true
  }

  #breakOut(): void {
    while (this.isCurrent) this.#pop()
  }

  #push(element: Open): void {
    this.#open.push(element)
    this.#counts.set(element.name, (this.#counts.get(element.name) ?? 0) + 1)
  }

  #pop(): string | undefined {
    const name = this.#open.pop()?.name
    if (name !== undefined) this.#counts.set(name, (this.#counts.get(name) ?? 0) - 1)
    return name
  }
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
