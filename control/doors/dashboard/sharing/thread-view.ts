/** Threads as the review page lists them. What people wrote becomes text and a little markup, never markup of theirs. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { tagOf } from '../../../drops/publishing/comparison/figures.ts'
import { diffLines } from '../../../drops/publishing/comparison/text-diff.ts'
import { MAX_BODY_CHARS } from '../../../drops/threads/rules.ts'
import type { ApiMessage, ApiThread } from '../../../drops/threads/schemas.ts'
import { csrfField, type Viewer } from '../frame/layout.ts'
import { timeAgo } from '../parts/words.ts'

/** What the list needs to know of who looks at it. */
export interface ListedFor {
  readonly viewer: Viewer
  /** `/review/<slug>`. */
  readonly base: string
  /** What of the address stays: the preview and the filter. */
  readonly query: string
  readonly mayWrite: boolean
  readonly isMember: boolean
  /** Whether this person may resolve, by the id of the thread. */
  maySettle(thread: ApiThread): boolean
  readonly chosen: string | undefined
  /** The message that is being changed. */
  readonly editing: string | undefined
  /** Only some of the open comments are listed. */
  readonly isFiltered: boolean
  readonly now: number
}

const PLACEMENTS = {
  same: undefined,
  moved: { tone: 'accent', text: 'Moved with its text' },
  changed: { tone: 'warn', text: 'Changed here' },
  gone: { tone: 'bad', text: 'No longer on the page' },
} as const

export function threadList(threads: readonly ApiThread[], about: ListedFor): Html {
  if (threads.length === 0)
    return html`
      <p class="soft review-none">
        ${about.isFiltered ? 'Nothing of this kind.' : 'Nothing here yet.'}
        ${about.mayWrite && !about.isFiltered && 'Select some text on the page, point at an image, or write a note about all of it.'}
      </p>
    `
  return html`<ol class="plain threads" aria-label="Comments">${threads.map((thread) => threadItem(thread, about))}</ol>`
}

function threadItem(thread: ApiThread, about: ListedFor): Html {
  const { id, page, state, label, messages } = thread
  const where = PLACEMENTS[thread.placement]
  const quote = thread.found ?? thread.anchor
  const marked = thread.placement === 'gone' || quote === null ? '' : JSON.stringify(pointer(quote))
  return html`
    <li class="thread ${state}" id="${id}" tabindex="-1" data-page="${page}" data-quote="${marked}"
      ${about.chosen === id ? html` aria-current="true"` : ''}>
      <p class="cluster thread-head">
        <a class="thread-place" href="${about.base}?thread=${id}" data-show="${id}">Page ${page}</a>
        ${label === 'must' && html`<span class="tag bad">must</span>`}
        ${label === 'nice' && html`<span class="tag">nice to have</span>`}
        ${state === 'resolved' && resolvedTag(thread)}
        ${where && state === 'open' && html`<span class="tag ${where.tone}">${where.text}</span>`}
      </p>
      ${thread.anchor && (thread.anchor.exact === '' ? figureQuote(thread) : quoteOf(thread))}
      <ol class="plain messages">${messages.map((message) => messageItem(message, about))}</ol>
      ${forms(thread, about)}
    </li>
  `
}

function resolvedTag({ resolved_version: version }: ApiThread): Html {
  return html`<span class="tag good">resolved${version !== undefined && ` in version ${version}`}</span>`
}

/** What the framed page needs to find the place. */
const pointer = ({ exact, prefix, suffix, element, src, point }: NonNullable<ApiThread['anchor']>) => ({
  exact,
  prefix,
  suffix,
  ...(element === undefined ? {} : { element }),
  ...(src === undefined ? {} : { src }),
  ...(point === undefined ? {} : { point }),
})

/** An image, or another element that has no words to quote. */
function figureQuote({ anchor, found, placement }: ApiThread): Html {
  const said = figureName(anchor)
  const now = placement === 'changed' ? figureName(found) : said
  const point = anchor?.point
  return html`
    <blockquote class="quote">${now === said ? said : html`<del>${said}</del> <ins>${now}</ins>`}${
      point && html` <span class="soft small">${percent(point.x)} across, ${percent(point.y)} down</span>`
    }</blockquote>
  `
}

