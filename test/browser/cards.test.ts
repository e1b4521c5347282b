/** Cards as a browser shows them in the list of drops and in the gallery. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD, type Visitor } from '../support/dashboard-visitor.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'

let stack: Stack
let browser: Browser
let visitor: Visitor
let account: Account

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  account = await stack.createAccount('plus', { password: PASSWORD })
  visitor = await openVisitor(browser, stack)
  await beSignedIn(visitor, stack, account.email)
})
afterAll(() => browser.close())

test('an owner switches it on, and the list and the gallery show it, on a phone too', async () => {
  const { page } = visitor
  const title = `Field notes ${Date.now().toString(36)}`
  const drop = await stack.publish(account, `<!doctype html><title>${title}</title><h1>Notes</h1>`)
  await stack.publish(account, '<!doctype html><title>Without</title><h1>Without</h1>')
  await visitor.goto(`/sites/${drop.id}/settings`)
  await page.getByLabel('Draw a picture for shared links').check()
  await page.getByLabel('Show it in the public gallery').check()
  await page
    .locator('form', { has: page.getByLabel('Single-page app') })
    .getByRole('button')
    .first()
    .click()
  await page.waitForURL(/done=saved/)
  expect(await page.getByLabel('Draw a picture for shared links').isChecked()).toBe(true)

  await page.setViewportSize({ width: 360, height: 740 })
  for (const [path, name] of [
    ['/sites', 'list'],
    ['/gallery', 'gallery'],
  ] as const) {
    const picture = page.locator(`img.thumbnail[src*="${drop.slug}"]`)
    // The gallery may show a list that is two seconds old.
    await expect.poll(async () => (await visitor.goto(path), picture.count())).toBe(1)
    await picture.scrollIntoViewIfNeeded()
    await expect
      .poll(() => picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
      .toBe(1200)
    const [box, scrolled] = [await picture.boundingBox(), await page.evaluate('document.documentElement.scrollWidth')]
    expect(box!.width).toBeGreaterThan(60)
    expect(scrolled).toBe(360)
    await keepScreenshot(page, `cards-${name}`)
  }
})
