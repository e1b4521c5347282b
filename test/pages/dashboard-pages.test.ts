/** What every page promises: readable for everyone, light, still, and closed to strangers. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { nextAddress } from '../support/addresses.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { byTurns, sampled } from '../support/depth.ts'
import { FormBrowser } from '../support/form-browser.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

const MAX_PAGE_BYTES = 100_000
/** Of the layout, as browsers count it: a tenth is called good. */
const MAX_SHIFTS = 0.02
/** How often a page is opened that moved: what it does by itself it does each time. */
const MAX_OPENED = 3

let stack: Stack
let browser: Browser
let email: string
let sitePages: string[]

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  const account = await stack.createAccount('plus', { password: PASSWORD, staff: true })
  email = account.email
  const site = await stack.publish(account, '<title>Pages</title><a href="gone.html">x</a>')
  await stack.publish(account, '<title>Pages</title>second', site)
  // People write words that are wider than a telephone.
  const json = { name: 'W'.repeat(110) }
  await stack.fetch(`/api/v1/sites/${site.id}`, { method: 'PATCH', token: account.token, json })
  await stack.fetch(`/api/v1/sites/${site.id}/domains`, { token: account.token, json: { domain: 'pages.example.com' } })
  const versions = (await stack.fetch(`/api/v1/sites/${site.id}/versions`, { token: account.token })).json<
    { version_id: string }[]
  >()
  sitePages = [
    '',
    '/versions',
    `/versions/${versions[1]!.version_id}`,
    '/views',
    '/settings',
    '/domains',
    '/domains/remove?domain=pages.example.com',
  ].map((page) => `/sites/${site.id}${page}`)
})
afterAll(() => browser.close())

const PUBLIC_PAGES = [
  '/',
  '/docs',
  '/docs/quick-start',
  '/docs/assistants',
  '/docs/custom-domains',
  '/docs/api',
  '/docs/api/versions',
  '/terms',
  '/privacy',
  '/help',
  '/status',
  '/gallery',
  '/report',
  '/templates',
  '/templates/cv',
  '/signup',
  '/signin',
  '/reset',
  '/no-such-page',
  '/claim?token=unknown',
  '/verify?token=unknown',
]
const ACCOUNT_PAGES = [
  '/sites',
  '/sites/new',
  '/account',
  '/account/ways-in',
  '/account/totp',
  '/account/prove',
  '/account/sessions',
  '/account/tokens',
  '/account/apps',
  '/account/webhooks',
  '/account/organisation',
  '/account/plan',
  '/account/log',
  '/account/data',
  '/staff',
  '/signout',
]

/**
 * Everything is checked in one scheme, and what the other one changes in the other. Each page is looked at in one of the
 * views; by `npm run test:deep` in both.
 */
const VIEWS = [
  { width: 360, scheme: 'dark', other: 'light' },
  { width: 1280, scheme: 'light', other: 'dark' },
] as const

/** The narrowest screen for which pages are made. */
const NARROWEST = 320

interface Shifts {
  readonly moved: number
  /** What moved, when, from where to where. */
  readonly parts: readonly string[]
}

/** How much of the page has moved; what happened so far is told within two frames. */
const SHIFTS = `new Promise((done) => {
  let moved = 0
  const parts = []
  const box = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ')
  const observer = new PerformanceObserver((list) => {
    for (const { value, startTime, sources } of list.getEntries()) {
      moved += value
      for (const { node, previousRect, currentRect } of sources)
        parts.push(Math.round(startTime) + ' ms ' + (node?.nodeName ?? 'gone') + '.' + (node?.className ?? '') + ': ' + box(previousRect) + ' to ' + box(currentRect))
    }
  })
  observer.observe({ type: 'layout-shift', buffered: true })
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done({ moved, parts }))))
})`

/**
 * Takes the page back block by block, from its end, as if the rest had not come yet, and says what stands elsewhere then:
 * on a slow line a reader would see it jump. By less than a line a word makes room for a button that comes beside it.
 */
