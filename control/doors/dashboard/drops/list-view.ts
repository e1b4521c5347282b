/** The list of drops, and the page that starts a new one. */
import { SLUG_RULE } from '../../../../shared/http/hosts.ts'
import { MAX_NAME_CHARS, MAX_SLUG_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, type Html } from '../../../../shared/pages/html.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import { defaultMode } from '../../../drops/viewers/access.ts'
import type { VisibilityPolicy } from '../../../people/organisations/rules.ts'
import { csrfField, uploadAddress, type AccountViewer, type Page } from '../frame/layout.ts'
import { sparkline } from '../parts/charts.ts'
import { ALLOW_SECRETS } from '../publish/received.ts'
import { formAt, type PageForm } from '../parts/form-fields.ts'
import { dropZone, pasteField, publishProgress, publishTerms } from '../parts/drop-zone.ts'
import { listAddress, SORTS, type ListPage, type ListQuery, type Sort } from './list-order.ts'
import { thumbnail, thumbnailSources } from '../parts/thumbnail.ts'
import { countInWords, nameOf, shortAddress, stateTag, stateWords, timeAgo } from '../parts/words.ts'

export interface ListedSite {
  readonly site: ApiSite
  /** Views per day, oldest first. */
  readonly recent: readonly number[]
}

export interface SitesList {
  readonly sites: readonly ListedSite[]
  readonly total: number
  /** Those that the drops of the organisation are in. */
  readonly states: readonly ApiSite['state'][]
  readonly query: ListQuery
  readonly page: Omit<ListPage<ApiSite>, 'shown'>
  readonly usage: { readonly used: number; readonly limit: number }
  /** How many of those in use are in other free organisations of the same owner. */
  readonly elsewhere: number
  readonly now: number
}

export function sitesPage(viewer: AccountViewer, list: SitesList): Omit<Page, 'flash'> {
  return {
    title: 'Drops',
    section: 'sites',
    scripts: ['publish'],
    pictures: thumbnailSources(list.sites.map(({ site }) => site.card_url)),
    body: html`
      <div class="head">
        <div>
          <h1>Drops</h1>
          <p class="soft">${activeInWords(list.usage)}${elsewhereInWords(list)}</p>
        </div>
        <a class="button primary" href="/sites/new">New drop</a>
      </div>
      <form class="window-drop" method="post" action="${uploadAddress(viewer, '/sites/new')}" enctype="multipart/form-data"
          ${publishTerms(viewer.signedIn.plan)}>
        ${csrfField(viewer)}
        ${publishProgress()}
      </form>
      ${
        list.total === 0
          ? emptyState()
          : [
              searchForm(list),
              list.sites.length === 0 ? nothingFound(list.query) : table(list),
              list.page.pages > 1 && pageLinks(list),
            ]
      }
    `,
  }
}

/** After a plan has ended there may be more than it allows. */
function activeInWords({ used, limit }: SitesList['usage']): string {
  return used > limit
    ? `${countInWords(used, 'active drop')}; your plan has room for ${limit}`
    : `${used} of ${limit} active`
}

function elsewhereInWords({ elsewhere }: Pick<SitesList, 'elsewhere'>): string {
  return elsewhere === 0 ? '' : `, ${elsewhere} of them in other free organisations of the same owner`
}

/** With fewer drops there is nothing to sort. */
const SORTED_FROM = 4

const SORT_WORDS: Readonly<Record<Sort, string>> = {
  newest: 'Newest first',
  published: 'Last published first',
  name: 'By name',
  views: 'Most views first',
}

function searchForm({ query, total, states }: SitesList): Html {
  const option = (value: string, label: string, current: string): Html =>
    html`<option value="${value}"${value === current && html` selected`}>${label}</option>`
  return html`
    <form class="search" role="search" method="get" action="/sites">
      <label class="visually-hidden" for="q">Search your drops</label>
      <input class="input" id="q" type="search" name="q" value="${query.search}"
          placeholder="Search by name or address">
      ${
        total >= SORTED_FROM &&
        html`
          <select class="input" aria-label="State" name="state">
            ${option('', 'All states', query.state ?? '')}
            ${states.map((state) => option(state, stateWords(state).word, query.state ?? ''))}
          </select>
          <select class="input" aria-label="Order" name="sort">
            ${SORTS.map((sort) => option(sort, SORT_WORDS[sort], query.sort))}
          </select>
        `
      }
      <button class="button">Search</button>
    </form>
  `
}

function nothingFound({ search }: ListQuery): Html {
  return html`<p class="soft">
    ${search === '' ? 'No drop is in this state.' : html`Nothing matches “<span class="whole">${search}</span>”.`}
    <a href="/sites">Show all</a>
  </p>`
}

function pageLinks({ sites, query, page }: SitesList): Html {
  const link = (to: number, label: string): Html | false =>
    to >= 1 && to <= page.pages && html`<a class="button" href="${listAddress({ ...query, page: to })}">${label}</a>`
  return html`
    <nav class="cluster spread" aria-label="Pages of the list">
      <p class="soft">${page.first} to ${page.first + sites.length - 1} of ${countInWords(page.found, 'drop')}</p>
      <p class="cluster">${link(page.page - 1, 'Previous')}${link(page.page + 1, 'Next')}</p>
    </nav>
  `
}

function table(list: SitesList): Html {
  return html`
    <table class="table stacked">
      <caption class="visually-hidden">Your drops</caption>
      <thead>
        <tr>
          <th scope="col">Drop</th>
          <th scope="col">State</th>
          <th scope="col">Views, 30 days</th>
          <th scope="col">Last publish</th>
        </tr>
      </thead>
      <tbody>${list.sites.map(({ site, recent }) => row(site, recent, list.now))}</tbody>
    </table>
  `
}

