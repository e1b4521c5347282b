/** Every page that the edge itself writes, in the house's design. They load nothing; a proof of work is all that runs. */
import { STRICT_TRANSPORT_SECURITY } from '../../shared/http/header-policy.ts'
import { html } from '../../shared/pages/html.ts'
import type { Content } from '../../shared/pages/html.ts'
import { readInlineScripts, SHARED_SCRIPTS } from '../../shared/pages/inline-script.ts'
import { HOUSE_LOOK, type Look } from '../../shared/pages/look.ts'
import { createStandalonePages, type RenderedPage, type StandalonePage } from '../../shared/pages/shell.ts'
import type { Challenge } from '../../shared/secrets/proof-of-work.ts'
import { reportAddressOf } from '../../shared/http/report-address.ts'
import type { ClosedPage } from '../context.ts'
import { drawing } from './art.ts'
import type { Drawing } from './art.ts'
import { CLOSED_STATUS } from './state.ts'
import { UNLOCK_PATH } from './unlock.ts'

/** Ready to send; `content-length` is added by the sender. */
export interface PreparedPage {
  readonly status: number
  readonly headers: [string, string][]
  readonly body: Buffer
}

/** Whose pages they are. */
export interface PageHouse {
  /** Origin of the service. */
  readonly baseUrl: string
  /** Name and colours of the service; unset: the house's own. */
  readonly look?: Look
}

export interface PageOptions extends PageHouse {
  /** Host that the visitor asked for. */
  readonly host: string
}

/** The renderer only holds the style sheet and its hash: made once for a look, of which a process has one. */
const renderers = new WeakMap<Look, (page: StandalonePage) => RenderedPage>()

function rendererOf(look: Look): (page: StandalonePage) => RenderedPage {
  let render = renderers.get(look)
  if (render === undefined) renderers.set(look, (render = createStandalonePages(look)))
  return render
}

/** Solves the challenge of a page while the password is typed. */
const ANSWER_CHALLENGE = readInlineScripts(SHARED_SCRIPTS)('answer-challenge')

/** After opening the mail, the owner finds the page in the tab that waits for it. */
const LOOK_AGAIN_SECONDS = 2

interface ClosedText {
  readonly art: Drawing
  readonly title: string
  readonly lead: string
  readonly advice: (options: PageOptions) => Content
  readonly retryAfterSeconds?: number
  /** The browser looks again by itself, without a script. */
  readonly refreshSeconds?: number
  /** Whether there is, was or will be something behind this address that a visitor could complain about. */
  readonly mayBeReported?: true
}

const CLOSED: Readonly<Record<ClosedPage, ClosedText>> = {
  unknown: {
    art: 'outline',
    title: 'Nothing is published here',
    lead: 'There is no drop at this address. It may be mistyped, or the drop has moved.',
    advice: ({ baseUrl }) => html`<a class="button" href="${baseUrl}/">Publish something of your own</a>`,
  },
  reserved: {
    art: 'outline',
    title: 'Nothing here yet',
    lead: 'This address is reserved, but nothing has been published at it yet. Look in again later.',
    advice: () => html`<p class="soft">Is it yours? Upload a page and it appears here at once.</p>`,
  },
  gone: {
    art: 'ripples',
    title: 'This drop is gone',
    lead: 'It was deleted: by its owner, or long after it expired. There is no copy of it here that we could show you.',
    advice: ({ baseUrl }) => html`<a class="button" href="${baseUrl}/">Publish something of your own</a>`,
    mayBeReported: true,
  },
  expired: {
    art: 'clock',
    title: 'This drop has expired',
    lead: 'It was published for a limited time, and that time is over.',
    advice: ({ baseUrl }) =>
      html`<p class="soft">Is it yours, and published from an account? <a href="${baseUrl}/signin">Sign in</a> soon and it comes back.</p>`,
    mayBeReported: true,
  },
  removed: {
    art: 'ripples',
    title: 'This drop was removed',
    lead: 'Our trust and safety team removed it, because it broke the rules of the service.',
    advice: ({ baseUrl }) =>
      html`<p class="soft">Is it yours, and you think this is a mistake? <a href="${baseUrl}/signin">Sign in</a> to see why.</p>`,
    mayBeReported: true,
  },
  unverified: {
    art: 'letter',
    title: 'Not verified yet',
    lead: 'The publisher of this drop has not verified their e-mail address yet. It opens here by itself as soon as they do.',
    advice: ({ baseUrl }) =>
      html`<p class="soft">Are you the owner? Open the link in the mail that we sent you when you signed up, or have us <a href="${baseUrl}/verify/send">send it again</a>.</p>`,
    retryAfterSeconds: 120,
    refreshSeconds: LOOK_AGAIN_SECONDS,
    mayBeReported: true,
  },
  paused: {
    art: 'paused',
    title: 'This drop is paused',
    lead: 'Nothing is lost: it is only not shown at the moment, and can come back at this address.',
    advice: ({ baseUrl }) =>
      html`<p class="soft">Is it yours? <a href="${baseUrl}/signin">Sign in</a>, then choose it among those that stay live, renew your plan, or delete drops that you no longer need.</p>`,
    retryAfterSeconds: 3600,
    mayBeReported: true,
  },
}

