/**
 * Published pages as a real browser parses them, with our snippets inside: offsets by the publisher's scanner,
 * insertion by the edge. Nothing of the page may move, and the snippets must land in the head and the body.
 */
import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scanHtml } from '../../control/drops/publishing/html/scan.ts'
import { extendPolicies } from '../../edge/rewrite/csp.ts'
import { inject } from '../../edge/rewrite/inject.ts'
import { createSnippets } from '../../edge/rewrite/snippets.ts'
import type { Analytics } from '../../shared/contracts/analytics.ts'
import type { Snippets } from '../../edge/context.ts'
import { launchBrowser } from '../support/browser.ts'
import { routeOf } from '../support/manifests.ts'

interface Served {
  readonly body: Buffer
  readonly headers: Record<string, string>
}

const snippetSource = createSnippets({ baseUrl: 'https://dropway.test' })
const plausible: Analytics = { plausible: { domain: 'example.com' } }
const everything: Analytics = {
  ...plausible,
  google_analytics: { measurement_id: 'G-ABCD1234' },
  meta_pixel: { pixel_id: '1234567890' },
  posthog: { project_key: 'phc_abcdefghijklmnop', host: 'https://ph.example.com' },
}

let browser: Browser
let reader: Page
let server: Server
let origin: string
const served = new Map<string, Served>()
let nextPath = 0

