/** Publishing to one drop, and what the last publish had to say. */
import { MAX_PREVIEW_NAME_CHARS } from '../../../../shared/http/hosts.ts'
import { MAX_MESSAGE_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { Changes, PublishReport, ApiSite, VersionEntry } from '../../../drops/sites/schemas.ts'
import { csrfField, uploadAddress, type AccountViewer, type Page } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { publishTerms } from '../parts/drop-zone.ts'
import { copyRow } from '../parts/publish-result.ts'
import { qrCode } from '../parts/qr.ts'
import { shareButtons } from '../sharing/sharing-view.ts'
import { sitePage } from './drop-frame.ts'
import { publishFields, type EditedText } from './list-view.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { countInWords, shortAddress, timeAgo } from '../parts/words.ts'

export interface SitePublish {
  readonly site: ApiSite
  readonly live: VersionEntry | undefined
  readonly justPublished: boolean
  /** The version that this publish took the place of, and what going back to it would change. */
  readonly before: { readonly version: VersionEntry; readonly changes: Changes } | undefined
  /** The page is one text that can be edited here. */
  readonly isEditable: boolean
  readonly edited: EditedText | undefined
  /** The template this drop was made with, to edit it again. */
  readonly template: string | undefined
  /** The reason that trust and safety gave. */
  readonly removedFor: string | undefined
  readonly now: number
}

export function sitePublishPage(viewer: AccountViewer, view: SitePublish): Page {
  const { site, live, edited } = view
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
      ${live && liveCard(viewer, view, live)}
      ${
        view.template !== undefined &&
        html`
          <p class="notice">
            Made from a template. <a href="/templates/${view.template}?site=${site.id}">Edit its fields</a>
          </p>
        `
      }
      <form class="form card" id="publish" method="post" action="${uploadAddress(viewer, form.action)}" enctype="multipart/form-data"
          ${publishTerms(viewer.signedIn.plan, site.id)}>
        <h2>${edited ? 'Edit the page' : live ? 'Publish a new version' : 'Publish the first version'}</h2>
        ${form.start}
        ${edited && html`<input type="hidden" name="if_version" value="${edited.version}">`}
        ${publishFields(form, {
          ...(edited && { edited }),
          extra: html`${form.text({
            name: 'message',
            label: 'Message',
            maxlength: MAX_MESSAGE_CHARS,
            hint: 'Optional: what changed, for the list of versions.',
          })}
            ${form.text({
              name: 'preview',
              label: 'Preview',
              maxlength: MAX_PREVIEW_NAME_CHARS,
              verbatim: true,
              hint: 'Optional: a name such as new-header. Then it does not go live, but is shown at an address of that name.',
            })}
            ${
              live &&
              form.check({
                name: 'purge',
                label: 'Also remove everything older',
                hint: 'Former versions, their previews, and their files that open tabs still find. For content that must not stay public.',
                checked: false,
              })
            }`,
        })}
      </form>
    `,
  })
}

function liveCard(viewer: AccountViewer, view: SitePublish, live: VersionEntry): Html {
  const { site, justPublished, now, before, isEditable, edited } = view
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
          ${live.source && html`<p class="small soft">${sourceInWords(live.source)}</p>`}
          ${justPublished && before && changeSummary(viewer, site, live, before)}
          <a class="live-link" href="${site.url}" target="_blank" rel="noopener">${shortAddress(site.url)}</a>
          ${copyRow(site.url, 'Address')}
          ${viewer.signedIn.emailVerified && shareButtons(viewer, site)}
          ${
            isEditable &&
            !edited &&
            html`<p class="cluster"><a class="button small" href="/sites/${site.id}?edit#publish">Edit the page</a></p>`
          }
          ${
            site.kept.until !== null &&
            html`
              <p class="small soft">
                ${countInWords(site.kept.files, 'file')} of former versions
                ${site.kept.files === 1 ? 'stays' : 'stay'} reachable until ${site.kept.until.slice(0, 10)}, for tabs
                that are open.
              </p>
            `
          }
          ${reportList(live.report)}
        </div>
        ${qrCode(site.url)}
      </div>
    </section>
  `
}

/** `published from commit 3f2a9c1 of example/site by octocat`, which leads to the commit. */
export function sourceInWords(source: NonNullable<VersionEntry['source']>): Html {
  const short = source.commit.slice(0, 7)
  const commit = source.url === null ? html`${short}` : html`<a href="${source.url}" rel="noopener">${short}</a>`
  const by = source.actor === '' ? '' : ` by ${source.actor}`
  const workflow = source.workflow === '' ? '' : ` (${source.workflow})`
  return source.commit === ''
    ? html`published from ${source.repository}${workflow}${by}`
    : html`published from commit ${commit} of ${source.repository}${workflow}${by}`
}

/** What the publish did to the files, and the way back. */
function changeSummary(
  viewer: AccountViewer,
  site: ApiSite,
  live: VersionEntry,
  { version, changes }: NonNullable<SitePublish['before']>,
): Html {
  const parts: readonly [number, string][] = [
    [changes.removed.length, 'added'],
    [changes.changed.length, 'changed'],
    [changes.added.length, 'removed'],
  ]
  const words = parts.flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`])).join(', ')
  return html`
    <div class="cluster">
      <p>${countInWords(version.file_count, 'file')} → ${live.file_count}: ${words || 'nothing changed'}</p>
      ${
        viewer.signedIn.emailVerified &&
        html`
          <form method="post" action="/sites/${site.id}/versions/${version.version_id}/promote">
            ${csrfField(viewer)}
            <button class="button small">Undo: back to version ${version.version_number}</button>
          </form>
        `
      }
    </div>
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
              }${warning.message}${
                warning.path !== undefined &&
                warning.count > 1 &&
                html` <span class="soft">(and ${countInWords(warning.count - 1, 'other file')})</span>`
              }
            </li>
          `,
        )}
      </ul>
    </div>
  `
}
