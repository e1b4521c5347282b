/** Every retained version, newest first; one click away from being live, after a look at what that changes. */
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { ApiPreview, ApiSite, Changes, VersionEntry } from '../../../drops/sites/schemas.ts'
import type { Comparison, PastVersion } from '../../../drops/sites/versions/comparison.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { reportList, sourceInWords } from './publish-view.ts'
import { sitePage } from './drop-frame.ts'
import type { ShownLine, TextChange } from '../../../drops/publishing/comparison/compare-texts.ts'
import { bytesInWords } from '../../../../shared/values/sizes.ts'
import { countInWords, spoken, timeAgo } from '../parts/words.ts'

export interface SiteVersions {
  readonly site: ApiSite
  readonly versions: readonly PastVersion[]
  readonly previews: readonly ApiPreview[]
  readonly flash: Page['flash']
  readonly kept: number
  /** A version was just made live. */
  readonly isPromoted: boolean
  /** The one that it took the place of. */
  readonly before: PastVersion | undefined
  readonly now: number
}

export function siteVersionsPage(viewer: Viewer, view: SiteVersions): Page {
  return sitePage(view.site, '/versions', {
    flash: promoted(viewer, view) ?? view.flash,
    body: html`${
      view.versions.length === 0
        ? html`
          <div class="empty">
            <h2>No versions yet</h2>
            <p>Publish something and it appears here. Your plan keeps the last ${view.kept}.</p>
            <a class="button primary" href="/sites/${view.site.id}">Publish</a>
          </div>
        `
        : html`
          <p class="soft">
            Your plan keeps the last ${view.kept}. Going back is a publish too, so you can always go forward
            again.
          </p>
          ${keptNote(view.site)}
          <table class="table stacked">
            <caption class="visually-hidden">Versions</caption>
            <thead>
              <tr>
                <th scope="col">Version</th>
                <th scope="col">Published</th>
                <th scope="col">Content</th>
                <th scope="col" class="right">Actions</th>
              </tr>
            </thead>
            <tbody>${view.versions.map((version) => row(viewer, view, version))}</tbody>
          </table>
        `
    }
      ${previewsSection(viewer, view)}`,
  })
}

/** Versions at an address of their name, live or not. */
function previewsSection(viewer: Viewer, { site, previews, now }: SiteVersions): Html {
  return html`
    <section class="stack" aria-labelledby="previews">
      <h2 id="previews">Named previews</h2>
      ${
        previews.length === 0
          ? html`<p class="soft">
              None. <code>dropway deploy --preview pr-12</code>, or a name in the publish form, shows a version at an
              address of its own before it goes live.
            </p>`
          : html`
            <table class="table stacked">
              <caption class="visually-hidden">Named previews</caption>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Published</th>
                  <th scope="col">Until</th>
                  <th scope="col" class="right">Actions</th>
                </tr>
              </thead>
              <tbody>${previews.map((preview) => previewRow(viewer, site, preview, now))}</tbody>
            </table>
          `
      }
    </section>
  `
}

function previewRow(viewer: Viewer, site: ApiSite, preview: ApiPreview, now: number): Html {
  const { name, url, live } = preview
  const form = (deed: 'promote' | 'remove', words: string, tone: string): Html => html`
    <form method="post" action="/sites/${site.id}/previews/${name}/${deed}">
      ${csrfField(viewer)}
      <button class="button small ${tone}">${words}${spoken(name)}</button>
    </form>
  `
  return html`
    <tr>
      <th scope="row">
        <strong>${name}</strong>${live && html` <span class="tag good">Live</span>`}${
          preview.message !== '' && html`<br><span class="small soft">${preview.message}</span>`
        }
      </th>
      <td>
        ${timeAgo(preview.published_at, now)}<br>
        <span class="small soft">version ${preview.version_number}, ${countInWords(preview.file_count, 'file')}</span>
      </td>
      <td><time datetime="${preview.expires_at}">${preview.expires_at.slice(0, 10)}</time></td>
      <td class="right">
        <div class="cluster">
          ${url !== null && html`<a class="button small" href="${url}">Open${spoken(name)}</a>`}
          ${!live && form('promote', 'Make live', '')} ${form('remove', 'Remove', '')}
        </div>
      </td>
    </tr>
  `
}