beforeAll(async () => {
  browser = await launchBrowser()
  server = createServer((request, response) => {
    const page = served.get(request.url ?? '')
    response.writeHead(page ? 200 : 404, page?.headers)
    response.end(page?.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  reader = await (await newContext()).newPage()
})

afterAll(async () => {
  await browser?.close()
  server?.closeAllConnections()
  await new Promise((resolve) => server?.close(resolve))
})

/** No test reaches the network: the providers' scripts are answered here, and noted. */
async function newContext(options: Parameters<Browser['newContext']>[0] = {}): Promise<BrowserContext> {
  const fresh = await browser.newContext(options)
  await fresh.route(/^https:/, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: 'window.posthog = window.posthog || { init() {} }' }),
  )
  return fresh
}

function snippetsFor(analytics: Analytics | null, language?: string): Snippets {
  return snippetSource.for(routeOf({ badge: true, analytics }), 'html', language)!
}

function publish(html: string | Buffer, snippets: Snippets, headers: Record<string, string> = {}): string {
  const bytes = Buffer.from(html)
  const { head, body, csp } = scanHtml(bytes)
  const path = `/page-${nextPath++}`
  served.set(path, {
    body: inject(bytes, { head, body, csp: [...csp] }, snippets),
    headers: { 'content-type': 'text/html', ...headers },
  })
  return origin + path
}

function publishPlain(html: string | Buffer): string {
  const path = `/page-${nextPath++}`
  served.set(path, { body: Buffer.from(html), headers: { 'content-type': 'text/html' } })
  return origin + path
}

/** The parsed document without what we added, and where that was. */
const READ = `(() => {
  const isOurs = (node) => node.nodeType === 1 && (/dropway-badge|dw-consent/.test(node.outerHTML.slice(0, 60)) || (node.tagName === 'STYLE' && /#dropway-badge|#dw-consent/.test(node.textContent)) || (node.tagName === 'SCRIPT' && (node.textContent.includes('plausible.io') || node.src.includes('plausible.io'))))
  const places = []
  for (const node of [...document.querySelectorAll('style,script,dropway-badge')].filter(isOurs)) {
    places.push(node.tagName.toLowerCase() + ' in ' + (document.head.contains(node) ? 'head' : document.body.contains(node) ? 'body' : 'nowhere'))
    node.remove()
  }
  return { places: [...new Set(places)].sort(), head: document.head.innerHTML.trim(), body: document.body.outerHTML.replace(/\\s+/g, ' '), title: document.title, mode: document.compatMode, charset: document.characterSet }
})()`

interface Reading {
  readonly places: string[]
  readonly head: string
  readonly body: string
  readonly title: string
  readonly mode: string
  readonly charset: string
}

async function readPage(url: string): Promise<Reading> {
  await reader.goto(url)
  return (await reader.evaluate(READ)) as Reading
}

const WHERE = ['dropway-badge in body', 'script in head', 'style in body']

const PAGES: readonly (readonly [name: string, html: string | Buffer])[] = [
  [
    'an ordinary page',
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>T</title><meta property="og:title" content="O"></head><body class="b"><p>x</p></body></html>',
  ],
  ['a page without head', '<!doctype html><title>T</title><p>x</p>'],
  ['a page without any tag', 'just text'],
  ['an empty page', ''],
  ['a doctype only', '<!doctype html>'],
  [
    'a comment before the doctype',
    '<!-- </head> --><!doctype html><html><head><title>T</title></head><body>x</body></html>',
  ],
  ['</head> in a comment', '<!doctype html><head><!-- </head><body> --><title>T</title></head><body>x</body>'],
  [
    '</head> in a script',
    '<!doctype html><head><script>var a = "</head><body></body>"</script><title>T</title></head><body>x</body>',
  ],
  ['</body> in a script', '<!doctype html><body><p>x</p><script>var a = "</body></html>"</script><p>y</p></body>'],
  [
    'a script in a script comment',
    '<!doctype html><head><script><!-- <script> </head> </script> --></script><title>T</title></head><body>x</body>',
  ],
  [
    '</head> in a style',
    '<!doctype html><head><style>p::after { content: "</head>" }</style><title>T</title></head><body>x</body>',
  ],
  [
    '</head> in an attribute',
    '<!doctype html><head><meta name="d" content="</head><body>"><title>T</title></head><body data-x="</body>">x</body>',
  ],
  [
    '</head> in a single-quoted attribute',
    "<!doctype html><head><meta name='d' content='</head>\"'><title>T</title></head><body>x</body>",
  ],
  [
    '</head> in a template',
    '<!doctype html><head><template><p></head></body></p></template><title>T</title></head><body>x</body>',
  ],
  ['</head> in the title', '<!doctype html><head><title></head></title></head><body>x</body>'],
  [
    '</head> in a noscript',
    '<!doctype html><head><noscript></head><link rel="x"></noscript><title>T</title></head><body>x</body>',
  ],
  ['upper-case tags', '<!DOCTYPE HTML><HTML><HEAD><TITLE>T</TITLE></HEAD><BODY BGCOLOR="white"><P>x</P></BODY></HTML>'],
  [
    'a byte order mark',
    Buffer.concat([
      Buffer.from([0xef, 0xbb, 0xbf]),
      Buffer.from('<!doctype html><head><title>ü</title></head><body>ü</body>'),
    ]),
  ],
  ['no </head>', '<!doctype html><head><title>T</title><body>x</body>'],
  ['no </body>', '<!doctype html><head><title>T</title></head><body><p>x'],
  [
    'an element that ends the head',
    '<!doctype html><head><title>T</title><div>x</div><meta name="late"></head><body><p>y</p></body>',
  ],
  ['text after </body>', '<!doctype html><head><title>T</title></head><body><p>x</p></body> tail <p>y</p></html>'],
  [
    'a comment after </html>',
    '<!doctype html><head><title>T</title></head><body><p>x</p></body></html><!-- </body> -->',
  ],
  ['an open paragraph, list and table', '<!doctype html><body><p>a<ul><li>b<table><tr><td>c'],
  ['an unclosed textarea', '<!doctype html><head><title>T</title></head><body><p>x</p><textarea>y'],
  ['an unclosed comment', '<!doctype html><head><title>T</title></head><body><p>x</p><!-- y'],
  ['an unclosed script', '<!doctype html><head><title>T</title></head><body><p>x</p><script>var y'],
  ['an unclosed select', '<!doctype html><head><title>T</title></head><body><p>x</p><select><option>y'],
  ['an unclosed SVG', '<!doctype html><head><title>T</title></head><body><p>x</p><svg><text>y'],
  ['an unclosed template', '<!doctype html><head><title>T</title></head><body><p>x</p><template><b>y'],
  ['an unclosed tag', '<!doctype html><head><title>T</title></head><body><p>x</p><a href="y'],
  ['</body> inside an SVG title', '<!doctype html><body><svg><title>a</title><text>b</text></svg><p>x</p></body>'],
  ['quirks mode', '<html><head><title>T</title></head><body>x</body></html>'],
  ['a long line of entities', '<!doctype html><head><title>&lt;/head&gt;</title></head><body>&lt;/body&gt;</body>'],
  [
    'a windows-1252 page',
    Buffer.from(
      '<!doctype html><head><meta charset="windows-1252"><title>caf\xe9 \x80</title></head><body>\xe9</body>',
      'latin1',
    ),
  ],
  [
    'CDATA and a processing instruction',
    '<?xml version="1.0"?><!doctype html><head><title>T</title></head><body><![CDATA[ </body> ]]>x</body>',
  ],
]

describe('a published page is parsed as before, with the snippets in head and body', () => {
  test.each(PAGES)('%s', async (_, html) => {
    const before = await readPage(publishPlain(html))
    const after = await readPage(publish(html, snippetsFor(plausible)))
    expect(after.places).toEqual(WHERE)
    expect({ ...after, places: [] }).toEqual({ ...before, places: [] })
  })

  test('a page of frames gets what belongs into the head, keeps its frames, and has the badge as one more', async () => {
    const html =
      '<!doctype html><html><head><title>T</title></head><frameset cols="50%,50%"><frame src="about:blank"><frame src="about:blank"></frameset></html>'
    const before = await readPage(publishPlain(html))
    const after = await readPage(publish(html, snippetsFor(plausible)))
    expect(after.places).toEqual(['script in head'])
    expect(after.body).toContain(before.body)
    const badge = reader.frames().find((frame) => frame.url().startsWith('data:'))
    expect(await badge!.locator('a', { hasText: 'Report' }).isVisible()).toBe(true)
    const heights = (await reader.evaluate(
      `[...document.querySelectorAll('frame')].map((frame) => frame.clientHeight)`,
    )) as number[]
    expect(heights).toHaveLength(3)
    expect(Math.min(...heights)).toBeGreaterThan(40)
  })
})

/** Hosts that a page asks for scripts. What the page loads while it is parsed is asked for when this returns. */
async function requested(page: Page, act: () => Promise<unknown>): Promise<Set<string>> {
  const hosts = new Set<string>()
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (protocol === 'https:') hosts.add(host)
  })
  await act()
  return hosts
}

