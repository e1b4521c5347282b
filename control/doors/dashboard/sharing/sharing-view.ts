/** Who may see a drop: two clicks to share it, and the lists of those who may. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { isUnlimited } from '../../../ground/terms/plan-file.ts'
import { plans, type PlanName } from '../../../ground/terms/plans.ts'
import type { ApiSite } from '../../../drops/sites/schemas.ts'
import { nameViewer, type ApiGuestLink, type ApiViewer } from '../../../drops/viewers/schemas.ts'
import type { SharedDropEntry } from '../../../drops/visiting/shared-with-me.ts'
import { sitePage } from '../drops/drop-frame.ts'
import { csrfField, type Page, type Viewer } from '../frame/layout.ts'
import { confirmCard } from '../parts/confirm-card.ts'
import { formAt } from '../parts/form-fields.ts'
import { messagePage } from '../parts/message-page.ts'
import { copyRow } from '../parts/publish-result.ts'
import { countInWords, shortAddress, spoken, timeAgo } from '../parts/words.ts'

export interface SiteSharing {
  readonly site: ApiSite
  readonly plan: PlanName
  readonly viewers: readonly ApiViewer[]
  readonly links: readonly ApiGuestLink[]
  /** A link that was just made: shown this once. */
  readonly made?: string | undefined
  readonly now: number
  readonly flash?: Page['flash']
}

export function siteSharingPage(viewer: Viewer, view: SiteSharing): Page {
  const { site } = view
  return sitePage(site, '/sharing', {
    flash: view.flash,
    scripts: ['copy'],
    body: html`${view.made !== undefined && madeCard(view.made)}
      ${modeCard(viewer, view)}
      ${site.access_mode === 'viewers' && html`${inviteCard(viewer, view)}${viewersCard(viewer, view)}`}
      ${linksCard(viewer, view)}
      ${site.state === 'live' && commentsCard(viewer, view)}
      ${endCard(viewer, view)}`,
  })
}

/** The two ways to share, for pages that are about something else: it takes one more click there. */
export function shareButtons(viewer: Viewer, site: ApiSite): Html {
  const base = `/sites/${site.id}/sharing`
  if (site.access_mode !== 'viewers')
    return html`<p class="cluster"><a class="button small" href="${base}">Share with named people only</a></p>`
  return html`
    <form class="cluster" method="post" action="${base}/link">
      ${csrfField(viewer)}
      <button class="button small">Copy a guest link</button>
      <a class="button small" href="${base}#invite">Invite by e-mail</a>
    </form>
  `
}

function madeCard(url: string): Html {
  return html`
    <section class="card raised" aria-labelledby="made-title">
      <h2 id="made-title" tabindex="-1">Your guest link</h2>
      <p class="soft">Whoever has it can open the drop, without an account. It is shown this once.</p>
      ${copyRow(url, 'Guest link')}
    </section>
  `
}

const MODES: Readonly<Record<ApiSite['access_mode'], string>> = {
  public: 'Everyone with the address can see this drop.',
  password: 'Whoever knows the password can see this drop.',
  viewers: 'Only the people below can see this drop, and the members of your organisation.',
}