/** What tabs that were open before a publish still find. */
function keptNote({ id, kept }: ApiSite): Html | undefined {
  if (kept.until === null) return undefined
  return html`
    <p class="notice">
      ${countInWords(kept.files, 'file')} of former versions (${bytesInWords(kept.bytes)})
      ${kept.files === 1 ? 'stays' : 'stay'} reachable until
      <time datetime="${kept.until}">${kept.until.slice(0, 10)}</time>, so that tabs which are still open keep
      working. <a href="/sites/${id}#publish">Publish</a> with “also remove everything older” to end that.
    </p>
  `
}

/** Says which version is live now, with the way back to the one before. */
function promoted(viewer: Viewer, { site, versions, isPromoted, before }: SiteVersions): Page['flash'] {
  const live = versions.find((version) => version.live)
  if (!isPromoted || !live) return undefined
  const undo =
    before &&
    html`
      <form method="post" action="/sites/${site.id}/versions/${before.version_id}/promote">
        ${csrfField(viewer)}
        <button class="button small">Undo: back to version ${before.version_number}</button>
      </form>
    `
  return {
    tone: 'good',
    text: html`<div class="cluster spread"><p>Version ${live.version_number} is live now.</p>${undo}</div>`,
  }
}

function row(viewer: Viewer, { site, now }: SiteVersions, version: PastVersion): Html {
  return html`
    <tr>
      <th scope="row">
        <strong>Version ${version.version_number}</strong>
        ${version.live && html`<span class="tag good">Live</span>`}${
          version.message !== '' && html`<br><span class="small soft">${version.message}</span>`
        }
      </th>
      <td>
        ${timeAgo(version.created_at, now)}${
          version.created_by !== null && html`<br><span class="small soft">${version.created_by}</span>`
        }${
          version.source && html`<br><span class="small soft">${sourceInWords(version.source)}</span>`
        }${version.promotions.slice(0, SHOWN_PROMOTIONS).map((promotion) => promotionNote(promotion, now))}
      </td>
      <td>
        ${countInWords(version.file_count, 'file')}, ${bytesInWords(version.byte_size)}${
          version.changes && html`<br><span class="small soft whole">${changesInWords(version.changes)}</span>`
        }${
          version.report.warnings.length > 0 &&
          html`
            <details>
              <summary class="small">${countInWords(version.report.warnings.length, 'warning')}</summary>
              ${reportList(version.report)}
            </details>
          `
        }
      </td>
      <td class="right">
        <div class="cluster">
          ${
            version.preview_url !== null &&
            html`<a class="button small" href="${version.preview_url}">Preview${spoken(`version ${version.version_number}`)}</a>`
          }
          <a class="button small" href="/sites/${site.id}/versions/${version.version_id}">${
            version.live ? 'What changed' : 'What changes'
          }${spoken(`with version ${version.version_number}`)}</a>
          ${!version.live && promoteForm(viewer, site, version, 'small')}
        </div>
      </td>
    </tr>
  `
}

/** Enough to recognise what it was; the page of the version has all. */
const NAMED_PATHS = 3

/** `2 files changed, 1 removed: index.html, style.css, old.html` */
function changesInWords(changes: Changes): string {
  const paths = [...changes.changed, ...changes.added, ...changes.removed]
  if (paths.length === 0) return 'The same files as before'
  const names = [...paths.slice(0, NAMED_PATHS), ...(paths.length > NAMED_PATHS ? ['…'] : [])]
  return `${countsInWords(changes)}: ${names.join(', ')}`
}

function countsInWords({ changed, added, removed }: Changes): string {
  const counts = [
    [changed.length, 'changed'],
    [added.length, 'added'],
    [removed.length, 'removed'],
  ] as const
  return counts
    .filter(([count]) => count > 0)
    .map(([count, deed], index) => `${index === 0 ? countInWords(count, 'file') : count} ${deed}`)
    .join(', ')
}