const HTML =
  '<!doctype html><html><head><title>T</title></head><body><h1>Page</h1><script>window.own = 1</script></body></html>'
const WAITING = ['connect.facebook.net', 'ph.example.com', 'www.googletagmanager.com']

describe('consent', () => {
  test('trackers that set cookies wait for it, the answer is kept, and it can be taken back', async () => {
    const fresh = await newContext({ locale: 'de-DE' })
    const url = publish(HTML, snippetsFor(everything, 'de-DE'))
    const page = await fresh.newPage()
    const hosts = await requested(page, () => page.goto(url))
    expect([...hosts]).toEqual(['plausible.io'])

    const banner = page.getByRole('dialog', { name: 'Darf diese Seite Cookies verwenden?' })
    expect(await banner.isVisible()).toBe(true)
    expect(await banner.getAttribute('lang')).toBe('de')
    const [reject, accept] = await Promise.all(
      ['Ablehnen', 'Zustimmen'].map((name) => banner.getByRole('button', { name }).boundingBox()),
    )
    expect([reject!.width, reject!.height]).toEqual([accept!.width, accept!.height])

    // By keyboard alone: the banner has the focus, the two buttons follow.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect.poll(() => [...hosts].sort()).toEqual([...WAITING, 'plausible.io'].sort())
    expect(await page.locator('#dw-consent').count()).toBe(0)

    await page.reload()
    expect(await page.locator('#dw-consent').count()).toBe(0)
    expect(await page.locator('script[src^="https:"]').count()).toBe(4)

    // A link to #cookie-settings asks again.
    await page.evaluate(() => (location.hash = '#cookie-settings'))
    await page.getByRole('button', { name: 'Ablehnen' }).click()
    await page.waitForFunction(() => document.querySelectorAll('script[src^="https:"]').length === 1)
    expect(await page.evaluate(() => localStorage.getItem('dw-consent'))).toBe('denied')
    await fresh.close()
  })

  test('rejected once, nothing loads and no one asks again', async () => {
    const fresh = await newContext()
    const url = publish(HTML, snippetsFor(everything))
    const page = await fresh.newPage()
    await page.goto(url)
    await page.getByRole('button', { name: 'Reject' }).click()
    const hosts = await requested(page, () => page.reload())
    expect([...hosts]).toEqual(['plausible.io'])
    expect(await page.locator('#dw-consent').count()).toBe(0)
    expect(await page.evaluate(() => document.cookie)).toBe('')
    await fresh.close()
  })

  test('with the banner off, trackers start at once', async () => {
    const fresh = await newContext()
    const page = await fresh.newPage()
    const hosts = await requested(page, () =>
      page.goto(publish(HTML, snippetsFor({ ...everything, consent_banner: 'off' }))),
    )
    expect([...hosts].sort()).toEqual([...WAITING, 'plausible.io'].sort())
    await fresh.close()
  })
})