export function closedPage(page: ClosedPage, options: PageOptions): PreparedPage {
  const text = CLOSED[page]
  const status = CLOSED_STATUS[page]
  return preparePage(status, options, {
    art: text.art,
    host: options.host,
    title: text.title,
    lead: text.lead,
    body: text.advice(options),
    footer: text.mayBeReported && reportLine(options),
    retryAfterSeconds: text.retryAfterSeconds,
    refreshSeconds: text.refreshSeconds,
  })
}

/** A path that a live drop does not have, when it brings no 404.html of its own. */
export function missingPage({ isProtected, ...options }: PageOptions & { isProtected: boolean }): PreparedPage {
  return preparePage(404, options, {
    cacheControl: isProtected ? 'private, no-store' : undefined,
    art: 'outline',
    host: options.host,
    title: 'Page not found',
    lead: 'This drop is here, but it has no page at the address that you asked for.',
    body: html`<a class="button" href="/">Go to its first page</a>`,
    footer: reportLine(options),
  })
}

export interface UnlockPageOptions extends PageOptions {
  /** Path and query to return to after unlocking. */
  readonly next: string
  /** `limited`: the password was not looked at. */
  readonly problem?: 'wrong' | 'limited'
  readonly retryAfterSeconds?: number
  /** What the browser has to solve before the form may be sent. */
  readonly work?: Challenge | undefined
}

/** Works without scripts, in any browser and password manager, as long as no one guesses. */
export function unlockPage({ next, problem, retryAfterSeconds, work, ...options }: UnlockPageOptions): PreparedPage {
  const page = preparePage(problem === 'limited' ? 429 : 401, options, {
    art: 'keyhole',
    host: options.host,
    title: 'This drop has a password',
    lead: 'The publisher chose who may see it. Enter the password that they gave you.',
    body: unlockForm(options.host, next, { problem, work }),
    footer: reportLine(options),
    script: work && ANSWER_CHALLENGE,
    retryAfterSeconds: problem === 'limited' ? (retryAfterSeconds ?? 60) : undefined,
    cacheControl: 'private, no-store',
  })
  page.headers.push(['vary', 'cookie'])
  return page
}

type UnlockTrouble = Pick<UnlockPageOptions, 'problem' | 'work'>

/** The user name is the drop: with it a password manager keeps one password for each. */
function unlockForm(host: string, next: string, { problem, work }: UnlockTrouble): Content {
  return html`<form class="stack" method="post" action="${UNLOCK_PATH}">
<input type="hidden" name="next" value="${next}">
<input type="text" name="username" value="${host}" autocomplete="username" hidden>
${problem && html`<p class="notice bad" role="alert" id="problem">${problemText({ problem, work })}</p>`}
<div class="field"><label for="password">Password</label>
<input class="input" id="password" name="password" type="password" autocomplete="current-password" required autofocus${problem && html` aria-describedby="problem"`}${problem === 'wrong' && html` aria-invalid="true"`}></div>
${work && workFields(work)}
<button class="button primary" type="submit">Open</button>
</form>`
}

function problemText({ problem, work }: UnlockTrouble): string {
  if (problem === 'wrong') return 'That is not the password. Check capital letters and try again.'
  if (work) return 'Many wrong passwords were tried here lately, perhaps by someone else. Enter yours once more.'
  return 'Very many passwords are being tried just now. Wait a moment, then try again.'
}

function workFields({ challenge, bits }: Challenge): Content {
  return html`<input type="hidden" name="proof" value="">
<p class="notice" data-challenge="${challenge}" data-bits="${bits}" role="status">Someone has been guessing this password, so your browser calculates for a moment. Type meanwhile.</p>
<noscript><p class="notice warn">The calculation needs JavaScript. Without it, try again ten minutes after the guessing has stopped.</p></noscript>`
}

