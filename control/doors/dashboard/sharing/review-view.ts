/** The review page: the drop in a frame, what people say about it beside it, and the doors for who is not in yet. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { MAX_AUTHOR_CHARS, MAX_BODY_CHARS, type ThreadLabel } from '../../../drops/threads/rules.ts'
import type { ApiThread } from '../../../drops/threads/schemas.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { formAt } from '../parts/form-fields.ts'
import { nameOf } from '../parts/words.ts'
import { imageField, LABELS, threadList, type ListedFor } from './thread-view.ts'

interface NamedDrop {
  readonly slug: string
  readonly name: string
  readonly title: string
}

export interface Shell {
  readonly drop: NamedDrop & { readonly id: string }
  readonly frame: { readonly src: string; readonly origin: string; readonly pass: string }
  readonly page: string
  readonly preview: string | undefined
  readonly version: number | undefined
  readonly state: 'open' | 'resolved' | 'all'
  readonly label: ThreadLabel | undefined
  readonly threads: readonly ApiThread[]
  /** How far the list is, as `Review.changed` says. */
  readonly changed: number
  readonly list: ListedFor
  /** The name under which this person writes. */
  readonly name: string
  /** Leads to making the drop public; members alone. */
  readonly shareUrl: string | undefined
}

const STATES = [
  ['open', 'Open'],
  ['resolved', 'Resolved'],
  ['all', 'All'],
] as const

export function reviewPage(viewer: Viewer, shell: Shell): Page {
  const { drop, frame, page, preview, version, list } = shell
  return {
    title: `Review of ${nameOf(drop)}`,
    frames: [frame.origin],
    scripts: ['review'],
    // A page that works hard in the frame does not keep this one from answering.
    headers: { 'origin-agent-cluster': '?1' },
    body: html`
      <div class="review" data-review="${list.base}" data-origin="${frame.origin}" data-preview="${preview ?? ''}"
        data-pass="${frame.pass}" data-page="${page}" data-version="${version ?? ''}" data-changed="${shell.changed}"
        data-state="${shell.state}" data-label="${shell.label ?? ''}">
        <section class="review-shown" aria-label="The page">
          <div class="review-bar">
            <h1 class="review-title clip">${nameOf(drop)}</h1>
            <span class="soft small">${preview !== undefined && html`preview ${preview} · `}<span data-path>${page}</span>${
              version !== undefined && html` · version <span data-number>${version}</span>`
            }</span>
            <span class="review-present small soft" data-present aria-live="polite"></span>
            ${shell.shareUrl !== undefined && html`<a class="button small" href="${shell.shareUrl}">Make public</a>`}
          </div>
          <iframe class="review-frame" title="${nameOf(drop)}" src="${frame.src}"
            sandbox="allow-scripts allow-same-origin allow-forms" allow="" referrerpolicy="no-referrer"></iframe>
        </section>
        <section class="review-side" aria-labelledby="said-title">
          <div class="cluster spread">
            <h2 id="said-title">Comments</h2>
            <nav aria-label="Which comments">
              <ul class="plain cluster review-states">${STATES.map((each) => filterLink(shell, { state: each[0] }, each[1]))}</ul>
              <ul class="plain cluster review-states">${FILTERS.map(([label, word]) => filterLink(shell, { label }, word))}</ul>
            </nav>
          </div>
          <p class="notice" role="status" data-status hidden></p>
          <div class="notice cluster spread" data-changes hidden>
            <span data-changes-text></span>
            <button class="button small" type="button" data-next-change>Next change</button>
          </div>
          ${list.mayWrite && noteForm(viewer, shell)}
          <div data-list>${threadList(shell.threads, list)}</div>
        </section>
      </div>
    `,
  }
}

const FILTERS = [
  [undefined, 'Any label'],
  ['must', 'Must'],
  ['nice', 'Nice to have'],
] as const

/** One choice of the filters; the others stay as they are. */
function filterLink(shell: Shell, choice: Partial<Pick<Shell, 'state' | 'label'>>, word: string): Html {
  const wanted = { state: shell.state, label: shell.label, ...choice }
  // Names of ours: nothing in them needs to be escaped.
  const query = [
    ...(shell.preview === undefined ? [] : [`preview=${shell.preview}`]),
    `state=${wanted.state}`,
    ...(wanted.label === undefined ? [] : [`label=${wanted.label}`]),
  ].join('&')
  const isCurrent = wanted.state === shell.state && wanted.label === shell.label
  return html`<li><a class="small" href="${shell.list.base}?${query}"${isCurrent ? html` aria-current="true"` : ''}>${word}</a></li>`
}

