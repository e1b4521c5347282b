/** Pages that a public service has: found from every page, readable for everyone, the operator's words before ours. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { launchBrowser } from '../support/browser.ts'
import { keepScreenshot, openVisitor } from '../support/dashboard-visitor.ts'
import { byTurns } from '../support/depth.ts'
import { freeze } from '../support/processes.ts'
import { startStack, type OwnStack } from '../support/stack.ts'

const PAGES = ['/terms', '/privacy', '/imprint', '/help', '/status']

let stack: OwnStack
let browser: Browser
beforeAll(async () => {
  // Its data folder, Postgres and Redis are disturbed here.
  stack = await startStack({ env: { ANONYMOUS_LIFETIME: '5d', CONTACT_EMAIL: 'hello@example.org' } })
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stack?.stop()
})

const inOneView = byTurns([
  { width: 390, scheme: 'light' as const, javaScript: true },
  { width: 390, scheme: 'dark' as const, javaScript: false },
  { width: 1280, scheme: 'dark' as const, javaScript: true },
])

test.each(inOneView())(
  'every page leads to them, and all can read them: $width px, $scheme, scripts $javaScript',
  async (view) => {
    const visitor = await openVisitor(browser, stack, view)
    const { page } = visitor
    for (const address of PAGES) {
      await visitor.goto('/gallery')
      await page.locator(`footer a[href="${address}"]`).click()
      expect(new URL(page.url()).pathname).toBe(address)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), address).toBe(true)
      expect(await page.content(), address).not.toMatch(/\{\{[a-z_]+\}\}/)
      // axe itself is a script.
      if (view.javaScript) expect(await seriousViolations(page), address).toEqual([])
      await keepScreenshot(page, `service${address.replace('/', '-')}-${view.width}-${view.scheme}`)
    }
    expect(visitor.problems).toEqual([])
    await visitor.close()
  },
)

test('what is said about times and contact is what is set', async () => {
  expect((await stack.fetch('/privacy')).text()).toContain('5 days')
  expect((await stack.fetch('/imprint')).text()).toContain('mailto:hello@example.org')
})

test("the operator's text stands in for ours, at once, with facts filled in", async () => {
  const folder = path.join(stack.dataDir, 'pages')
  await mkdir(folder)
  await writeFile(path.join(folder, 'imprint.md'), '# Who we are\n\nExample Ltd runs {{service_host}}. **Really.**')
  const page = (await stack.fetch('/imprint')).text()
  expect(page).toContain('<title>Who we are · Dropway</title>')
  expect(page).toContain(`Example Ltd runs localhost:${stack.httpsPort}. <strong>Really.</strong>`)
  await writeFile(path.join(folder, 'imprint.md'), '# Who we are now\n')
  expect((await stack.fetch('/imprint')).text()).toContain('<h1>Who we are now</h1>')
  await rm(folder, { recursive: true })
  expect((await stack.fetch('/imprint')).text()).toContain('Imprint and contact')
})

test('crawlers find the pages for everyone, and each exists', async () => {
  const robots = (await stack.fetch('/robots.txt')).text()
  expect(robots).toContain(`Sitemap: ${stack.baseUrl}/sitemap.xml`)
  expect(robots).toContain('Disallow: /account')
  const sitemap = await stack.fetch('/sitemap.xml')
  expect(sitemap.header('content-type')).toContain('application/xml')
  const addresses = [...sitemap.text().matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, address]) => address!)
  expect(addresses).toEqual(expect.arrayContaining(PAGES.map((page) => stack.baseUrl + page)))
  for (const address of addresses) {
    const answer = await stack.fetch(address)
    expect(answer.status, address).toBe(200)
    expect(robots.split('\n').some((line) => line === `Disallow: ${new URL(address).pathname}`)).toBe(false)
  }
  expect(new Set(addresses).size).toBe(addresses.length)
})

test('messengers get a title, words and a picture that exists', async () => {
  for (const address of ['/', '/docs/quick-start', '/terms', '/gallery', '/templates', '/templates/cv']) {
    const page = (await stack.fetch(address)).text()
    expect(page, address).toContain(`<link rel="canonical" href="${stack.baseUrl}${address}">`)
    for (const name of ['og:title', 'og:description', 'og:url', 'og:image', 'og:site_name'])
      expect(page, `${address} ${name}`).toContain(`<meta property="${name}" content="`)
    const image = await stack.fetch(/property="og:image" content="([^"]+)"/.exec(page)![1]!)
    expect(image.header('content-type')).toBe('image/png')
    // A PNG says its size in its first bytes.
    expect([image.body.readUInt32BE(16), image.body.readUInt32BE(20)]).toEqual([1200, 630])
  }
  expect((await stack.fetch('/signin')).text()).not.toContain('og:title')
})

test('the status says what is away, also when that is the database', async () => {
  const status = async () => (await stack.fetch('/api/v1/status')).json()
  expect(await status()).toMatchObject({
    state: 'ok',
    parts: expect.arrayContaining([{ name: 'Published drops', state: 'ok', detail: 'The edge answers.' }]),
  })
  expect((await stack.fetch('/status')).text()).toContain('Everything works')
  const goOn = freeze(stack.pids()['postgres']!)
  try {
    await expect.poll(async () => (await status()).state).toBe('away')
    const page = await stack.fetch('/status')
    expect(page.status).toBe(200)
    expect(page.text()).toContain('The database does not answer. What is published stays online.')
  } finally {
    goOn()
  }
  await expect.poll(async () => (await status()).state).toBe('ok')
})
