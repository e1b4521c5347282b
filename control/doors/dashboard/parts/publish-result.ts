/** "It is live": the address, to open, copy or scan. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { qrCode } from './qr.ts'
import { relativeTime, shortAddress } from './words.ts'

export interface AnonymousResult {
  readonly url: string
  readonly expiresAt: string
  /** Known only right after it was published. */
  readonly claimUrl: string | undefined
  readonly now: number
  /** The form that deletes it. */
  readonly remove: Html
}

/** The result has an address of its own, so that Back and Forward find it. The claim's token is in its query, as in a link. */
export function resultAddress(drop: { readonly id: string; readonly claim_url: string }): string {
  const claim = new URL(drop.claim_url).searchParams.get('token') ?? ''
  return `/published?${new URLSearchParams({ drop: drop.id, claim }).toString()}`
}

export function anonymousResult(drop: AnonymousResult): Html {
  return html`
    <section class="card raised" aria-labelledby="live-heading">
      <div class="result">
        <div class="stack">
          <h1 id="live-heading">Your page is live</h1>
          <a class="live-link" href="${drop.url}" target="_blank" rel="noopener">${shortAddress(drop.url)}</a>
          ${copyRow(drop.url, 'Address')}
          <p class="notice warn">
            It disappears ${relativeTime(Date.parse(drop.expiresAt), drop.now)}. Sign up in this browser and it
            is yours to keep, at the same address. From then on visitors see a notice instead, until you have
            opened the link in the mail that we send you.
          </p>
          <p class="cluster">
            <a class="button primary" href="/signup">Keep it: sign up and verify</a>
            <a class="button" href="/">Publish another</a>
          </p>
        </div>
        ${qrCode(drop.url)}
      </div>
      ${
        drop.claimUrl !== undefined &&
        html`
          <details>
            <summary class="small">Claim it from another device</summary>
            <p class="hint">The first person to open this link, signed in, owns the drop. Keep it to yourself.</p>
            ${copyRow(drop.claimUrl, 'Claim link')}
          </details>
        `
      }
      ${drop.remove}
    </section>
  `
}

/** A value to take away; the button appears only when a script can copy. */
export function copyRow(value: string, label: Content): Html {
  return html`
    <div class="copy">
      <input class="input" readonly value="${value}" aria-label="${label}">
      <button class="button" type="button" data-copy="${value}">Copy</button>
    </div>
  `
}
