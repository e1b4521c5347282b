/**
 * HTML as a tagged template that escapes by itself: a value put into a template can become text or a
 * quoted attribute value, never markup. Markup is only what was written in a template or marked `raw`.
 */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

/** What may stand in a template. False and absent values vanish, so that `cond && html`…`` reads well. */
export type Content = Html | string | number | boolean | null | undefined | readonly Content[]

/** An attribute value without quotes could be left by a space, which no escaping prevents. */
const UNQUOTED_ATTRIBUTE = /\s[\w:-]+=$/

export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  let text = ''
  let index = 0
  for (const markup of strings) {
    text += markup
    if (index === values.length) break
    if (UNQUOTED_ATTRIBUTE.test(markup)) throw new Error(`Quote the attribute: …${markup.slice(-30)}`)
    text += render(values[index++])
  }
  return new Html(text)
}

/** Trusted markup: our own SVG, our own CSS, the output of a renderer of ours. Never a user's text. */
export function raw(text: string): Html {
  return new Html(text)
}

function render(value: Content): string {
  if (value instanceof Html) return value.text
  if (typeof value === 'string') return escape(value)
  if (typeof value === 'number') return String(value)
  if (Array.isArray(value)) return value.map(render).join('')
  return ''
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
}

export function escape(text: string): string {
  return text.replace(/[&<>"'`]/g, (character) => ESCAPES[character] ?? '')
}

/** A link that a user wrote: only web and mail addresses, never `javascript:` or `data:`. */
export function safeUrl(text: string): string | undefined {
  const url = URL.parse(text.trim())
  return url && /^(?:https?|mailto|tel):$/.test(url.protocol) ? url.href : undefined
}
