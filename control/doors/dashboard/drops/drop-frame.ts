/** What all pages of one drop share: its name, address, state and tabs. */
import { html, type Content } from '../../../../shared/pages/html.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { Page } from '../frame/layout.ts'
import { nameOf, shortAddress, stateTag, stateWords } from '../parts/words.ts'

const TABS = {
  '': 'Publish',
  '/sharing': 'Sharing',
  '/versions': 'Versions',
  '/views': 'Views',
  '/settings': 'Settings',
  '/domains': 'Domains',
} as const

export type SiteTab = keyof typeof TABS

export function sitePage(
  site: ApiSite,
  tab: SiteTab,
  page: { body: Content; scripts?: readonly string[]; flash?: Page['flash']; status?: number },
): Page {
  const base = `/sites/${site.id}`
  const label = TABS[tab]
  return {
    title: `${label} · ${nameOf(site)}`,
    section: 'sites',
    ...(page.scripts ? { scripts: page.scripts } : {}),
    ...(page.flash ? { flash: page.flash } : {}),
    ...(page.status ? { status: page.status } : {}),
    body: html`
      <div class="stack">
        <div class="head">
          <div>
            <p class="small"><a href="/sites">Drops</a></p>
            <h1>${nameOf(site)}</h1>
            <p class="cluster">
              <a href="${site.url}">${shortAddress(site.url)}</a>
              ${stateTag(site.state)}
              ${site.access_mode === 'viewers' && html`<span class="tag">Private</span>`}
            </p>
          </div>
        </div>
        ${site.state !== 'live' && html`<p class="soft">${stateWords(site.state).meaning}</p>`}
        <nav aria-label="This drop">
          <ul class="tabs">
            ${Object.entries(TABS).map(
              ([path, name]) =>
                html`<li><a href="${base}${path}"${path === tab ? html` aria-current="page"` : ''}>${name}</a></li>`,
            )}
          </ul>
        </nav>
      </div>
      ${page.body}
    `,
  }
}
