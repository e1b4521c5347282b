/** For staff: what waits for a decision, and a search to find anything else. */
import { MAX_MESSAGE_CHARS } from '../../../../shared/contracts/limits.ts'
import { html, safeUrl, type Content, type Html } from '../../../../shared/pages/html.ts'
import type { Trust } from '../../../drops/trust/trust.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { timeAgo } from '../parts/words.ts'

type QueueEntry = Awaited<ReturnType<Trust['openQueue']>>[number]
type FoundSite = Awaited<ReturnType<Trust['search']>>[number]

export interface StaffPage {
  readonly queue: readonly QueueEntry[]
  readonly search: string
  readonly found: readonly FoundSite[]
  readonly now: number
}

export function staffPage(viewer: Viewer, view: StaffPage): Page {
  return {
    title: 'Staff',
    section: 'staff',
    body: html`
      <div class="head"><h1>Trust and safety</h1></div>
      <section class="section" aria-labelledby="search">
        <h2 id="search">Find a drop</h2>
        <form class="search" role="search" method="get" action="/staff">
          <label class="visually-hidden" for="q">Address, domain or e-mail</label>
          <input class="input" id="q" type="search" name="q" value="${view.search}"
              placeholder="Address, domain or e-mail">
          <button class="button">Search</button>
        </form>
        ${
          view.search !== '' &&
          (view.found.length === 0
            ? html`<p class="soft">Nothing matches “${view.search}”.</p>`
            : html`<ul class="plain section">${view.found.map((site) => foundCard(viewer, site, view.search))}</ul>`)
        }
      </section>
      <section class="section" aria-labelledby="queue">
        <h2 id="queue">Waiting (${view.queue.length})</h2>
        ${
          view.queue.length === 0
            ? html`<p class="soft">Nothing waits for a decision.</p>`
            : html`<ul class="plain section">${view.queue.map((entry) => queueCard(viewer, entry, view))}</ul>`
        }
      </section>
    `,
  }
}

function queueCard(viewer: Viewer, entry: QueueEntry, { now, search }: StaffPage): Html {
  return html`
    <li class="card">
      <div class="head">
        <div>
          <h3>${entry.title || entry.slug || entry.url}</h3>
          <p class="small">${reportedAddress(entry.address)}</p>
        </div>
        <span class="tag ${entry.kind === 'report' ? 'bad' : 'warn'}">${entry.kind === 'report' ? 'Reported' : `Score ${entry.score}`}</span>
      </div>
      <p>
        ${entry.reasons.join(', ')}${entry.detail !== '' && html`<br><span class="soft">${entry.detail}</span>`}
      </p>
      <p class="small soft">${timeAgo(entry.created_at, now)}</p>
      <div class="cluster">
        ${entry.slug !== null && takedownForm(viewer, entry.slug, entry.id, search)}
        <form method="post" action="/staff/dismiss">
          ${csrfField(viewer)}
          <input type="hidden" name="id" value="${entry.id}">
          <button class="button">Dismiss</button>
        </form>
      </div>
    </li>
  `
}

/** Strangers type it: what is no web address (`javascript:80//…`) must not be one click away. */
function reportedAddress(address: string): Content {
  const href = safeUrl(address)
  return href ? html`<a href="${href}" rel="noopener noreferrer nofollow">${address}</a>` : address
}

function foundCard(viewer: Viewer, site: FoundSite, search: string): Html {
  return html`
    <li class="card">
      <div class="head">
        <div>
          <h3>${site.title || site.slug}</h3>
          <p class="small soft">${site.slug} · ${site.owner_email ?? 'anonymous'}</p>
        </div>
        ${site.taken_down_at !== null && html`<span class="tag bad">Taken down</span>`}
      </div>
      ${
        site.taken_down_at === null
          ? takedownForm(viewer, site.slug, site.id, search)
          : html`
            <p class="soft">${site.taken_down_reason}</p>
            <form method="post" action="/staff/restore">
              ${csrfField(viewer)}
              <input type="hidden" name="slug" value="${site.slug}">
              <button class="button">Restore</button>
            </form>
          `
      }
    </li>
  `
}

function takedownForm(viewer: Viewer, slug: string, id: string, search: string): Html {
  const form = formAt(viewer, '/staff/takedown', { slug, q: search })
  return html`
    <details${form.isRefused ? html` open` : ''}>
      <summary>Take it down</summary>
      <form class="form" method="post" action="${form.action}">
        ${form.start}
        ${form.text({
          name: 'reason',
          id: `reason-${id}`,
          label: 'Reason',
          required: true,
          hint: 'The owner gets it by mail.',
          maxlength: MAX_MESSAGE_CHARS,
        })}
        <div><button class="button danger">Take down ${slug}</button></div>
      </form>
    </details>
  `
}
