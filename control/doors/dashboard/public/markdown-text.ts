/** Our own Markdown texts, and the operator's, as part of a page: settings at the top, facts filled in, rendered when first read. */
import { before } from '../../../../shared/values/before.ts'
import { escape, raw, type Html } from '../../../../shared/pages/html.ts'
import { textOf } from '../../../drops/publishing/html/text.ts'
import { withoutFrontMatter } from '../../../drops/publishing/markdown/front-matter.ts'

/** What lists say about a text. */
export interface TextSummary {
  /** Its first heading. */
  readonly title: string
  /** For search engines: from the settings at the top, else nothing. */
  readonly description: string | undefined
}

export interface MarkdownText extends TextSummary {
  /** Without the first heading. */
  readonly body: Html
  /** The headings below the first, for a table of contents. */
  readonly contents: readonly { readonly id: string; readonly text: string }[]
}

/** `{{base_url}}` in a text becomes `facts.base_url`; a name that is unknown stays as it was written. */
export type Facts = Readonly<Record<string, string>>

export function filledIn(source: string, facts: Facts): string {
  return source.replace(/\{\{([a-z_]+)\}\}/g, (whole, name: string) => facts[name] ?? whole)
}

/** Read without rendering: the first heading of such a text is plain. */
export function summarize(source: string, facts: Facts, fallbackTitle: string): TextSummary {
  const filled = filledIn(source, facts)
  const heading = withoutFrontMatter(filled)
    .split('\n')
    .find((line) => line.startsWith('# '))
  return {
    title: heading?.slice(2).trim() ?? fallbackTitle,
    description: descriptionOf(frontMatterOf(filled)),
  }
}

export async function renderText(source: string, facts: Facts, fallbackTitle: string): Promise<MarkdownText> {
  const { renderBody } = await import('../../../drops/publishing/markdown/markdown.ts')
  const filled = filledIn(source, facts)
  const { html } = renderBody(withoutFrontMatter(filled))
  const { heading, body } = splitHeading(html)
  return {
    title: heading === undefined ? fallbackTitle : textOf(before(heading, ANCHOR)),
    description: descriptionOf(frontMatterOf(filled)),
    body: raw(reachable(body)),
    contents: body
      .split('<h2 id="')
      .slice(1)
      .map((part) => {
        const id = before(part, '"')
        return { id, text: textOf(`<h2 id="${before(part, ANCHOR)}`) }
      }),
  }
}

/** Where a heading's link to itself begins. */
const ANCHOR = '<a class="anchor"'

/** The first heading of the first rank, and all around it. */
function splitHeading(html: string): { heading: string | undefined; body: string } {
  const start = html.indexOf('<h1 id="')
  const end = html.indexOf('</h1>', start)
  if (start < 0 || end < 0) return { heading: undefined, body: html }
  return { heading: html.slice(start, end), body: html.slice(0, start) + html.slice(end + '</h1>'.length) }
}

function descriptionOf(settings: string): string | undefined {
  const name = 'description:'
  const line = settings.split('\n').find((text) => text.startsWith(name))
  return line?.slice(name.length).trim()
}

function frontMatterOf(source: string): string {
  return source.slice(0, source.length - withoutFrontMatter(source).length)
}

/** What scrolls sideways can be reached by keyboard; rows of tables become cards on a phone. */
function reachable(html: string): string {
  const [first = '', ...tables] = html.replaceAll('<pre>', '<pre tabindex="0">').split('<table>')
  return [first, ...tables.map(labelled)].join('<table class="table stacked">')
}

/** From inside a table on: each of its cells knows the heading of its column, as a card has none above it; the first names its row. */
function labelled(html: string): string {
  const table = before(html, '</table>')
  const headings = table
    .split('<th')
    .slice(1)
    .filter((part) => !part.startsWith('ead'))
    .map((part) => textOf(`<th${before(part, '</th>')}`))
  const rows = table.split('<tr>').map((row) => {
    let column = 0
    const cells = row.replaceAll('<td', () => `<td data-label="${escape(headings[column++] ?? '')}"`)
    return cells.replace('<td', '<th scope="row"').replace('</td>', '</th>')
  })
  return rows.join('<tr>') + html.slice(table.length)
}
