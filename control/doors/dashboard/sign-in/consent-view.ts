/** A program asks for access through the browser: who it is, and where the answer goes. */
import { html, type Content } from '../../../../shared/pages/html.ts'
import type { ConsentRequest } from '../../oauth/consent.ts'
import type { ReturnPlace } from '../../oauth/rules.ts'
import type { Page, Viewer } from '../frame/layout.ts'
import { messagePage } from '../parts/message-page.ts'
import { decisionPage } from './decision-view.ts'

function placeInWords(place: ReturnPlace): Content {
  switch (place.kind) {
    case 'site':
      return html`the site <strong>${place.host}</strong>`
    case 'own-machine':
      return 'a program on your own computer'
    case 'app':
      return html`the app on your device that answers to <strong>${place.scheme}</strong> (not a site)`
    default:
      return place satisfies never
  }
}

/** The button is the person's own word: without it nothing leads to an address that a stranger named. */
export function unknownProgramPage({ words, returnTo }: { words: string; returnTo: string }): Page {
  return messagePage({
    title: 'We do not know this program',
    lead: html`${words} If you have just started it yourself, tell it so, and it can begin again.`,
    actions: html`<a class="button primary" href="${returnTo}" rel="noreferrer">Tell the program on this computer</a>
      <a class="button" href="/account/apps">To my connected apps</a>`,
    status: 400,
  })
}

export function consentPage(viewer: Viewer, request: ConsentRequest): Page {
  const { verifiedHost } = request
  const page = decisionPage(viewer, {
    ...request,
    advice: [
      verifiedHost === undefined
        ? 'It named itself; we do not know who made it.'
        : html`It is described by <strong>${verifiedHost}</strong>, which we checked; the name is its own choice.`,
      ' Allow it only if you have just started it yourself.',
    ],
    facts: [
      ['Account', request.email],
      ['Organisation', request.organisation],
      ['Made by', verifiedHost === undefined ? 'unknown' : html`<strong>${verifiedHost}</strong> (verified)`],
      ['Returns to', html`${placeInWords(request.returnsTo)}<br><code class="whole">${request.redirectUri}</code>`],
    ],
  })
  return { ...page, formTargets: [request.redirectSource] }
}