/** Works without scripts as a note about the page; with them about what is selected or pointed at. */
function noteForm(viewer: Viewer, { list, page, name }: Shell): Html {
  const form = formAt(viewer, `${list.base}/notes${list.query}`)
  return html`
    <form class="review-note form" method="post" action="${form.action}" enctype="multipart/form-data" data-live data-note>
      ${form.start}
      <input type="hidden" name="page" value="${page}">
      ${ANCHOR_FIELDS.map((field) => html`<input type="hidden" name="${field}" value="">`)}
      <div class="review-tools cluster" data-tools hidden>
        <button class="button small" type="button" data-point aria-pressed="false">Point at something</button>
        <button class="button small" type="button" data-step="text">Next paragraph</button>
        <button class="button small" type="button" data-step="figure">Next image</button>
      </div>
      <div class="review-quoted" data-about hidden>
        <blockquote class="quote" data-quoted aria-live="polite"></blockquote>
        <fieldset class="review-point" data-place hidden>
          <legend class="small">Where in it</legend>
          <label class="small">Across <input type="range" min="0" max="100" value="50" data-x></label>
          <label class="small">Down <input type="range" min="0" max="100" value="50" data-y></label>
        </fieldset>
        <button class="button small" type="button" data-unquote>About the page instead</button>
      </div>
      ${form.text({
        name: 'body',
        label: 'What should be different?',
        rows: 3,
        required: true,
        maxlength: MAX_BODY_CHARS,
        hint: `You write as ${name}. An image is pasted like text.`,
      })}
      <div class="pictures" data-pasted></div>
      ${imageField()}
      <div class="cluster spread">
        <select class="input review-label" id="note-label" aria-label="How much it matters" name="label">
          ${LABELS.map(([value, word]) => html`<option value="${value}">${word}</option>`)}
        </select>
        <button class="button primary small">Comment</button>
      </div>
    </form>
  `
}

/** What the note is about, filled in by the script. */
export const ANCHOR_FIELDS = ['exact', 'prefix', 'suffix', 'element', 'src', 'x', 'y'] as const

/** Behind a link that lets its holder comment: who they are, asked once. */
export function namePage(viewer: Viewer, drop: NamedDrop, action: string): Page {
  const form = formAt(viewer, action)
  return door(
    { title: `Review of ${nameOf(drop)}`, heading: nameOf(drop) },
    html`
    <p class="lead">You were asked what you think of ${nameOf(drop)}. Look at it, point at what should be different, and
      say why.</p>
    <form class="form" method="post" action="${form.action}">
      ${form.start}
      ${form.text({
        name: 'name',
        label: 'Your name',
        required: true,
        maxlength: MAX_AUTHOR_CHARS,
        autocomplete: 'name',
        hint: 'Others who review this see it beside what you write. You need no account.',
      })}
      <div class="cluster"><button class="button primary">Go to the page</button></div>
    </form>
  `,
  )
}

/**
 * For who has neither a link nor a session: viewers come in with a code that is mailed to them. What the drop is called is
 * not said here, since it may be private.
 */
export function comeInPage(viewer: Viewer, { base, email }: { base: string; email: string | undefined }): Page {
  const signIn = `/signin?next=${encodeURIComponent(base)}`
  return {
    ...door(
      { title: 'Review', heading: 'Only for those who were invited' },
      html`
      <p class="lead">Members, and people who were asked what they think, comment on a page here.</p>
      ${email === undefined ? emailForm(viewer, base) : codeForm(viewer, base, email)}
      <p class="soft">Have an account here? <a href="${signIn}">Sign in</a>. Or open the link that you were sent.</p>
    `,
    ),
    status: 401,
  }
}

function emailForm(viewer: Viewer, base: string): Html {
  const form = formAt(viewer, `${base}/code`)
  return html`
    <form class="form" method="post" action="${form.action}">
      ${form.start}
      ${form.text({
        name: 'email',
        label: 'Your e-mail address',
        type: 'email',
        required: true,
        autocomplete: 'email',
        hint: 'If it is on the list, a code is mailed to it.',
      })}
      <div class="cluster"><button class="button primary">Mail me a code</button></div>
    </form>
  `
}

function codeForm(viewer: Viewer, base: string, email: string): Html {
  const form = formAt(viewer, `${base}/enter`)
  return html`
    <form class="form" method="post" action="${form.action}">
      ${form.start}
      <input type="hidden" name="email" value="${email}">
      ${form.text({
        name: 'code',
        label: 'The code from the mail',
        required: true,
        maxlength: 20,
        autocomplete: 'one-time-code',
        verbatim: true,
        hint: `If ${email} is on the list, the code is in its mail box.`,
      })}
      ${form.text({ name: 'name', label: 'Your name', required: true, maxlength: MAX_AUTHOR_CHARS, autocomplete: 'name' })}
      <div class="cluster"><button class="button primary">Go to the page</button></div>
    </form>
  `
}

function door({ title, heading }: { title: string; heading: string }, content: Content): Page {
  return {
    title,
    headers: { 'x-robots-tag': 'noindex' },
    body: html`<div class="narrow section"><div class="stack"><h1>${heading}</h1>${content}</div></div>`,
  }
}
