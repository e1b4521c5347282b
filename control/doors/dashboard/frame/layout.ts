/** The frame of every page of the dashboard: head, navigation, messages, footer, and the headers it is sent with. */
import { STRICT_TRANSPORT_SECURITY } from '../../../../shared/http/header-policy.ts'
import { randomBytes } from 'node:crypto'
import { brandLink } from '../../../../shared/pages/brand.ts'
import { html, type Content, type Html } from '../../../../shared/pages/html.ts'
import { HOUSE_LOOK, type FooterLink, type Look } from '../../../../shared/pages/look.ts'
import { showsSignUp, type SignUpPolicy } from '../../../ground/terms/sign-up.ts'
import { sellsPlans, type PlanName } from '../../../ground/terms/plans.ts'
import { html as htmlReply } from '../../../ground/http/reply.ts'
import type { Reply } from '../../../ground/http/route.ts'
import type { Assets } from './assets.ts'
import { compressedWhereSafe, type PageEncoding } from './compressed.ts'
import { ACTING_FOR_FIELD, type Draft } from './draft.ts'

/** An organisation of the menu. */
interface Choice {
  readonly id: string
  readonly name: string
}

/** Who looks at the page, as far as the frame cares. */
export interface Viewer {
  readonly signedIn:
    | {
        readonly email: string
        /** The organisation that the page is about. */
        readonly orgId: string
        readonly emailVerified: boolean
        readonly isStaff: boolean
        /** All that this person belongs to, the personal one first. Asked for when a page is drawn. */
        organisations(): Promise<readonly Choice[]>
        readonly plan: PlanName
      }
    | undefined
  /** Value of the hidden `csrf` field of every form on the page. */
  readonly csrf: string
  /** Cookies to send with the page (a fresh CSRF cookie, for instance). */
  readonly cookies: readonly string[]
  /** How the page may be compressed. */
  readonly encoding?: PageEncoding | undefined
  /** A form of the page that was not accepted. */
  readonly draft?: Draft | undefined
}

/** Who looks when no session can be read. */
export const SIGNED_OUT: Viewer = { signedIn: undefined, csrf: '', cookies: [] }

export type AccountViewer = Viewer & { readonly signedIn: NonNullable<Viewer['signedIn']> }

export interface Page {
  readonly title: string
  readonly description?: string
  /** Path that search engines and messengers know the page by; pages for one person have none. */
  readonly canonical?: string
  readonly body: Content
  /** Names of scripts in browser/. */
  readonly scripts?: readonly string[]
  /** Which entry of the navigation this page belongs to. */
  readonly section?: 'sites' | 'templates' | 'gallery' | 'docs' | 'account' | 'staff'
  readonly status?: number
  /** Said above the content, e.g. after a form. */
  readonly flash?: Flash | undefined
  /** Origins that a form of this page may lead to, besides our own (an OAuth client's redirect). */
  readonly formTargets?: readonly string[]
  /** Origins that a frame of this page shows, besides our own. */
  readonly frames?: readonly string[]
  /** Where its pictures come from, besides the service. */
  readonly pictures?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  /** Where signing in or up from the navigation leads back to: a path of ours. */
  readonly next?: string | undefined
}

export interface Flash {
  readonly tone: 'good' | 'warn' | 'bad'
  readonly text: Content
  /** It stands in the place of the notice that asks for it on every page. */
  readonly asksToVerify?: boolean
}

export type RenderPage = (viewer: Viewer, page: Page) => Promise<Reply>

type FrameAssets = Pick<Assets, 'style' | 'icon' | 'logo' | 'script' | 'imports' | 'socialImage'>

/** What the frame is the same in for everyone. */
interface House {
  readonly assets: FrameAssets
  readonly baseUrl: string
  readonly look: Look
  readonly signUp: SignUpPolicy
}

export function createLayout(house: House): RenderPage {
  return async (viewer, page) => {
    const nonce = randomBytes(16).toString('base64url')
    const top = header(house, viewer, page, (await viewer.signedIn?.organisations()) ?? [])
    const reply = htmlReply(page.status ?? 200, renderDocument(house, viewer, page, { nonce, top }).text, {
      ...securityHeaders(nonce, page),
      ...page.headers,
      ...(viewer.cookies.length > 0 ? { 'set-cookie': viewer.cookies } : {}),
    })
    return compressedWhereSafe(reply, viewer)
  }
}

function securityHeaders(
  nonce: string,
  { formTargets = [], frames = [], pictures = [] }: Pick<Page, 'formTargets' | 'frames' | 'pictures'>,
): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `img-src ${["'self' data: blob:", ...pictures].join(' ')}`,
    "connect-src 'self'",
    `frame-src ${["'self'", ...frames].join(' ')}`,
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
    'strict-transport-security': STRICT_TRANSPORT_SECURITY,
  }
}

