/** Publishing to one drop, and what the last publish had to say. */
import { MAX_MESSAGE_CHARS } from '../../../../shared/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { PublishReport, ApiSite, VersionEntry } from '../../../drops/sites/schemas.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { copyRow } from '../parts/publish-result.ts'
import { qrCode } from '../parts/qr.ts'
import { sitePage } from './drop-frame.ts'
import { publishFields } from './list-view.ts'
import { bytesInWords, countInWords, timeAgo } from '../parts/words.ts'

export interface SitePublish {
  readonly site: ApiSite
  readonly live: VersionEntry | undefined
  readonly justPublished: boolean
  /** The template this drop was made with, to edit it again. */
  readonly template: string | undefined
  /** The reason that trust and safety gave. */
  readonly removedFor: string | undefined
  readonly now: number
}

export function sitePublishPage(viewer: Viewer, view: SitePublish): Page {
  const { site, live } = view
  const form = formAt(viewer, `/sites/${site.id}/publish`)
  return sitePage(site, '', {
    scripts: ['publish'],
    body: html`
      ${
        view.removedFor !== undefined &&
        html`
          <p class="notice bad">
            Removed by our trust and safety team: ${view.removedFor}. Answer the mail we sent if you think
            this is a mistake.
          </p>
        `
      }
      ${live && liveCard(view, live)}
      ${
        view.template !== undefined &&
        html`
          <p class="notice">
            Made from a template. <a href="/templates/${view.template}?site=${site.id}">Edit its fields</a>
          </p>
        `
      }
      <form class="form card" method="post" action="${form.action}" enctype="multipart/form-data"
          data-publish data-site="${site.id}">
        <h2>${live ? 'Publish a new version' : 'Publish the first version'}</h2>
        ${form.start}
        ${publishFields(
          form,
          form.text({
            name: 'message',
            label: 'Message',
            maxlength: MAX_MESSAGE_CHARS,
            hint: 'Optional: what changed, for the list of versions.',
          }),
        )}
      </form>
    `,
  })
}

function liveCard({ site, justPublished, now }: SitePublish, live: VersionEntry): Html {
  return html`
    <section class="card ${justPublished ? 'raised' : ''}" aria-labelledby="live">
      <div class="result">
        <div class="stack">
          <h2 id="live" tabindex="-1">
            ${justPublished ? `Version ${live.version_number} is live` : `Version ${live.version_number}`}
          </h2>
          <p class="soft">
            ${countInWords(live.file_count, 'file')}, ${bytesInWords(live.byte_size)}, published
            ${timeAgo(site.published_at ?? live.created_at, now)}${live.message !== '' && html`: “${live.message}”`}
          </p>
          ${copyRow(site.url, 'Address')}
          ${reportList(live.report)}
        </div>
        ${qrCode(site.url)}
      </div>
    </section>
  `
}

/** What a publisher would otherwise learn from a visitor. */
export function reportList(report: PublishReport): Html | undefined {
  const count = report.warnings.length + report.blocked.length
  if (count === 0) return undefined
  return html`
    <div class="stack">
      <h3>${countInWords(count, 'thing')} to look at</h3>
      <ul class="report">
        ${report.blocked.map(
          ({ path, what }) => html`<li><code>${path}</code> looks like ${what} and was not published.</li>`,
        )}
        ${report.warnings.slice(0, 50).map(
          (warning) => html`
            <li>
              ${
                warning.path !== undefined &&
                html`<code>${warning.path}${warning.line !== undefined && `:${warning.line}`}</code> `
              }${warning.message}
            </li>
          `,
        )}
      </ul>
    </div>
  `
}
