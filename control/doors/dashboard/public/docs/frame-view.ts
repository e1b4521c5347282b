/** What all pages of the docs share: the way to the others, what is on this page, and the words around it. */
import { html, type Content, type Html } from '../../../../../shared/pages/html.ts'
import type { Page } from '../../frame/layout.ts'

export interface DocsLink {
  readonly path: string
  readonly title: string
}

/** All pages of the docs, in reading order. */
export interface DocsMap {
  readonly guides: readonly DocsLink[]
  readonly api: readonly DocsLink[]
}

interface DocsPage {
  readonly title: string
  readonly path: string
  readonly description: string
  readonly lead?: string
  readonly contents: readonly { readonly id: string; readonly text: string }[]
  readonly body: Content
}

export function docsFrame(map: DocsMap, { title, path, description, lead, contents, body }: DocsPage): Page {
  return {
    title,
    section: 'docs',
    description,
    canonical: path,
    body: html`
      <div class="docs">
        <article class="guide">
          <header class="stack">
            <h1>${title}</h1>
            ${lead !== undefined && html`<p class="lead">${lead}</p>`}
          </header>
          ${contents.length > 1 && onThisPage(contents)} ${body} ${nextGuide(map, path)}
        </article>
        <nav class="docs-nav" aria-label="Documentation">
          ${linkList('Guides', map.guides, path)} ${linkList('API', map.api, path)}
        </nav>
      </div>
    `,
  }
}

function onThisPage(contents: DocsPage['contents']): Html {
  return html`
    <nav class="contents" aria-label="On this page">
      <ul>
        ${contents.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}
      </ul>
    </nav>
  `
}

function linkList(title: string, links: readonly DocsLink[], current: string): Html {
  return html`
    <p class="docs-nav-title">${title}</p>
    <ul class="side">
      ${links.map(
        (link) => html`
          <li><a href="${link.path}"${link.path === current && html` aria-current="page"`}>${link.title}</a></li>
        `,
      )}
    </ul>
  `
}

function nextGuide({ guides }: DocsMap, current: string): Html | undefined {
  const index = guides.findIndex(({ path }) => path === current)
  const next = index < 0 ? undefined : guides[index + 1]
  return next && html`<p class="next">Next: <a href="${next.path}">${next.title}</a></p>`
}

export function idOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}
