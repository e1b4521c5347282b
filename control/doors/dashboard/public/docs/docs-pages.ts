/** `/docs`: guides, and the API reference. */
import { errors } from '../../../../../shared/contracts/errors.ts'
import { html } from '../../../../../shared/pages/html.ts'
import { onFirstUse } from '../../../../../shared/values/on-first-use.ts'
import type { OpenApiDocument } from '../../../../ground/http/openapi.ts'
import type { Route } from '../../../../ground/http/route.ts'
import type { Handlers } from '../../frame/handlers.ts'
import type { Page } from '../../frame/layout.ts'
import { renderText, summarize, type Facts, type TextSummary } from '../markdown-text.ts'
import { apiOverviewPage, apiTagPage, tagPath } from './api-view.ts'
import { docsFrame, idOf, type DocsMap } from './frame-view.ts'
import { GUIDES, sourceOf, type GuideName } from './guide-texts.ts'

/** Paths of all pages of the docs, for the sitemap. */
export interface Docs {
  readonly routes: Route[]
  readonly paths: readonly string[]
}

export function createDocs(handlers: Handlers, document: OpenApiDocument, facts: Facts, baseUrl: string): Docs {
  const guides = GUIDES.map((name) => ({ name, path: `/docs/${name}`, ...summarize(sourceOf(name), facts, name) }))
  const map: DocsMap = {
    guides: guides.map(({ path: address, title }) => ({ path: address, title })),
    api: [
      { path: '/docs/api', title: 'Overview' },
      ...document.tags.map(({ name }) => ({ path: tagPath(name), title: name })),
    ],
  }
  // Nothing in them changes while the process lives.
  const guidePages = new Map(guides.map((guide) => [guide.name, onFirstUse(() => guidePage(guide, map, facts))]))
  const tagPages = new Map(
    document.tags.map(({ name }) => [idOf(name), onFirstUse(() => apiTagPage(document, name, map, baseUrl))]),
  )
  const index = indexPage(guides)
  const overview = onFirstUse(() => apiOverviewPage(document, map, baseUrl))

  return {
    paths: ['/docs', ...map.guides.map((guide) => guide.path), ...map.api.map((page) => page.path)],
    routes: [
      handlers.page('/docs', () => index),
      handlers.page('/docs/api', () => overview()),
      handlers.page('/docs/api/:tag', ({ params }) => requirePage(tagPages, params.tag)),
      handlers.page('/docs/:guide', ({ params }) => requirePage(guidePages, params.guide)),
    ],
  }
}

type Guide = TextSummary & { readonly name: GuideName; readonly path: string }

async function guidePage({ name, path }: Guide, map: DocsMap, facts: Facts): Promise<Page> {
  const { title, description, body, contents } = await renderText(sourceOf(name), facts, name)
  return docsFrame(map, { path, title, description: description ?? title, body, contents })
}

function requirePage<Found>(pages: ReadonlyMap<string, () => Found>, name: string): Found {
  const page = pages.get(name)
  if (!page) throw errors.notFound('page of the docs')
  return page()
}

function indexPage(guides: readonly Guide[]): Page {
  return {
    title: 'Docs',
    section: 'docs',
    description: 'Guides for publishing: browser, command line, assistants, CI, domains, and the API.',
    canonical: '/docs',
    body: html`
      <div class="head">
        <div>
          <h1>Docs</h1>
          <p class="lead">Short guides with samples that work as they stand, and the whole API.</p>
        </div>
      </div>
      <ul class="grid plain">
        ${guides.map(({ path: address, title, description }) => card(address, title, description ?? ''))}
        ${card('/docs/api', 'API reference', 'Every endpoint, with a sample call and a sample answer.')}
      </ul>
    `,
  }
}

function card(address: string, title: string, text: string) {
  return html`
    <li>
      <a class="card guide-card" href="${address}">
        <h2>${title}</h2>
        <p class="soft">${text}</p>
      </a>
    </li>
  `
}