const MOVED_BY_THE_REST = `(() => {
  const blocks = [...document.querySelectorAll(':is(main, section, form, .card, .stack, .aside) > *')]
  const top = (block) => block.getBoundingClientRect().top
  const whole = new Map(blocks.map((block) => [block, top(block)]))
  const called = (block) => block.nodeName + (block.className && '.' + block.className)
  for (const last of blocks.toReversed()) {
    const rest = document.createRange()
    rest.setStartAfter(last)
    rest.setEndAfter(document.body.lastChild)
    rest.deleteContents()
    const moved = blocks.slice(0, blocks.indexOf(last) + 1).find((block) => Math.abs(top(block) - whole.get(block)) > 16)
    if (moved)
      return [called(moved) + ' stands at ' + top(moved) + ' until what follows ' + called(last) + ' has come, then at ' + whole.get(moved)]
  }
  return []
})()`

const TWO_FRAMES = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))'

const IS_WIDE = `document.documentElement.scrollWidth > innerWidth ||
  [...document.querySelectorAll('.tabs')].some((tabs) => tabs.scrollWidth > tabs.clientWidth)`

/** Counts what a page takes from the network; nothing comes from the browser's cache. */
async function weigh(visitor: Visitor): Promise<(path: string) => Promise<number>> {
  const session = await visitor.context.newCDPSession(visitor.page)
  await session.send('Network.enable')
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  let bytes = 0
  session.on('Network.loadingFinished', (event) => (bytes += event.encodedDataLength))
  return async (path) => {
    bytes = 0
    await visitor.page.goto(path, { waitUntil: 'load' })
    return bytes
  }
}

/** The service itself, and the pictures of drops in its gallery, which other files of the run put there. */
function isOwn(url: string): boolean {
  if (url.startsWith(stack.baseUrl) || url.startsWith('data:')) return true
  const { hostname, port, pathname } = new URL(url)
  const isOfDrop = hostname.endsWith('.localhost') && port === new URL(stack.baseUrl).port
  return isOfDrop && pathname === '/.dropway/card.png'
}

describe.each(VIEWS)('at $width px, first $scheme, then $other', ({ width, scheme, other }) => {
  test.each(['strangers', 'account holders'])(
    'every page for %s is accessible, light and still, fits, and loads nothing from elsewhere',
    async (who) => {
      const visitor = await openVisitor(browser, stack, { width, scheme })
      const { page } = visitor
      if (who === 'account holders') await beSignedIn(visitor, stack, email)
      const foreign: string[] = []
      page.on('request', (request) => {
        if (!isOwn(request.url())) foreign.push(request.url())
      })
      const open = await weigh(visitor)
      const found: string[] = []
      const pages = who === 'strangers' ? PUBLIC_PAGES : [...ACCOUNT_PAGES, ...sitePages]
      for (const path of sampled(pages, width === VIEWS[0].width)) {
        let bytes = await open(path)
        let { moved, parts } = (await page.evaluate(SHIFTS)) as Shifts
        // A busy Chromium paints half a page, or gives it its size late: that moves once, and is judged below without clocks.
        for (let opened = 1; !(moved < MAX_SHIFTS) && opened < MAX_OPENED; opened++) {
          bytes = await open(path)
          ;({ moved, parts } = (await page.evaluate(SHIFTS)) as Shifts)
        }
        if (bytes === 0 || bytes > MAX_PAGE_BYTES) found.push(`${path}: weighs ${bytes} bytes`)
        if (!(moved < MAX_SHIFTS)) found.push(`${path}: moves by ${moved} while it loads (${parts.join(', ')})`)
        for (const violation of await seriousViolations(page)) found.push(`${path}: ${violation}`)
        if (await page.evaluate(IS_WIDE)) found.push(`${path}: scrolls sideways`)
        if ((await page.getByRole('heading', { level: 1 }).count()) !== 1) found.push(`${path}: not exactly one h1`)
        const name =
          path
            .replace(/st_\w+|v_\w+/g, 'x')
            .replace(/\?.*/, '')
            .replaceAll('/', '-')
            .slice(1) || 'landing'
        await keepScreenshot(page, `${name}-${width}-${scheme}`)
        await page.emulateMedia({ colorScheme: other })
        // Colours change over a moment.
        await page.evaluate(`(async () => {
          for (let moving; (moving = document.getAnimations()).length > 0;)
            await Promise.allSettled(moving.map((animation) => animation.finished))
        })()`)
        for (const violation of await seriousViolations(page, 'contrast')) found.push(`${path}, ${other}: ${violation}`)
        await keepScreenshot(page, `${name}-${width}-${other}`)
        const { height } = page.viewportSize()!
        await page.setViewportSize({ width: NARROWEST, height })
        if (await page.evaluate(IS_WIDE)) found.push(`${path}: scrolls sideways at ${NARROWEST} px`)
        await page.setViewportSize({ width, height })
        await page.emulateMedia({ colorScheme: scheme })
        for (const moves of (await page.evaluate(MOVED_BY_THE_REST)) as string[]) found.push(`${path}: ${moves}`)
        // The window has its size again before the next page comes: what moves there is that page's doing.
        await page.waitForFunction(`innerWidth === ${width}`)
        await page.evaluate(TWO_FRAMES)
      }
      expect(found).toEqual([])
      expect(foreign).toEqual([])
      expect(visitor.problems).toEqual([])
      await visitor.close()
    },
  )
})

