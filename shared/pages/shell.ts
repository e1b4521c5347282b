/**
 * Pages that stand alone: the edge's error, unlock and paused pages, and whatever must look right without
 * loading anything. The style sheet, and a script where there is one, are inline and allowed by their hash; nothing else
 * may run or load.
 */
import { createHash } from 'node:crypto'
import { brandLink } from './brand.ts'
import { baseCss, compact, controlsCss, standaloneCss, tokensCss } from './design.ts'
import { html, raw, type Content, type Html } from './html.ts'
import { HOUSE_LOOK, logoAsData, paletteCss, type Look } from './look.ts'

export interface StandalonePage {
  readonly title: string
  /** A small drawing at the top, for the eye only. */
  readonly art?: Html
  /** Small line above the heading, e.g. `410`. */
  readonly code?: string
  readonly heading: string
  readonly lead: Content
  /** Further content of the page: a form, links. Forms post to the page's own origin. */
  readonly body?: Content
  readonly footer?: Content
  /** A module of our own that runs in the page. */
  readonly script?: string | undefined
  /** Where the brand links to. */
  readonly home: string
  readonly lang?: string
}

export interface RenderedPage {
  readonly body: string
  /** Everything that such a page must be sent with, except status and retry-after. */
  readonly headers: Readonly<Record<string, string>>
}

/** The style sheet is the same for all of them: make the renderer once and keep it. */
export function createStandalonePages(look: Look = HOUSE_LOOK): (page: StandalonePage) => RenderedPage {
  const css = compact(tokensCss + baseCss + controlsCss + standaloneCss) + paletteCss(look)
  const logo = look.logo && logoAsData(look.logo)
  const policy = (script: string | undefined): string =>
    [
      "default-src 'none'",
      `style-src 'sha256-${sha256(css)}'`,
      ...(script === undefined ? [] : [`script-src 'sha256-${sha256(script)}'`]),
      // The icon of the host, which browsers ask for by themselves.
      logo === undefined ? "img-src 'self'" : "img-src 'self' data:",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; ')
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex',
    'referrer-policy': 'no-referrer',
    'content-security-policy': policy(undefined),
  }
  return (page) => ({
    body: renderStandalone(page, { css, look, logo }),
    headers: page.script === undefined ? headers : { ...headers, 'content-security-policy': policy(page.script) },
  })
}

function renderStandalone(
  page: StandalonePage,
  { css, look, logo }: { css: string; look: Look; logo: string | undefined },
): string {
  return html`<!doctype html>
<html lang="${page.lang ?? 'en'}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${page.title}</title>
<style>${raw(css)}</style>
</head>
<body class="standalone">
<header>${brandLink(page.home, look, logo)}</header>
<main>
${page.art && html`<div class="art" aria-hidden="true">${page.art}</div>`}
${page.code !== undefined && html`<p class="code">${page.code}</p>`}
<h1>${page.heading}</h1>
<p class="lead">${page.lead}</p>
${page.body}
</main>
<footer>${page.footer ?? html`Published with <a href="${page.home}">${look.name}</a>.`}</footer>
${page.script !== undefined && html`<script type="module">${raw(page.script)}</script>`}
</body>
</html>
`.text
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
