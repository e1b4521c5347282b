/** The pages by which viewers come in. They work without scripts, and say the same to everyone. */
import {
  ENTER_PATH,
  GUEST_PATH,
  PROVIDER_VISIT_PATH,
  VISIT_PATH,
  type VisitAnswer,
} from '../../shared/contracts/visit-desk.ts'
import { html, type Content } from '../../shared/pages/html.ts'
import { preparePage, reportLine, type PageOptions, type PreparedPage } from './pages.ts'

export interface ViewerPageOptions extends PageOptions {
  /** Path and query to return to. */
  readonly next: string
  /** The owner may be asked. */
  readonly asks: boolean
  /** The operator's sign-in provider, which can say whose address it is. */
  readonly provider?: { readonly name: string; readonly siteId: string } | undefined
}

type Refusal = Extract<VisitAnswer, { kind: 'refused' }>

const PRIVATE = 'private, no-store'

/** Asks for an address; with a refusal: again, and why. */
export function lockedPage(options: ViewerPageOptions, refusal?: Refusal): PreparedPage {
  const isLimited = refusal?.reason === 'limited'
  return privatePage(isLimited ? 429 : 401, options, {
    title: 'Only for those who were invited',
    lead: 'The owner of this drop has named who may see it. Enter your e-mail address: if it is on the list, we send you a code. You need no account.',
    body: html`${providerLink(options)}<form class="stack" method="post" action="${VISIT_PATH}">
<input type="hidden" name="do" value="code">
<input type="hidden" name="next" value="${options.next}">
${refusal && html`<p class="notice bad" role="alert" id="problem">${PROBLEMS[refusal.reason]}</p>`}
<div class="field"><label for="email">Your e-mail address</label>
<input class="input" id="email" name="email" type="email" maxlength="254" autocomplete="email" required autofocus${refusal && html` aria-describedby="problem"`}></div>
<button class="button primary" type="submit">Send me a code</button>
</form>`,
    retryAfterSeconds: isLimited ? (refusal.retry_after ?? 60) : undefined,
  })
}

function providerLink({ provider, baseUrl, host, next }: ViewerPageOptions): Content {
  if (!provider) return undefined
  const query = new URLSearchParams({ site: provider.siteId, host, next })
  return html`<p><a class="button primary" href="${baseUrl}${PROVIDER_VISIT_PATH}?${query.toString()}">Continue with ${provider.name}</a></p>
<p class="soft">Or by e-mail:</p>`
}

const PROBLEMS: Readonly<Record<Refusal['reason'], string>> = {
  email: 'That is not an e-mail address. Check it and try again.',
  code: 'That code does not work. It may be mistyped, used, or too old. Ask for a new one.',
  link: 'This link was used already, or it is too old. Enter your address and we send you a new one.',
  guest: 'This guest link does not work any more. If you were invited by e-mail, enter your address.',
  machine: 'This token does not open the drop.',
  limited: 'Very many people asked just now. Wait a while, then try again.',
}

/** Whatever the address, and whether or not a mail was sent. */
export function codePage(options: ViewerPageOptions, email: string, refusal?: Refusal): PreparedPage {
  const isLimited = refusal?.reason === 'limited'
  const isWrong = refusal !== undefined && !isLimited
  return privatePage(isLimited ? 429 : isWrong ? 401 : 200, options, {
    title: 'Look into your mail box',
    lead: html`If <strong>${email}</strong> may see this drop, a mail with a code and a link is on its way. Enter the code, or press the button in the mail.`,
    body: html`<form class="stack" method="post" action="${VISIT_PATH}">
<input type="hidden" name="do" value="try">
<input type="hidden" name="next" value="${options.next}">
<input type="hidden" name="email" value="${email}">
${refusal && html`<p class="notice bad" role="alert" id="problem">${PROBLEMS[refusal.reason]}</p>`}
<div class="field"><label for="code">Code of six digits</label>
<input class="input" id="code" name="code" inputmode="numeric" maxlength="12" autocomplete="one-time-code" required autofocus${refusal && html` aria-describedby="problem"`}></div>
<button class="button primary" type="submit">Open</button>
</form>
<form class="stack" method="post" action="${VISIT_PATH}">
<input type="hidden" name="next" value="${options.next}">
<input type="hidden" name="email" value="${email}">
<p class="soft">No mail after a minute? Look into the spam folder. <button class="button quiet" name="do" value="code">Send another code</button></p>
${options.asks && html`<p class="soft">Not on the list? <button class="button quiet" name="do" value="ask">Ask the owner for access</button></p>`}
</form>`,
    retryAfterSeconds: isLimited ? (refusal.retry_after ?? 60) : undefined,
  })
}

export function askedPage(options: ViewerPageOptions, email: string): PreparedPage {
  return privatePage(200, options, {
    title: 'The owner was asked',
    lead: html`We told the owner of this drop that <strong>${email}</strong> would like to see it. If they agree, you get a mail.`,
    body: html`<a class="button" href="/">Back</a>`,
  })
}

/** One button: what only looks at a link uses nothing up. */
export function enterPage(
  options: ViewerPageOptions,
  { kind, token }: { kind: 'enter' | 'guest'; token: string },
): PreparedPage {
  return privatePage(200, options, {
    title: 'You are invited',
    lead: 'This link opens the drop in this browser.',
    body: html`<form class="stack" method="post" action="${kind === 'enter' ? ENTER_PATH : GUEST_PATH}/${token}">
<input type="hidden" name="next" value="${options.next}">
<button class="button primary" type="submit" autofocus>Open it</button>
</form>`,
  })
}

function privatePage(
  status: number,
  options: PageOptions,
  content: { title: string; lead: Content; body: Content; retryAfterSeconds?: number | undefined },
): PreparedPage {
  const page = preparePage(status, options, {
    ...content,
    art: status === 200 ? 'letter' : 'keyhole',
    host: options.host,
    footer: reportLine(options),
    cacheControl: PRIVATE,
  })
  page.headers.push(['vary', 'cookie, authorization, dropway-guest'])
  return page
}
