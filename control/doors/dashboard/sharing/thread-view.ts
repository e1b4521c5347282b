/** Threads as the review page lists them. What people wrote becomes text and a little markup, never markup of theirs. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
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
  /** Whether this person may resolve, by the id of the thread. */
  maySettle(thread: ApiThread): boolean
  readonly chosen: string | undefined
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
        Nothing here yet. ${about.mayWrite && 'Select some text on the page, or write a note about all of it.'}
      </p>
    `
  return html`<ol class="plain threads" aria-label="Comments">${threads.map((thread) => threadItem(thread, about))}</ol>`
}

function threadItem(thread: ApiThread, about: ListedFor): Html {
  const { id, page, state, label, messages } = thread
  const where = PLACEMENTS[thread.placement]
  const quote = thread.found ?? thread.anchor
  const marked =
    thread.placement === 'gone' || quote === null || quote.exact === '' ? '' : JSON.stringify(pointer(quote))
  return html`
    <li class="thread ${state}" id="${id}" tabindex="-1" data-page="${page}" data-quote="${marked}"
      ${about.chosen === id ? html` aria-current="true"` : ''}>
      <p class="cluster thread-head">
        <a class="thread-place" href="${about.base}?thread=${id}" data-show="${id}">${page}</a>
        ${label === 'must' && html`<span class="tag bad">must</span>`}
        ${label === 'nice' && html`<span class="tag">nice to have</span>`}
        ${state === 'resolved' && resolvedTag(thread)}
        ${where && state === 'open' && html`<span class="tag ${where.tone}">${where.text}</span>`}
      </p>
      ${thread.anchor && thread.anchor.exact !== '' && quoteOf(thread)}
      <ol class="plain messages">${messages.map((message) => messageItem(message, about.now))}</ol>
      ${forms(thread, about)}
    </li>
  `
}

function resolvedTag({ resolved_version: version }: ApiThread): Html {
  return html`<span class="tag good">resolved${version !== undefined && ` in version ${version}`}</span>`
}

const pointer = ({ exact, prefix, suffix }: { exact: string; prefix: string; suffix: string }) => ({
  exact,
  prefix,
  suffix,
})

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

function messageItem({ id, body, author, at, edited_at }: ApiMessage, now: number): Html {
  return html`
    <li class="message" id="${id}">
      <p class="small"><strong>${author.name === '' ? 'Someone' : author.name}</strong>
        ${author.kind === 'member' && html`<span class="soft">· team</span>`}
        <span class="soft">· ${timeAgo(at, now)}${edited_at !== null && ', edited'}</span></p>
      <div class="said">${said(body)}</div>
    </li>
  `
}

function forms(thread: ApiThread, { viewer, base, query, mayWrite, maySettle }: ListedFor): Content {
  const { id, state } = thread
  const settle = maySettle(thread)
  if (!mayWrite && !settle) return ''
  return html`
    <div class="thread-forms">
      ${
        mayWrite &&
        html`
        <form method="post" action="${base}/threads/${id}/reply${query}" data-live>
          ${csrfField(viewer)}
          <label class="visually-hidden" for="reply-${id}">Your answer</label>
          <textarea class="input" id="reply-${id}" name="body" rows="1" maxlength="${MAX_BODY_CHARS}" required
            placeholder="Answer"></textarea>
          <button class="button small">Answer</button>
        </form>
      `
      }
      ${
        settle &&
        html`
        <form method="post" action="${base}/threads/${id}/state${query}" data-live>
          ${csrfField(viewer)}
          <input type="hidden" name="state" value="${state === 'open' ? 'resolved' : 'open'}">
          <button class="button small">${state === 'open' ? 'Resolve' : 'Reopen'}</button>
        </form>
      `
      }
    </div>
  `
}

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
