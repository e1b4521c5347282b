/** The docs can be read everywhere: on a phone, zoomed in, by keyboard, and without scripts. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
})
afterAll(() => browser.close())

/** A window of 1280 × 860 at 200 % has the space of 640 × 430. */
const VIEWS = [
  { name: 'a phone', width: 390, height: 740 },
  { name: '200 % zoom', width: 640, height: 430 },
  { name: 'a wide but low window', width: 1280, height: 400 },
  { name: 'a desktop', width: 1280, height: 860 },
]

test.each(VIEWS)('nothing covers the text on $name', async ({ width, height }) => {
  const visitor = await openVisitor(browser, stack, { javaScript: true })
  const { page } = visitor
  await page.setViewportSize({ width, height })
  for (const address of ['/docs/quick-start', '/docs/errors', '/docs/api', '/docs/api/versions']) {
    await visitor.goto(address)
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), address).toBe(true)
    for (const part of [0, 0.3, 0.6]) expect(await coveredPoints(page, part), `${address} at ${part}`).toEqual([])
  }
  await visitor.close()
})

/** Points of the article in the window where something else is on top, after scrolling to a part of its length. */
function coveredPoints(page: Page, part: number): Promise<string[]> {
  return page.evaluate((share) => {
    const article = document.querySelector('article')!
    scrollTo(0, article.offsetTop + article.offsetHeight * share)
    const box = article.getBoundingClientRect()
    const covered: string[] = []
    for (let y = Math.max(box.top, 0) + 5; y < Math.min(box.bottom, innerHeight) - 5; y += 20)
      for (let x = box.left + 5; x < box.right - 5; x += 40) {
        const top = document.elementFromPoint(x, y)
        if (top && !article.contains(top)) covered.push(`${x},${y}: ${top.outerHTML.slice(0, 80)}`)
      }
    return covered
  }, part)
}

test('without scripts, from the index to an endpoint and its fields', async () => {
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  const { page } = visitor
  await visitor.goto('/docs')
  await page.getByRole('link', { name: 'API reference' }).click()
  await page.getByRole('link', { name: 'POST /sites/{id}/upload-bundle' }).click()
  expect(page.url()).toContain('/docs/api/versions#')
  const endpoint = page.getByRole('region', { name: 'Publish a folder or a .zip' })
  await endpoint.getByText('Fields of the form').click()
  await expect.poll(() => endpoint.getByText('The path of each file within the folder').isVisible()).toBe(true)
  await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'Quick start' }).click()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Quick start')
  expect(await page.title()).toBe('Quick start · Dropway')
  expect(await page.locator('meta[name=description]').getAttribute('content')).toContain('first page')
  await visitor.close()
})

test('an unknown guide is a page that says so', async () => {
  for (const path of ['/docs/none', '/docs/api/none', '/docs/..%2fsecret'])
    expect((await stack.fetch(path)).status, path).toBe(404)
})
