/** How often a drop was looked at. Counted without cookies, for every drop. */
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import type { Page } from '../frame/layout.ts'
import { viewsChart, type Day } from '../parts/charts.ts'
import { sitePage } from './drop-frame.ts'
import { countInWords, dayInWords, shortAddress } from '../parts/words.ts'

export function siteViewsPage(view: { site: ApiSite; days: readonly Day[] }): Page {
  const { site, days } = view
  const total = days.reduce((sum, day) => sum + day.count, 0)
  const link = (span: number): Html =>
    html`<li><a href="?days=${span}"${days.length === span ? html` aria-current="true"` : ''}>${span} days</a></li>`
  return sitePage(site, '/views', {
    body: html`
      <section class="card" aria-labelledby="views">
        <div class="head">
          <h2 id="views">${countInWords(total, 'page view')}</h2>
          <ul class="choices" aria-label="Time shown">${[link(30), link(90)]}</ul>
        </div>
        ${
          total === 0
            ? html`<p>
              Nobody has opened it in the last ${days.length} days.
              <a href="${site.url}">${shortAddress(site.url)}</a> is what to share.
            </p>`
            : viewsChart(days)
        }
        <p class="hint">
          A view is a person who opens a page in a browser window. The same visitor on the same page counts
          once a day; programs, robots, prefetches and frames do not count.
        </p>
        <details${total === 0 && html` hidden`}>
          <summary>As a table</summary>
          <table class="table">
            <caption class="visually-hidden">Views per day</caption>
            <thead>
              <tr>
                <th scope="col">Day</th>
                <th scope="col" class="right">Views</th>
              </tr>
            </thead>
            <tbody>
              ${days.toReversed().map(
                (day) => html`
                  <tr>
                    <th scope="row">${dayInWords(day.day)}</th>
                    <td class="right">${day.count}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </details>
      </section>
      <p class="hint">
        Pages only, counted at the edge without cookies. Attach an analytics provider in
        <a href="/sites/${site.id}/settings">Settings</a> for more.
      </p>
    `,
  })
}
