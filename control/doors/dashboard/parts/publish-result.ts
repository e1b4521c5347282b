/** "It is live": the address, to open, copy or scan. Shown whole by the server, or put in place by a script. */
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { qrCode } from './qr.ts'
import { relativeTime, shortAddress } from './words.ts'

export interface AnonymousResult {
  readonly url: string
  readonly expiresAt: string
  readonly claimUrl: string
  readonly now: number
  readonly signedIn: boolean
}

export function anonymousResult(drop: AnonymousResult): Html {
  return html`
    <section class="card raised" aria-labelledby="live-heading">
      <div class="result">
        <div class="stack">
          <h2 id="live-heading" tabindex="-1">Your page is live</h2>
          <a class="live-link" href="${drop.url}">${shortAddress(drop.url)}</a>
          ${copyRow(drop.url, 'Address')}
          <p class="notice warn">
            It disappears ${relativeTime(Date.parse(drop.expiresAt), drop.now)}. ${
              drop.signedIn ? 'Add it to your account' : 'Sign up in this browser'
            } and it is yours to keep, at the same address.${
              !drop.signedIn &&
              ' From then on visitors see a notice instead, until you have opened the link in the mail that we send you.'
            }
          </p>
          <p class="cluster">
            ${
              drop.signedIn
                ? html`<a class="button primary" href="${drop.claimUrl}">Add to my drops</a>`
                : html`<a class="button primary" href="/signup">Keep it: sign up and verify</a>`
            }
            <a class="button" href="/">Publish another</a>
          </p>
        </div>
        ${qrCode(drop.url)}
      </div>
      <details>
        <summary>Claim it from another device</summary>
        <p class="hint">The first person to open this link, signed in, owns the drop. Keep it to yourself.</p>
        ${copyRow(drop.claimUrl, 'Claim link')}
      </details>
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