function figureName(anchor: ApiThread['anchor']): string {
  const tag = tagOf(anchor?.element ?? '') || 'element'
  const src = anchor?.src ?? ''
  const file = src.startsWith('data:') ? '' : (src.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? '')
  return `${tag === 'img' ? 'Image' : `<${tag}>`}${file === '' ? '' : ` ${file}`}`
}

const percent = (share: number): string => `${Math.round(share * 100)} %`

/** Where other words stand now, both are shown. */
function quoteOf({ anchor, found, placement }: ApiThread): Html {
  const said = anchor?.exact ?? ''
  if (placement !== 'changed' || !found) return html`<blockquote class="quote">${shortened(said)}</blockquote>`
  if (said.length + found.exact.length > MAX_COMPARED)
    return html`<blockquote class="quote"><del>${shortened(said)}</del> <ins>${shortened(found.exact)}</ins></blockquote>`
  const lines = diffLines(said.split(' ').join('\n'), found.exact.split(' ').join('\n')) ?? []
  const words = lines.map(({ kind, text }): Content => {
    if (kind === 'removed') return html`<del>${text}</del> `
    return kind === 'added' ? html`<ins>${text}</ins> ` : `${text} `
  })
  return html`<blockquote class="quote">${words}</blockquote>`
}

/** Characters of both quotes that are compared word by word here, on the main thread. */
const MAX_COMPARED = 1000

/** As much of a quote as tells what is meant. */
const MAX_QUOTED = 280

function shortened(text: string): string {
  return text.length <= MAX_QUOTED ? text : `${text.slice(0, MAX_QUOTED)}…`
}

function messageItem(message: ApiMessage, about: ListedFor): Html {
  const { id, body, author, at, edited_at, mine } = message
  return html`
    <li class="message" id="${id}" data-at="${at}"${mine === true ? html` data-mine` : ''}>
      <p class="small message-head"><strong>${author.name === '' ? 'Someone' : author.name}</strong>
        ${author.kind === 'member' && html`<span class="soft">· team</span>`}
        <span class="soft">· ${timeAgo(at, about.now)}${edited_at !== null && ', edited'}</span></p>
      ${about.editing === id && mine === true ? '' : html`<div class="said">${said(body)}</div>`}
      ${message.images.length > 0 && pictures(message, about.base)}
      ${about.editing === id ? messageForms(message, about) : messageMore(message, about)}
    </li>
  `
}

/** Our own address, whatever the page is called from. */
function pictures({ images, author }: ApiMessage, base: string): Html {
  const alt = `Image by ${author.name === '' ? 'someone' : author.name}`
  const shown = images.map(({ id, width, height }) => {
    const address = `${base}/images/${id}`
    return html`
      <a href="${address}" target="_blank">
        <img src="${address}" width="${width}" height="${height}" loading="lazy" alt="${alt}">
      </a>
    `
  })
  return html`<div class="pictures">${shown}</div>`
}

/** Authors change and delete what they wrote, members take away what others did. */
function messageMore({ id, mine }: ApiMessage, { base, query, mayWrite, isMember }: ListedFor): Content {
  const isOwn = mine === true && mayWrite
  if (!isOwn && !isMember) return ''
  const address = `${base}${query === '' ? '?' : `${query}&`}edit=${id}#${id}`
  return html`<p class="small message-more"><a href="${address}" data-edit="${id}">${isOwn ? 'Edit or delete' : 'Delete'}</a></p>`
}

/** In the place of a message: its words to be changed by their author, and its end. */
function messageForms(message: ApiMessage, { viewer, base, query, mayWrite, isMember }: ListedFor): Content {
  const { id, body, mine } = message
  const isOwn = mine === true && mayWrite
  if (!isOwn && !isMember) return ''
  return html`
    <div class="message-edit">
      ${
        isOwn &&
        html`
        <form id="edit-${id}" method="post" action="${base}/messages/${id}/edit${query}" data-live>
          ${csrfField(viewer)}
          <label class="visually-hidden" for="body-${id}">What you wrote</label>
          <textarea class="input" id="body-${id}" name="body" rows="4" maxlength="${MAX_BODY_CHARS}" required>${body}</textarea>
        </form>
      `
      }
      <div class="cluster">
        ${isOwn && html`<button class="button small primary" form="edit-${id}">Save</button>`}
        <a class="button small" href="${base}${query}#${id}" data-edit="">Cancel</a>
        <form method="post" action="${base}/messages/${id}/delete${query}" data-live>
          ${csrfField(viewer)}
          <button class="button small danger">Delete for good</button>
        </form>
      </div>
    </div>
  `
}