describe("a page's own policy", () => {
  const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const OWN_HASH = hashOf('window.own = 1')
  const POLICIES = [
    `default-src 'self'; script-src 'self' ${OWN_HASH}`,
    "default-src 'none'",
    "script-src 'unsafe-inline'; style-src 'none'",
    "script-src 'nonce-abc' 'strict-dynamic'; default-src 'self'",
  ]
  const via = {
    meta: (policy: string, snippets: Snippets) =>
      publish(
        HTML.replace('<title>', `<meta http-equiv="Content-Security-Policy" content="${policy}"><title>`),
        snippets,
      ),
    // Both hold: the stricter of the two must let the snippets through as well.
    'two metas': (policy: string, snippets: Snippets) =>
      publish(
        HTML.replace(
          '<title>',
          `<meta http-equiv="Content-Security-Policy" content="${policy}">
          <meta http-equiv="Content-Security-Policy" content="${policy}; object-src 'none'"><title>`,
        ),
        snippets,
      ),
    header: (policy: string, snippets: Snippets) =>
      publish(HTML, snippets, { 'content-security-policy': extendPolicies(policy, snippets.csp) }),
  }
  test.each(Object.keys(via).flatMap((way) => POLICIES.map((policy) => [way as keyof typeof via, policy] as const)))(
    'as %s: %s lets our snippets work and loosens nothing for others',
    async (way, policy) => {
      const fresh = await newContext()
      const page = await fresh.newPage()
      const hosts = await requested(page, () =>
        page.goto(via[way](policy, snippetsFor({ ...plausible, consent_banner: 'on' }))),
      )
      expect([...hosts]).toEqual(['plausible.io'])
      expect(await page.locator('#dw-consent').evaluate((node) => getComputedStyle(node).position)).toBe('fixed')
      expect(await page.locator('#dropway-badge').evaluate((node) => getComputedStyle(node).position)).toBe('fixed')
      // The page's own inline script is as allowed or as blocked as it was.
      const own = await page.evaluate(() => (window as { own?: number }).own ?? 0)
      expect(own).toBe(policy.includes("'unsafe-inline'") || policy.includes(OWN_HASH) ? 1 : 0)
      await fresh.close()
    },
  )
})

describe('the badge', () => {
  const HOSTILE =
    'body * { display: none !important; color: red !important; transform: scale(9) !important } a { font-size: 90px !important }'

  test('survives the style sheet of the page, shifts nothing and is not printed', async () => {
    const fresh = await newContext({ viewport: { width: 360, height: 640 } })
    const page = await fresh.newPage()
    const html =
      '<!doctype html><head><title>T</title><style>html,head,body{display:block!important}</style></head><body><h1>Page</h1></body>'
    await page.goto(publishPlain(html))
    const height = await page.evaluate(() => document.documentElement.scrollHeight)
    await page.goto(publish(html, snippetsFor(null)))
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(height)
    const plain = await page.locator('#dropway-badge').boundingBox()
    await page.addStyleTag({ content: HOSTILE })
    expect(await page.locator('#dropway-badge').boundingBox()).toEqual(plain)
    expect(plain!.x + plain!.width).toBeLessThanOrEqual(360)
    expect(plain!.height).toBeLessThan(40)
    expect(await page.getByRole('link', { name: 'dropway' }).getAttribute('href')).toBe('https://dropway.test/')
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('#dropway-badge').isVisible()).toBe(false)
    await fresh.close()
  })
})