/** The API has the older ones. */
const SHOWN_PROMOTIONS = 3

function promotionNote({ at, by, from_version_number }: VersionEntry['promotions'][number], now: number): Html {
  return html`<br>
    <span class="small soft">made live again ${timeAgo(at, now)} ${
      from_version_number !== null && `instead of version ${from_version_number}`
    }${by !== null && ` by ${by}`}</span>`
}

function promoteForm(viewer: Viewer, site: ApiSite, version: VersionEntry, size: 'small' | ''): Html {
  return html`
    <form method="post" action="/sites/${site.id}/versions/${version.version_id}/promote">
      ${csrfField(viewer)}
      <button class="button ${size === '' && 'primary'} ${size}">Make live${spoken(`version ${version.version_number}`)}</button>
    </form>
  `
}

/** More is a wall of text; the counts say the rest. */
const SHOWN_PATHS = 200

export function siteChangesPage(
  viewer: Viewer,
  view: { site: ApiSite; version: VersionEntry; comparison: Comparison },
): Page {
  const { site, version, comparison } = view
  const { changes, texts } = comparison
  const total = changes.added.length + changes.changed.length + changes.removed.length
  const list = (kind: 'added' | 'changed' | 'removed', sign: string): readonly Html[] =>
    changes[kind].slice(0, SHOWN_PATHS).map(
      (path) =>
        html`
          <li class="${kind}">
            <span aria-hidden="true">${sign}</span> <span class="visually-hidden">${kind}: </span>${path}
          </li>
        `,
    )
  return sitePage(site, '/versions', {
    body: html`
      <section class="card" aria-labelledby="changes">
        <h2 id="changes">What version ${version.version_number} ${version.live ? 'changed' : 'would change'}</h2>
        ${
          total === 0
            ? html`<p>Nothing: it has the same files as ${otherInWords(view)}.</p>`
            : html`
              <p class="soft">
                ${countsInWords(changes)}, compared with ${otherInWords(view)}.
              </p>
              <ul class="changes">
                ${list('added', '+')}
                ${list('changed', '~')}
                ${list('removed', '−')}
              </ul>
            `
        }
        <div class="cluster">
          ${!version.live && promoteForm(viewer, site, version, '')}
          ${version.preview_url !== null && html`<a class="button" href="${version.preview_url}">Preview</a>`}
          <a class="button quiet" href="/sites/${site.id}/versions">Back</a>
        </div>
      </section>
      ${texts.map(textChange)}
    `,
  })
}

function otherInWords({ version, comparison }: { version: VersionEntry; comparison: Comparison }): string {
  if (comparison.with === undefined) return 'nothing: it is the first that is kept'
  return version.live
    ? `version ${comparison.with}, which was there before`
    : `version ${comparison.with}, which is live`
}

const SIGNS = { added: '+', removed: '−', same: ' ' } as const

function textChange({ path, shown }: TextChange): Html {
  return html`
    <section class="card" aria-label="Changes of ${path}">
      <h3><code>${path}</code></h3>
      ${
        shown
          ? html`<div class="diff" tabindex="0" role="region" aria-label="Lines of ${path}">
              ${shown.lines.map(changedLine)}
            </div>`
          : html`<p class="hint">
              <code>${path}</code> has changed too much to be compared line by line. The previews show it before and
              after.
            </p>`
      }
      ${shown && shown.hidden > 0 && html`<p class="hint">${countInWords(shown.hidden, 'more line')} not shown.</p>`}
    </section>
  `
}

function changedLine({ kind, text, isAfterGap }: ShownLine, index: number): Html {
  return html`${isAfterGap && index > 0 && html`<div class="gap">…</div>`}<div
      class="${kind}"><span aria-hidden="true">${SIGNS[kind]} </span>${
        kind !== 'same' && html`<span class="visually-hidden">${kind}: </span>`
      }${text}</div>`
}