function row(site: ApiSite, recent: readonly number[], now: number): Html {
  return html`
    <tr>
      <th scope="row">
        ${thumbnail(site.card_url)}
        <a href="/sites/${site.id}"><strong>${nameOf(site)}</strong></a><br>
        <a class="small soft" href="${site.url}">${shortAddress(site.url)}</a>
      </th>
      <td>${stateTag(site.state)}${site.has_password && html` <span class="tag">Password</span>`}${
        site.access_mode === 'viewers' && html` <span class="tag">Private</span>`
      }</td>
      <td data-label="Views">
        <span class="spark-row">
          ${sparkline(recent)}
          <span>${site.views_30d.toLocaleString('en-GB')}</span>
        </span>
      </td>
      <td class="nowrap" data-label="Published">
        ${site.published_at === null ? 'never' : timeAgo(site.published_at, now)}
      </td>
    </tr>
  `
}

function emptyState(): Html {
  return html`
    <section class="empty" aria-labelledby="empty">
      <h2 id="empty">Your first drop takes ten seconds</h2>
      <ol class="steps">
        <li>Drop a file, a folder or a zip anywhere on this page, or paste some text on the next.</li>
        <li>It gets an address of its own, with HTTPS.</li>
        <li>Publish again whenever you like: every upload is a version you can go back to.</li>
      </ol>
      <p class="cluster">
        <a class="button primary" href="/sites/new">Publish something</a>
        <a class="button" href="/templates">Start from a template</a>
      </p>
    </section>
  `
}

export function newSitePage(
  viewer: AccountViewer,
  { sitesDomain, policy }: { sitesDomain: string; policy: VisibilityPolicy },
): Page {
  const form = formAt(viewer, '/sites/new')
  return {
    title: 'New drop',
    section: 'sites',
    scripts: ['publish', 'address'],
    body: html`
      <div class="head">
        <div>
          <h1>New drop</h1>
          <p class="soft">Publish something now, or reserve the address and fill it later.</p>
        </div>
      </div>
      <form class="form" method="post" action="${uploadAddress(viewer, form.action)}" enctype="multipart/form-data"
          ${publishTerms(viewer.signedIn.plan)}>
        ${form.start}
        <div class="row">
          ${form.text({
            name: 'slug',
            label: 'Address',
            placeholder: 'random',
            verbatim: true,
            maxlength: MAX_SLUG_CHARS,
            suffix: `.${sitesDomain}`,
            hint: `${SLUG_RULE}. Empty: we pick one.`,
          })}
          ${form.text({
            name: 'name',
            label: 'Name',
            maxlength: MAX_NAME_CHARS,
            hint: 'Only you see it. Empty: the title of the page.',
          })}
        </div>
        ${publishFields(form, { extra: audienceFields(form, policy) })}
      </form>
    `,
  }
}

/** Who may see a new drop: what the organisation has as usual is chosen, and what it forbids is not there. */
function audienceFields(form: PageForm, policy: VisibilityPolicy): Html {
  const everyone = ['public', 'Everyone who has the address'] as const
  const named = ['viewers', 'Only members and people I name'] as const
  return html`
    <div class="row">
      ${form.select({
        name: 'access_mode',
        label: 'Who may see it',
        value: defaultMode(policy),
        options: policy === 'no_public' ? [named] : [everyone, named],
        hint: policy === 'no_public' ? 'Your organisation has no public drops.' : 'It can be changed at any time.',
      })}
      ${form.text({
        name: 'viewers',
        label: 'People',
        placeholder: 'ada@example.com, @example.org',
        verbatim: true,
        hint: 'For a private drop: addresses and domains, with commas between them. They get a mail and need no account.',
      })}
    </div>
  `
}

/** What is live, in the paste box. */
export interface EditedText {
  readonly text: string
  readonly format: 'html' | 'markdown'
  /** The version that was live when it was opened. */
  readonly version: number
}

/** The fields of every publish form: files or text, progress, and the two ends of it. */
export function publishFields(form: PageForm, { edited, extra }: { edited?: EditedText; extra?: Html } = {}): Html {
  return html`
    <div class="two">
      <div class="stack">
        ${!edited && chooseFiles()}
        ${publishProgress()}
        ${!edited && html`<p class="or">or paste</p>`}
        ${pasteField({
          text: form.typed('text') ?? edited?.text ?? '',
          format: form.typed('format') ?? edited?.format ?? '',
          placeholder: 'HTML or Markdown',
          previewed: true,
        })}
      </div>
      <div class="stack">
        <div class="preview-frame" data-preview>
          <iframe class="preview" name="preview" title="Preview" sandbox="allow-scripts allow-forms"
              src="/preview"></iframe>
        </div>
      </div>
    </div>
    ${extra}
    ${form.check({
      name: ALLOW_SECRETS,
      label: 'Also publish files that look like secrets',
      hint: 'Keys, passwords, .env, .git and database dumps are refused otherwise: everyone could read them.',
      checked: false,
    })}
    <div class="cluster">
      <button class="button primary">Publish</button>
      <button class="button" formaction="/preview" formtarget="preview" formnovalidate>Preview the
      text</button>
    </div>
  `
}

function chooseFiles(): Html {
  return html`
    ${dropZone({
      name: 'files',
      title: 'Drop a folder, a zip or files',
      hint: 'anywhere on this page, or choose files',
      multiple: true,
    })}
    <p class="cluster" data-folder>
      <button class="button small" type="button" data-choose-folder>Choose a folder</button>
    </p>
  `
}
