import { html, type Content, type Html } from '../../../../../shared/pages/html.ts'
import type { PartState, Status } from '../../../status/status.ts'
import type { Page } from '../../frame/layout.ts'
import { timeAgo } from '../../parts/words.ts'
import type { MarkdownText } from '../markdown-text.ts'

/** `note`: what stands below the text. */
export function textPage(canonical: string, { title, description, body }: MarkdownText, note?: Content): Page {
  return {
    title,
    description: description ?? title,
    canonical,
    body: html`
      <article class="guide">
        <h1>${title}</h1>
        ${body}
        ${note}
      </article>
    `,
  }
}

const WORDS: Readonly<Record<PartState, { readonly tone: string; readonly word: string; readonly sentence: string }>> =
  {
    ok: { tone: 'good', word: 'Works', sentence: 'Everything works' },
    degraded: { tone: 'warn', word: 'Limited', sentence: 'Something is slower than usual' },
    away: { tone: 'bad', word: 'Away', sentence: 'Something does not work' },
  }

export function statusPage({ state, checkedAt, parts }: Status, now: number): Page {
  return {
    title: 'Status',
    description: 'Whether this service is well right now.',
    canonical: '/status',
    headers: { 'cache-control': 'no-store' },
    body: html`
      <article class="guide">
        <h1>${WORDS[state].sentence}</h1>
        <p class="soft">
          Looked at ${timeAgo(checkedAt, now)}, by the part of the service that you are talking to. Monitors read
          <a href="/api/v1/status">the same as JSON</a>.
        </p>
        <ul class="parts plain">
          ${parts.map(
            (part) => html`
              <li class="cluster spread">
                <div>
                  <h2>${part.name}</h2>
                  <p class="soft">${part.detail}</p>
                </div>
                ${tag(part.state)}
              </li>
            `,
          )}
        </ul>
        <p>Something is wrong and not shown here? <a href="/help">Help</a> says how to reach us.</p>
      </article>
    `,
  }
}

function tag(state: PartState): Html {
  return html`<span class="tag ${WORDS[state].tone}">${WORDS[state].word}</span>`
}