function modeCard(viewer: Viewer, { site }: SiteSharing): Html {
  const form = formAt(viewer, `/sites/${site.id}/sharing/mode`)
  const base = `/sites/${site.id}/sharing`
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="mode-title">
      <h2 id="mode-title">Who can see it</h2>
      ${form.start}
      <p>${MODES[site.access_mode]}</p>
      <div class="cluster">
        ${
          site.access_mode === 'viewers'
            ? html`<a class="button" href="${base}/public">Let everyone see it</a>
                <button class="button" formaction="${base}/open">Open it in this browser</button>`
            : html`<button class="button primary">Only people I name</button>`
        }
        ${site.access_mode === 'password' && html`<a class="button" href="/sites/${site.id}/settings">Password settings</a>`}
      </div>
    </form>
  `
}

function inviteCard(viewer: Viewer, { site, plan, viewers }: SiteSharing): Html {
  const form = formAt(viewer, `/sites/${site.id}/sharing/invite`)
  return html`
    <section class="card" id="invite" aria-labelledby="invite-title">
      <h2 id="invite-title">Share it</h2>
      <form class="form" method="post" action="${form.action}">
        ${form.start}
        ${form.text({
          name: 'viewers',
          label: 'Invite by e-mail',
          rows: 2,
          required: true,
          autocomplete: 'off',
          placeholder: 'ada@example.com, @example.org',
          hint: `Addresses, or @ and a domain for everyone there. ${namedInWords(viewers.length, plan)}`,
        })}
        ${form.check({
          name: 'comment',
          label: 'They may comment, too',
          hint: 'On the page for reviews; without it they look.',
          checked: false,
        })}
        <div class="cluster"><button class="button primary">Invite</button></div>
      </form>
      <form class="cluster" method="post" action="/sites/${site.id}/sharing/link">
        ${csrfField(viewer)}
        <button class="button">Copy a guest link</button>
      </form>
    </section>
  `
}

function viewersCard(viewer: Viewer, { site, viewers, now }: SiteSharing): Content {
  if (viewers.length === 0) return undefined
  const row = (each: ApiViewer): Html => html`
    <tr>
      <th scope="row">${nameViewer(each)} ${each.role === 'comment' && COMMENTS}</th>
      <td class="soft">${looked(each, now)}</td>
      <td class="right">
        <div class="cluster">
          ${
            each.kind === 'email' &&
            each.last_opened_at === null &&
            rowForm(viewer, site, { deed: 'remind', id: each.id, label: 'Remind', about: nameViewer(each) })
          }
          ${rowForm(viewer, site, { deed: 'remove', id: each.id, label: 'Remove', about: nameViewer(each) })}
        </div>
      </td>
    </tr>
  `
  return listCard('viewers', countInWords(viewers.length, 'viewer'), 'Viewer', viewers.map(row))
}

function looked({ last_opened_at, visits }: ApiViewer, now: number): Content {
  if (last_opened_at === null) return 'has not opened it yet'
  return html`last opened ${timeAgo(last_opened_at, now)}, ${countInWords(visits, 'page')}`
}

function linksCard(viewer: Viewer, { site, links, now }: SiteSharing): Content {
  if (links.length === 0) return undefined
  const row = (link: ApiGuestLink): Html => html`
    <tr>
      <th scope="row">${link.name || 'Guest link'}, made ${timeAgo(link.created_at, now)} ${link.role === 'comment' && COMMENTS}</th>
      <td class="soft">${used(link, now)}</td>
      <td class="right">
        <div class="cluster">
          ${rowForm(viewer, site, { deed: 'end', id: link.id, label: 'End', about: 'this guest link' })}
          ${
            link.role === 'comment' &&
            rowForm(viewer, site, {
              deed: 'end-with-comments',
              id: link.id,
              label: 'End and remove its comments',
              about: 'by this guest link',
            })
          }
        </div>
      </td>
    </tr>
  `
  return listCard('links', countInWords(links.length, 'guest link'), 'Guest link', links.map(row))
}

function used({ last_opened_at, uses, max_uses, expires_at }: ApiGuestLink, now: number): Content {
  const admitted = max_uses === null ? countInWords(uses, 'browser') : `${uses} of ${countInWords(max_uses, 'browser')}`
  return html`${last_opened_at === null ? 'not opened yet' : html`last opened ${timeAgo(last_opened_at, now)}`},
    ${admitted} let in${expires_at !== null && html`, ${Date.parse(expires_at) <= now ? 'ended' : 'ends'} ${timeAgo(expires_at, now)}`}`
}

const COMMENTS = html`<span class="tag accent">comments</span>`

function listCard(id: string, title: string, what: string, rows: readonly Html[]): Html {
  return html`
    <section class="card" aria-labelledby="${id}-title">
      <h2 id="${id}-title">${title}</h2>
      <table class="table stacked">
        <thead>
          <tr>
            <th scope="col">${what}</th>
            <th scope="col">Opened</th>
            <th scope="col"><span class="visually-hidden">Actions</span></th>
          </tr>
        </thead>
        <tbody>${rows}</tbody>
      </table>
    </section>
  `
}

/** Where people say what should be different, and who sees that. */
function commentsCard(viewer: Viewer, { site }: SiteSharing): Html {
  const form = formAt(viewer, `/sites/${site.id}/sharing/comments`)
  return html`
    <section class="card" id="comments" aria-labelledby="comments-title">
      <h2 id="comments-title">Comments</h2>
      <p>On its <a href="/review/${site.slug}">review page</a> people point at a passage and say what should be different.
        With a link that lets them comment they need no account. Nothing of it is shown at the drop's own address.</p>
      <form class="cluster" method="post" action="/sites/${site.id}/sharing/review-link">
        ${csrfField(viewer)}
        <button class="button">Make a link to comment</button>
      </form>
      <form class="form" method="post" action="${form.action}">
        ${form.start}
        ${form.select({
          name: 'threads_visible',
          label: 'Who reads comments',
          value: site.threads_visible,
          options: [
            ['commenters', 'Members and commenters'],
            ['viewers', 'Everyone who was let in'],
          ],
        })}
        ${form.select({
          name: 'thread_mails',
          label: 'Mail me what others wrote',
          value: site.thread_mails,
          options: [
            ['at_once', 'At once'],
            ['hourly', 'Every hour'],
            ['daily', 'Every day'],
            ['never', 'Never'],
          ],
        })}
        <div class="cluster"><button class="button">Save</button></div>
      </form>
    </section>
  `
}

function rowForm(
  viewer: Viewer,
  site: ApiSite,
  { deed, id, label, about }: { deed: string; id: string; label: string; about: string },
): Html {
  return html`
    <form method="post" action="/sites/${site.id}/sharing/${deed}">
      ${csrfField(viewer)}
      <input type="hidden" name="id" value="${id}">
      <button class="button small">${label}${spoken(about)}</button>
    </form>
  `
}

function endCard(viewer: Viewer, { site }: SiteSharing): Html {
  const form = formAt(viewer, `/sites/${site.id}/sharing/rules`)
  return html`
    <form class="card" method="post" action="${form.action}" aria-labelledby="rules-title">
      <h2 id="rules-title">Until when</h2>
      ${form.start}
      ${form.text({
        name: 'access_until',
        label: 'Visitors can see it until',
        type: 'date',
        value: site.access_until?.slice(0, 10) ?? '',
        hint: 'The end of that day, UTC. Empty: without an end. Nothing is deleted, and you can extend it.',
      })}
      ${form.check({
        name: 'access_requests',
        label: 'Others may ask me for access',
        hint: 'You get one mail for each, with one button.',
        checked: site.access_requests,
      })}
      <div><button class="button primary">Save${spoken('until when')}</button></div>
    </form>
  `
}

export function openToAllPage(viewer: Viewer, site: ApiSite): Page {
  const base = `/sites/${site.id}/sharing`
  return sitePage(site, '/sharing', {
    body: confirmCard(formAt(viewer, `${base}/public`), {
      title: 'Let everyone see this drop?',
      what: html`<p>Anyone with the address sees ${shortAddress(site.url)} at once. The list of viewers stays for later.</p>`,
      button: 'Let everyone see it',
      back: base,
      keep: 'Keep it private',
    }),
  })
}

export function sharedPage(drops: readonly SharedDropEntry[], now: number): Page {
  return {
    title: 'Shared with me',
    section: 'sites',
    body: html`
      <div class="stack">
        <h1>Shared with me</h1>
        ${
          drops.length === 0
            ? html`<p class="soft">No one shares a drop with your address at the moment.</p>`
            : html`<ul class="plain stack">
                ${drops.map(
                  (drop) => html`
                    <li class="card">
                      <h2><a href="${drop.url}">${drop.title}</a></h2>
                      <p class="soft">
                        From ${drop.shared_by}, ${timeAgo(drop.shared_at, now)}.
                        ${drop.last_opened_at === null ? 'Not opened yet.' : html`Last opened ${timeAgo(drop.last_opened_at, now)}.`}
                      </p>
                    </li>
                  `,
                )}
              </ul>`
        }
      </div>
    `,
  }
}

/** Behind the button of the mail that asks the owner. */
export function accessRequestPage(
  viewer: Viewer,
  token: string,
  request: { readonly email: string; readonly drop: string } | undefined,
): Page {
  if (!request)
    return messagePage({
      title: 'This is decided already',
      lead: 'The link was used, or it is too old. Your drops show who may see them.',
      actions: html`<a class="button" href="/sites">To my drops</a>`,
      status: 410,
    })
  const form = formAt(viewer, '/access-request', { token })
  return messagePage({
    title: `Let ${request.email} see ${request.drop}?`,
    lead: 'They are put on the list of viewers and get a mail with a link.',
    actions: html`<form method="post" action="${form.action}">
      ${form.start}<button class="button primary">Let them in</button>
    </form>`,
  })
}

export function letInPage({ email, drop }: { readonly email: string; readonly drop: string }): Page {
  return messagePage({
    title: 'Done',
    lead: `${email} may see ${drop} now, and gets a mail that says so.`,
    actions: html`<a class="button" href="/sites">To my drops</a>`,
  })
}

function namedInWords(count: number, plan: PlanName): string {
  const { viewersPerDrop } = plans[plan]
  return isUnlimited(viewersPerDrop) ? `${count} are named.` : `${count} of ${viewersPerDrop} are named.`
}