test('everything can be reached by keyboard from the top, with a visible focus', async () => {
  const visitor = await openVisitor(browser, stack)
  const { page } = visitor
  await visitor.goto('/')
  await page.keyboard.press('Tab')
  expect(await focusedText(page)).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(`document.activeElement.matches('input[type=file]')`)).toBe(true)
  expect(await page.evaluate(`getComputedStyle(document.querySelector('.drop')).outlineStyle`)).toBe('solid')
  await visitor.close()
})

async function focusedText(page: Page): Promise<unknown> {
  return page.evaluate('document.activeElement.textContent')
}

test('the check of what moves finds it', async () => {
  const visitor = await openVisitor(browser, stack)
  await visitor.page.setContent('<h1>x</h1><p>text</p>')
  await visitor.page.waitForFunction(`performance.getEntriesByName('first-contentful-paint').length > 0`)
  await visitor.page.evaluate(`document.querySelector('h1').style.marginTop = '400px'`)
  await expect.poll(async () => ((await visitor.page.evaluate(SHIFTS)) as Shifts).moved).toBeGreaterThan(MAX_SHIFTS)
  await visitor.close()
})

test('the accessibility check finds what is wrong', async () => {
  const visitor = await openVisitor(browser, stack)
  await visitor.page.setContent(
    '<main><h1>x</h1><img src="data:,"><p style="color:#ccc;background:#fff">faint</p></main>',
  )
  const found = await seriousViolations(visitor.page, 'all', 'both')
  const rules = ['image-alt', 'color-contrast', 'img_alt_valid', 'text_contrast_sufficient']
  for (const rule of rules) expect(found.join()).toContain(`${rule}: `)
  await visitor.close()
})