function forms(thread: ApiThread, about: ListedFor): Content {
  const { viewer, base, query, mayWrite } = about
  const { id, state } = thread
  const settle = about.maySettle(thread)
  if (!mayWrite && !settle) return ''
  return html`
    <div class="thread-forms">
      ${
        mayWrite &&
        html`
        <form class="thread-answer" method="post" action="${base}/threads/${id}/reply${query}" enctype="multipart/form-data" data-live>
          ${csrfField(viewer)}
          <label class="visually-hidden" for="reply-${id}">Your answer</label>
          <textarea class="input" id="reply-${id}" name="body" rows="1" maxlength="${MAX_BODY_CHARS}" required
            placeholder="Answer"></textarea>
          <div class="pictures" data-pasted></div>
          <button class="button small">Answer</button>
          ${imageField()}
        </form>
      `
      }
      ${
        settle &&
        html`
        <div class="cluster thread-settle">
          <form method="post" action="${base}/threads/${id}/state${query}" data-live>
            ${csrfField(viewer)}
            <input type="hidden" name="state" value="${state === 'open' ? 'resolved' : 'open'}">
            <button class="button small">${state === 'open' ? 'Resolve' : 'Reopen'}</button>
          </form>
          ${labelForm(thread, about)}
        </div>
      `
      }
    </div>
  `
}

/** Images from this machine, for who cannot paste them: with scripts they are sent when they are chosen. */
export function imageField(): Html {
  return html`
    <details class="review-images small">
      <summary>Add an image</summary>
      <input type="file" name="image" accept="image/png,image/jpeg,image/gif,image/webp" multiple
        aria-label="Images: PNG, JPEG, GIF or WebP">
    </details>
  `
}

/** Chosen at once with scripts, by its button without. */
function labelForm({ id, label }: ApiThread, { viewer, base, query }: ListedFor): Html {
  const option = ([value, word]: (typeof LABELS)[number]): Html =>
    html`<option value="${value}"${(label ?? '') === value ? html` selected` : ''}>${word}</option>`
  return html`
    <form class="cluster thread-label" method="post" action="${base}/threads/${id}/label${query}" data-live>
      ${csrfField(viewer)}
      <select class="input small" id="label-${id}" aria-label="How much it matters" name="label"
          data-at-once>${LABELS.map(option)}</select>
      <button class="button small" data-by-hand>Set</button>
    </form>
  `
}

/** How much a comment matters, in words; the empty one is none. */
export const LABELS = [
  ['', 'No label'],
  ['must', 'Must'],
  ['nice', 'Nice to have'],
] as const

/** Paragraphs, lines, `code`, **bold** and web addresses; everything else is text. Reads each character a few times. */
function said(body: string): Content {
  return body
    .split(/\n[ \t]*\n/)
    .filter((part) => part.trim() !== '')
    .map(
      (part) =>
        html`<p>${part
          .trim()
          .split('\n')
          .map((line, index) => [index > 0 && html`<br>`, inline(line)])}</p>`,
    )
}

const INLINE = /`([^`]{1,500})`|\*\*([^*]{1,500})\*\*|(https?:\/\/[^\s<>"')\]]{1,1000})/g

function inline(line: string): Content {
  const parts: Content[] = []
  let from = 0
  for (const match of line.matchAll(INLINE)) {
    const [whole, code, bold, url] = match
    parts.push(line.slice(from, match.index))
    if (code !== undefined) parts.push(html`<code>${code}</code>`)
    else if (bold !== undefined) parts.push(html`<strong>${bold}</strong>`)
    else if (url !== undefined)
      parts.push(html`<a href="${url}" rel="nofollow noopener noreferrer" target="_blank">${url}</a>`)
    from = match.index + whole.length
  }
  return [...parts, line.slice(from)]
}