type ErrorText = readonly [title: string, lead: string]

const WRONG_REQUEST: ErrorText = [
  'That request makes no sense',
  'The address or the request contains something that no browser sends. Check the link that brought you here.',
]

const OUR_FAILURE: ErrorText = [
  'Something failed on our side',
  'This page could not be shown. It is not your fault, and trying again often helps.',
]

const ERROR_TEXTS: ReadonlyMap<number, ErrorText> = new Map<number, ErrorText>([
  [404, ['Page not found', 'There is nothing at this address.']],
  [
    405,
    ['That cannot be done here', 'Drops can be read, not changed from outside: this address answers GET and HEAD.'],
  ],
  [408, ['That took too long', 'The request did not arrive in time. Check your connection and try again.']],
  [413, ['That is too much', 'The request is larger than this address accepts.']],
  [414, ['That address is too long', 'Shorten the link and try again.']],
  [415, ['That cannot be read', 'The request is compressed. Send it as it is.']],
  [421, ['Wrong address', 'This connection was opened for another address. Reload the page.']],
  [
    429,
    ['One moment, please', 'Very many requests came from your network just now. Wait a little, then reload the page.'],
  ],
  [
    431,
    [
      'That request is too large',
      'Your browser sent more cookies or headers than we accept. Clear the cookies of this site and try again.',
    ],
  ],
  [
    502,
    [
      'The service does not answer',
      'The part of the service that you asked for is not reachable just now. Drops stay online meanwhile.',
    ],
  ],
  [503, ['Back in a moment', 'This address cannot be answered just now. It is being worked on: try again shortly.']],
  [
    504,
    [
      'The service took too long',
      'The part of the service that you asked for did not answer in time. Try again shortly.',
    ],
  ],
])

/** What a client should wait by default. */
const RETRY_AFTER_SECONDS: ReadonlyMap<number, number> = new Map([
  [429, 5],
  [502, 5],
  [503, 5],
  [504, 5],
])

/** Anything that is not about one drop. `id`: what the log shows too. */
export function errorPage(
  status: number,
  { id, isProtected = false, ...house }: PageHouse & { id?: string | undefined; isProtected?: boolean },
): PreparedPage {
  const [title, lead] = ERROR_TEXTS.get(status) ?? (status >= 500 ? OUR_FAILURE : WRONG_REQUEST)
  return preparePage(status, house, {
    art: status >= 500 ? 'broken' : 'outline',
    title,
    lead,
    body: id !== undefined && html`<p class="soft">If it stays, quote this id to us: <code>${id}</code></p>`,
    retryAfterSeconds: RETRY_AFTER_SECONDS.get(status),
    cacheControl: isProtected ? 'private, no-store' : undefined,
  })
}

export interface PageContent extends Pick<StandalonePage, 'title' | 'lead' | 'body'> {
  readonly art: Drawing
  readonly host?: string
  readonly footer?: Content
  readonly retryAfterSeconds?: number | undefined
  readonly refreshSeconds?: number | undefined
  readonly cacheControl?: string | undefined
  readonly script?: string | undefined
}

export function preparePage(
  status: number,
  { baseUrl, look = HOUSE_LOOK }: PageHouse,
  content: PageContent,
): PreparedPage {
  const { art, host, title, lead, body, footer, retryAfterSeconds, refreshSeconds, cacheControl, script } = content
  const page = rendererOf(look)({
    title: `${title} · ${look.name}`,
    art: drawing(art),
    code: host === undefined ? String(status) : status === 200 ? host : `${status} · ${host}`,
    heading: title,
    lead,
    body,
    footer: footer || undefined,
    script,
    home: `${baseUrl}/`,
  })
  const headers: [string, string][] = Object.entries({ ...page.headers, 'cache-control': cacheControl ?? 'no-store' })
  headers.push(['strict-transport-security', STRICT_TRANSPORT_SECURITY])
  if (retryAfterSeconds !== undefined) headers.push(['retry-after', String(retryAfterSeconds)])
  if (refreshSeconds !== undefined) headers.push(['refresh', String(refreshSeconds)])
  return { status, headers, body: Buffer.from(page.body) }
}

export function reportLine({ baseUrl, look = HOUSE_LOOK, host }: PageOptions): Content {
  return html`Published with <a href="${baseUrl}/">${look.name}</a>. <a href="${reportAddressOf(baseUrl, host)}">Report abuse</a>`
}