describe('security', () => {
  const PAGES = ['/', '/signin', '/docs', '/templates', '/no-such-page']

  test.each(PAGES)('%s carries a strict policy with a fresh nonce and cannot be framed', async (path) => {
    const [first, second] = await Promise.all([stack.fetch(path), stack.fetch(path)])
    const policy = first!.header('content-security-policy')!
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toMatch(/script-src 'nonce-[\w-]{20,}'/)
    expect(policy).not.toContain('unsafe')
    expect(policy).not.toBe(second!.header('content-security-policy'))
    expect(first!.header('x-content-type-options')).toBe('nosniff')
    expect(first!.header('cache-control')).toBe('no-store')
  })

  test('scripts and styles have hashed names and may be kept for ever', async () => {
    const page = (await stack.fetch('/')).text()
    const assets = [...page.matchAll(/\/assets\/[\w.-]+/g)].map(([asset]) => asset)
    expect(assets.length).toBeGreaterThanOrEqual(3)
    for (const asset of assets) {
      const answer = await stack.fetch(asset)
      expect(answer.status).toBe(200)
      expect(answer.header('cache-control')).toContain('immutable')
    }
    expect((await stack.fetch('/assets/landing.000000000000.js')).status).toBe(404)
  })

  test('a form without its token, with a stranger’s token, or from another origin is refused', async () => {
    const visitor = await openVisitor(browser, stack)
    await beSignedIn(visitor, stack, email)
    const cookies = (await visitor.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    await visitor.goto('/account/tokens')
    const csrf = await visitor.page.locator('input[name=csrf]').first().inputValue()
    const strangers = await stack.fetch('/signup')
    const foreign = /name="csrf" value="([^"]+)"/.exec(strangers.text())![1]!
    const post = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
      stack.fetch('/account/tokens', {
        method: 'POST',
        body: new URLSearchParams(fields).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', cookie: cookies, ...headers },
      })
    expect((await post({ name: 'x' })).status).toBe(403)
    expect((await post({ name: 'x', csrf: foreign })).status).toBe(403)
    expect((await post({ name: 'x', csrf }, { origin: `https://evil.${stack.sitesDomain}` })).status).toBe(403)
    expect((await post({ name: 'x', csrf }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await post({ name: 'kept', csrf }, { origin: stack.baseUrl })).status).toBe(201)
    await visitor.close()
  })

  test('every form on every page carries the token', async () => {
    const visitor = await openVisitor(browser, stack)
    await beSignedIn(visitor, stack, email)
    const cookie = (await visitor.context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    await visitor.close()
    const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0
    let forms = 0
    for (const path of [...PUBLIC_PAGES, ...ACCOUNT_PAGES, ...sitePages]) {
      for (const headers of [{ cookie: '' }, { cookie }]) {
        const text = (await stack.fetch(path, { headers })).text()
        forms += count(text, /<form[^>]*method="post"/g)
        expect(count(text, /<input type="hidden" name="csrf" value="[\w-]{20,}"/g), path).toBe(
          count(text, /<form[^>]*method="post"/g),
        )
      }
    }
    expect(forms).toBeGreaterThan(40)
  })

  test('what is previewed runs as a stranger: no cookie, no access to the dashboard', async () => {
    const visitor = await openVisitor(browser, stack)
    const { page } = visitor
    await beSignedIn(visitor, stack, email)
    await visitor.goto('/sites/new')
    await page
      .getByRole('textbox', { name: 'HTML or Markdown' })
      .fill(
        '<!doctype html><p id="out"></p><script>let text = "origin " + origin; try { parent.document.title = "taken" } catch { text += ", parent closed" } try { text += document.cookie } catch { text += ", no cookies" } document.querySelector("#out").textContent = text</script>',
      )
    const out = page.frameLocator('[data-preview] iframe').locator('#out')
    await out.getByText('parent closed').waitFor()
    expect(await out.innerText()).toBe('origin null, parent closed, no cookies')
    expect(await page.title()).not.toBe('taken')
    await visitor.close()
  })

  test('signing in leads only to pages of ours', async () => {
    for (const next of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)']) {
      const forms = new FormBrowser(stack, nextAddress())
      const page = `/signin?next=${encodeURIComponent(next)}`
      const answer = await forms.send(page, { email, password: PASSWORD }, '/signin')
      expect(answer.status, next).toBe(303)
      expect(new URL(answer.header('location')!, stack.baseUrl).origin, next).toBe(stack.baseUrl)
    }
  })
})

describe('pages at a drop’s address look and read alike', () => {
  test.each(byTurns(VIEWS)())('at $width px, $scheme', async ({ width, scheme }) => {
    const account = await stack.createAccount('plus')
    const locked = await stack.publish(account, '<title>Locked</title>x')
    await stack.fetch(`/api/v1/sites/${locked.id}`, {
      token: account.token,
      method: 'PATCH',
      json: { password: 'open sesame' },
    })
    const deleted = await stack.publish(account, '<title>Deleted</title>x')
    await stack.fetch(`/api/v1/sites/${deleted.id}`, { token: account.token, method: 'DELETE' })
    const removed = await stack.publish(account, '<title>Removed</title>x')
    await stack.operate('takedown', removed.slug, '--reason', 'a test')
    const pages = [
      { name: 'unlock', url: locked.url, status: 401 },
      { name: 'gone', url: deleted.url, status: 410 },
      { name: 'removed', url: removed.url, status: 410 },
      {
        name: 'missing',
        url: `https://nothing-here-${Date.now()}.${stack.sitesDomain}:${stack.httpsPort}/`,
        status: 404,
      },
    ]
    const visitor = await openVisitor(browser, stack, { width, scheme })
    for (const { name, url, status } of pages) {
      const response = await visitor.page.goto(url)
      expect(response!.status(), name).toBe(status)
      expect(await seriousViolations(visitor.page), name).toEqual([])
      expect(await visitor.page.getByRole('link', { name: 'Dropway' }).first().isVisible()).toBe(true)
      await keepScreenshot(visitor.page, `drop-${name}-${width}-${scheme}`)
    }
    await visitor.page.goto(locked.url)
    await visitor.page.getByLabel('Password').fill('open sesame')
    await visitor.page.getByRole('button').click()
    await visitor.page.waitForFunction(`document.title === 'Locked'`)
    await visitor.close()
  })
})
