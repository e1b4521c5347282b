/** A page that only says something. */
import { html, type Content } from '../../../../shared/pages/html.ts'
import type { Page } from '../frame/layout.ts'

export function messagePage(page: { title: string; lead: Content; actions?: Content; status?: number }): Page {
  return {
    title: page.title,
    status: page.status ?? 200,
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>${page.title}</h1>
          <p class="lead">${page.lead}</p>
        </div>
        ${page.actions !== undefined && html`<p class="cluster">${page.actions}</p>`}
      </div>
    `,
  }
}