function renderDocument(house: House, viewer: Viewer, page: Page, { nonce, top }: { nonce: string; top: Html }): Html {
  const { assets, look } = house
  const description = page.description ?? 'Publish a page, a folder or a whole site in ten seconds.'
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${page.title} · ${look.name}</title>
<meta name="description" content="${description}">
${page.canonical !== undefined && sharedAs(house, { title: page.title, description, path: page.canonical })}
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${assets.icon}" type="${look.logo?.type ?? 'image/svg+xml'}">
<link rel="stylesheet" href="${assets.style}" nonce="${nonce}">
${scriptTags(assets, [...(page.scripts ?? []), ...(viewer.signedIn ? ['times'] : [])], nonce)}
</head>
<body>
${top}
<main id="content" class="page" tabindex="-1">
${notices(viewer, page.flash)}
${page.body}
</main>
${footer(look)}
</body>
</html>
`
}

/** Modules that scripts import are named beside them: a browser asks for all at once, not level by level. */
function scriptTags(assets: Pick<Assets, 'script' | 'imports'>, names: readonly string[], nonce: string): Content {
  const preloaded = new Set(names.flatMap((name) => assets.imports(name)))
  return [
    ...[...preloaded].map((address) => html`<link rel="modulepreload" href="${address}" nonce="${nonce}">\n`),
    ...names.map((name) => html`<script type="module" src="${assets.script(name)}" nonce="${nonce}"></script>\n`),
  ]
}

/** What search engines and messengers show of a page. */
function sharedAs(
  { assets, baseUrl, look }: House,
  { title, description, path }: Readonly<Record<'title' | 'description' | 'path', string>>,
): Html {
  const url = baseUrl + path
  return html`<link rel="canonical" href="${url}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="${look.name}">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta property="og:url" content="${url}">
${look.name === HOUSE_LOOK.name && socialImage(baseUrl + assets.socialImage, look)}`
}

/** The picture shows our own name: a service with another one is shared without it. */
function socialImage(address: string, { name }: Look): Html {
  return html`<meta property="og:image" content="${address}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="${name}: drop a file, get an address">
<meta name="twitter:card" content="summary_large_image">`
}

function header(
  { assets, look, signUp }: House,
  viewer: Viewer,
  { section, next }: Page,
  organisations: readonly Choice[],
): Html {
  return html`
    <header class="top">
      <a class="skip" href="#content">Skip to the content</a>
      <div class="top-inner">
        ${brandLink('/', look, assets.logo)}
        <nav aria-label="Main">
          <ul class="nav">
            ${viewer.signedIn ? signedInLinks(viewer.signedIn, section) : signedOutLinks(section, next, showsSignUp(signUp))}
          </ul>
        </nav>
        ${viewer.signedIn && ownMenu(viewer, viewer.signedIn, organisations, section)}
      </div>
    </header>
  `
}

function signedInLinks(user: NonNullable<Viewer['signedIn']>, section: Page['section']): Content {
  return [
    navLink('/sites', 'Drops', section === 'sites'),
    navLink('/templates', 'Templates', section === 'templates'),
    navLink('/docs', 'Docs', section === 'docs'),
    user.isStaff && navLink('/staff', 'Staff', section === 'staff'),
  ]
}

/** Who I am, for which organisation I act, and the way out. The browser opens and closes it without a script. */
function ownMenu(
  viewer: Viewer,
  user: NonNullable<Viewer['signedIn']>,
  organisations: readonly Choice[],
  section: Page['section'],
): Html {
  const current = organisations.find(({ id }) => id === user.orgId)
  const next = section === 'account' ? '/account/organisation' : '/sites'
  const choice = ({ id, name }: Choice): Html =>
    id === user.orgId
      ? html`<li><span class="menu-item clip" aria-current="true">${name}</span></li>`
      : html`
        <li>
          <form method="post" action="/account/organisation/switch">
            ${csrfField(viewer)}
            <input type="hidden" name="org" value="${id}">
            <input type="hidden" name="next" value="${next}">
            <button class="menu-item clip"><span class="visually-hidden">Switch to </span>${name}</button>
          </form>
        </li>
      `
  return html`
    <div class="own">
      <button class="button small own-button" type="button" popovertarget="own-menu"><span class="visually-hidden">You
        act for </span><span class="clip">${current?.name ?? user.email}</span></button>
      <div class="menu" id="own-menu" popover role="group" aria-label="Your account">
        <p class="small soft menu-note">Signed in as<br><strong class="clip">${user.email}</strong></p>
        <p class="small soft menu-note" id="own-organisations">Acting for</p>
        <ul class="plain" aria-labelledby="own-organisations">${organisations.map(choice)}</ul>
        <ul class="plain menu-rest">
          <li>
            <a class="menu-item" href="/shared">Shared with me</a>
            <a class="menu-item" href="/account"${section === 'account' ? html` aria-current="true"` : ''}>Account</a>
          </li>
          <li><a class="menu-item" href="/account/organisation">Organisation and members</a></li>
          <li>
            <form method="post" action="/signout">${csrfField(viewer)}<button class="menu-item">Sign out</button></form>
          </li>
        </ul>
      </div>
    </div>
  `
}

function signedOutLinks(section: Page['section'], next: string | undefined, hasSignUp: boolean): Content {
  return [
    navLink('/templates', 'Templates', section === 'templates'),
    html`
      <li class="optional">
        <a href="/gallery"${section === 'gallery' ? html` aria-current="true"` : ''}>Gallery</a>
      </li>
    `,
    navLink('/docs', 'Docs', section === 'docs'),
    navLink(`/signin${nextQuery(next)}`, 'Sign in', false),
    hasSignUp && html`<li><a class="button primary small" href="/signup${nextQuery(next)}">Sign up</a></li>`,
  ]
}

export function nextQuery(next: string | undefined): string {
  return next === undefined ? '' : `?next=${encodeURIComponent(next)}`
}

function navLink(href: string, label: string, current: boolean): Html {
  return html`<li><a href="${href}"${current ? html` aria-current="true"` : ''}>${label}</a></li>`
}

/** What is said above the content: that the address is to be verified, and what a form has done; never both of one thing. */
function notices(viewer: Viewer, flash: Flash | undefined): Content {
  const unverified = viewer.signedIn?.emailVerified === false ? viewer.signedIn.email : undefined
  const isJoined = flash?.asksToVerify === true && unverified !== undefined
  return [
    unverified !== undefined && verifyNotice(viewer, unverified, isJoined ? flash : undefined),
    flash &&
      !isJoined &&
      html`
        <div class="notice ${flash.tone}" role="${flash.tone === 'bad' ? 'alert' : 'status'}">
          ${flash.text}
        </div>
      `,
  ]
}

function verifyNotice(viewer: Viewer, email: string, flash: Flash | undefined): Html {
  return html`
    <form class="notice warn cluster spread" method="post" action="/verify/send">
      ${csrfField(viewer)}
      <p${flash && html` role="status"`}>
        ${
          flash
            ? html`${flash.text} It went to <strong class="whole">${email}</strong>.`
            : html`Your drops stay hidden until you open the link we mailed to
              <strong class="whole">${email}</strong>.`
        }
      </p>
      <button class="button small">Send it again</button>
    </form>
  `
}

const FOOTER_LINKS: readonly FooterLink[] = [
  { label: 'Gallery', url: '/gallery' },
  { label: 'Docs', url: '/docs' },
  { label: 'Help', url: '/help' },
  { label: 'Status', url: '/status' },
  { label: 'Terms', url: '/terms' },
  { label: 'Privacy', url: '/privacy' },
  { label: 'Imprint', url: '/imprint' },
  { label: 'Report abuse', url: '/report' },
]

/** Ours, then the operator's; one of theirs with a name of ours stands in its place. */
export function footerLinks(links: readonly FooterLink[]): FooterLink[] {
  const own = sellsPlans() ? [{ label: 'Plans', url: '/#plans' }, ...FOOTER_LINKS] : FOOTER_LINKS
  const isSame = (one: FooterLink) => (other: FooterLink) => one.label.toLowerCase() === other.label.toLowerCase()
  return [...own.map((link) => links.find(isSame(link)) ?? link), ...links.filter((link) => !own.some(isSame(link)))]
}

function footer({ name, links }: Look): Html {
  return html`
    <footer class="bottom">
      <div class="bottom-inner">
        <p>${name} publishes static pages at HTTPS addresses and keeps every version.</p>
        <ul class="nav">
          ${footerLinks(links).map(({ label, url }) => html`<li><a href="${url}">${label}</a></li>\n`)}
        </ul>
      </div>
    </footer>
  `
}

/** Where a form with files goes: its address says before its body for which organisation its page was made. */
export function uploadAddress({ signedIn }: Pick<Viewer, 'signedIn'>, action: string): string {
  return signedIn ? `${action}?${ACTING_FOR_FIELD}=${encodeURIComponent(signedIn.orgId)}` : action
}

/** What every form carries: the token, and the organisation that its page shows. */
export function csrfField({ csrf, signedIn }: Pick<Viewer, 'csrf' | 'signedIn'>): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">${
    signedIn && html`<input type="hidden" name="${ACTING_FOR_FIELD}" value="${signedIn.orgId}">`
  }`
}
