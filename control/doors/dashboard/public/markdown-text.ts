/** Our own Markdown texts, and the operator's, as part of a page: settings at the top, facts filled in, rendered once. */
import { escape, raw, type Html } from '../../../../shared/pages/html.ts'
import { textOf } from '../../../drops/publishing/html/text.ts'
import { renderBody, withoutFrontMatter } from '../../../drops/publishing/markdown/markdown.ts'

export interface MarkdownText {
  /** Its first heading, which is not part of `body`. */
  readonly title: string
  /** For search engines: from the settings at the top, else nothing. */
  readonly description: string | undefined
  readonly body: Html
  /** The headings below the first, for a table of contents. */
  readonly contents: readonly { readonly id: string; readonly text: string }[]
}

/** `{{base_url}}` in a text becomes `facts.base_url`; a name that is unknown stays as it was written. */
export type Facts = Readonly<Record<string, string>>

export function renderText(source: string, facts: Facts, fallbackTitle: string): MarkdownText {
  const filled = source.replace(/\{\{([a-z_]+)\}\}/g, (whole, name: string) => facts[name] ?? whole)
  const { html } = renderBody(withoutFrontMatter(filled))
  const heading = /<h1 id="[^"]*">(.*?)<a class="anchor"[^>]*>#<\/a><\/h1>\n?/s.exec(html)
  const body = heading ? html.replace(heading[0], '') : html
  return {
    title: heading ? textOf(heading[1] ?? '') : fallbackTitle,
    description: /^description: *(.+)$/m.exec(frontMatterOf(filled))?.[1],
    body: raw(reachable(body)),
    contents: [...body.matchAll(/<h2 id="([^"]*)">(.*?)<a class="anchor"/g)].map(([, id = '', text = '']) => ({
      id,
      text: textOf(text),
    })),
  }
}

function frontMatterOf(source: string): string {
  return source.slice(0, source.length - withoutFrontMatter(source).length)
}

/** What scrolls sideways can be reached by keyboard; rows of tables become cards on a phone. */
function reachable(html: string): string {
  return html
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replace(
      /<table>(.*?)<\/table>/gs,
      (_whole, inner: string) => `<table class="table stacked">${labelled(inner)}</table>`,
    )
}

/** Each cell knows the heading of its column: as a card there is none above it. */
function labelled(table: string): string {
  const headings = [...table.matchAll(/<th[^>]*>(.*?)<\/th>/gs)].map(([, heading = '']) => textOf(heading))
  return table.replace(/<tr>.*?<\/tr>/gs, (row) => {
    let column = 0
    return row.replaceAll('<td', () => `<td data-label="${escape(headings[column++] ?? '')}"`)
  })
}
