/** The public gallery and the form to report what should not be there. */
import { MAX_EMAIL_CHARS, MAX_REPORT_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { GalleryEntry, GalleryOrder } from '../../../drops/gallery/gallery.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { thumbnail, thumbnailSources } from '../parts/thumbnail.ts'
import { countInWords, shortAddress, spoken, timeAgo } from '../parts/words.ts'

export function galleryPage(view: { entries: readonly GalleryEntry[]; order: GalleryOrder; now: number }): Page {
  const link = (order: GalleryOrder, label: string): Html =>
    html`
      <li>
        <a href="/gallery${order === 'newest' ? '' : '?order=popular'}"${
          order === view.order ? html` aria-current="true"` : ''
        }>${label}</a>
      </li>
    `
  return {
    title: 'Gallery',
    section: 'gallery',
    pictures: thumbnailSources(view.entries.map((entry) => entry.card_url)),
    body: html`
      <div class="head">
        <div>
          <h1>Gallery</h1>
          <p class="lead">Drops whose makers want to be seen.</p>
        </div>
        <ul class="choices" aria-label="Order">
          ${link('newest', 'Newest')}
          ${link('popular', 'Popular')}
        </ul>
      </div>
      ${
        view.entries.length === 0
          ? html`
            <div class="empty">
              <h2>Nothing here yet</h2>
              <p>Turn on “Show it in the public gallery” in a drop’s settings to be the first.</p>
            </div>
          `
          : html`<ul class="grid plain">${view.entries.map((entry) => card(entry, view.now))}</ul>`
      }
    `,
  }
}

function card(entry: GalleryEntry, now: number): Html {
  return html`
    <li class="card">
      ${thumbnail(entry.card_url)}
      <div>
        <h2><a href="${entry.url}" rel="noopener">${entry.title}</a></h2>
        <p class="small soft">${shortAddress(entry.url)}</p>
      </div>
      <p class="small soft cluster spread">
        <span>${countInWords(entry.views, 'view')}, ${timeAgo(entry.published_at, now)}</span>
        <a href="/report?url=${encodeURIComponent(entry.url)}">Report${spoken(entry.title)}</a>
      </p>
    </li>
  `
}

const REASONS = [
  ['phishing', 'It imitates another site or asks for passwords'],
  ['malware', 'It spreads harmful software'],
  ['copyright', 'It uses work without permission'],
  ['illegal', 'It breaks the law'],
  ['spam', 'It is spam'],
  ['other', 'Something else'],
] as const

export function reportPage(viewer: Viewer, { url }: { url: string }): Page {
  const form = formAt(viewer, '/report')
  return {
    title: 'Report abuse',
    body: html`
      <div class="narrow section">
        <div class="stack">
          <h1>Report abuse</h1>
          <p class="soft">
            Tell us about a page published here that should not be. A person looks at every report.
          </p>
        </div>
        <form class="form" method="post" action="${form.action}">
          ${form.start}
          ${form.text({
            name: 'url',
            label: 'Address of the page',
            type: 'text',
            value: url,
            required: true,
            placeholder: 'https://…',
            hint: 'Every page has a way here: its address followed by /.dropway/report.',
          })}
          ${form.select({ name: 'reason', label: 'What is wrong', value: 'phishing', options: REASONS })}
          ${form.text({ name: 'detail', label: 'Details', rows: 4, maxlength: MAX_REPORT_CHARS })}
          ${form.text({
            name: 'contact',
            label: 'Your e-mail',
            type: 'email',
            hint: 'Optional, if we may ask back.',
            maxlength: MAX_EMAIL_CHARS,
          })}
          <button class="button primary">Send the report</button>
        </form>
      </div>
    `,
  }
}
