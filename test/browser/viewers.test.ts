/** From an invitation to reading: two steps, without scripts, by keyboard, on a phone. And sharing in two clicks. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { beSignedIn, keepScreenshot, openVisitor, PASSWORD } from '../support/dashboard-visitor.ts'
import { sharedStack, type Account, type Stack } from '../support/stack.ts'
import { viewerMail } from '../support/viewer-mail.ts'

let stack: Stack
let browser: Browser
let owner: Account

beforeAll(async () => {
  stack = await sharedStack()
  browser = await launchBrowser()
  owner = await stack.createAccount('plus')
})
afterAll(() => browser.close())

async function shared(viewers: string): Promise<{ id: string; slug: string; url: string }> {
  const api = apiFor(stack, owner)
  const drop = (await api.create()).json<{ id: string; slug: string; url: string }>()
  const fields = { access_mode: 'viewers', viewers }
  await api.upload(drop.id, fileForm('index.html', '<title>x</title><h1>inside</h1>', fields))
  return drop
}

test('an invitation is opened and read with one key', async () => {
  const email = `keyboard-${process.pid}@example.com`
  await shared(email)
  const { link = '' } = await viewerMail(stack, email)
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  await visitor.page.setViewportSize({ width: 360, height: 640 })
  await visitor.goto(link)
  // A browser moves the focus when it first draws the page.
  await visitor.page.locator('button:focus').waitFor()
  await visitor.page.keyboard.press('Enter')
  await visitor.page.getByRole('heading', { name: 'inside' }).waitFor()
  await visitor.close()
})

test('an address, a code, the page: by keyboard, without scripts, at 360 pixels', async () => {
  const email = `coded-${process.pid}@example.com`
  const drop = await shared(email)
  await viewerMail(stack, email)
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  const { page } = visitor
  await page.setViewportSize({ width: 360, height: 640 })
  await visitor.goto(drop.url)
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(email)
  await page.keyboard.press('Enter')
  await page.getByLabel('Code of six digits').waitFor()
  const { code = '' } = await viewerMail(stack, email, 2)
  const width = await page.locator('body').evaluate((body) => body.scrollWidth)
  expect(width).toBeLessThanOrEqual(360)
  await page.locator('input:focus').waitFor()
  await page.keyboard.type(code)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'inside' }).waitFor()
  await visitor.close()
})

test('the pages that let viewers in are accessible', async () => {
  const email = `axe-${process.pid}@example.com`
  const drop = await shared(email)
  const { link = '' } = await viewerMail(stack, email)
  const visitor = await openVisitor(browser, stack)
  for (const [name, address] of [
    ['locked', drop.url],
    ['invitation', link],
  ] as const) {
    await visitor.goto(address)
    expect(await seriousViolations(visitor.page)).toEqual([])
    for (const width of [360, 1280]) {
      await visitor.page.setViewportSize({ width, height: 800 })
      expect(await visitor.page.locator('body').evaluate((body) => body.scrollWidth)).toBeLessThanOrEqual(width)
      await keepScreenshot(visitor.page, `viewers-${name}-${width}`)
    }
  }
  await visitor.page.goto(drop.url)
  await visitor.page.getByLabel('Your e-mail address').fill(email)
  await visitor.page.getByRole('button', { name: 'Send me a code' }).click()
  await visitor.page.getByLabel('Code of six digits').waitFor()
  expect(await seriousViolations(visitor.page)).toEqual([])
  await visitor.close()
})

test('a new drop is published for members and named people alone, without scripts', async () => {
  const publisher = await stack.createAccount('plus', { password: PASSWORD })
  const guest = `chosen-${process.pid}@example.com`
  const visitor = await openVisitor(browser, stack, { javaScript: false })
  const { page } = visitor
  await beSignedIn(visitor, stack, publisher.email)
  const publish = async (mode: string, people: string): Promise<void> => {
    await visitor.goto('/sites/new')
    await page.getByLabel('Who may see it').selectOption({ label: mode })
    await page.getByLabel('People').fill(people)
    await page.locator('textarea[name="text"]').fill('<title>x</title><h1>inside</h1>')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
  }
  await publish('Everyone who has the address', guest)
  await page.getByText('or name no one here').waitFor()
  for (const width of [360, 1280]) {
    await page.setViewportSize({ width, height: 800 })
    expect(await page.locator('body').evaluate((body) => body.scrollWidth)).toBeLessThanOrEqual(width)
    await keepScreenshot(page, `new-drop-${width}`)
  }
  await publish('Only members and people I name', guest)
  await page.getByRole('heading', { name: 'Version 1 is live' }).waitFor()
  const address = (await page.locator('a.live-link').getAttribute('href'))!
  expect((await stack.fetch(address)).status).toBe(401)
  const { link = '' } = await viewerMail(stack, guest)
  const invited = await openVisitor(browser, stack, { javaScript: false })
  await invited.goto(link)
  await invited.page.locator('button:focus').waitFor()
  await invited.page.keyboard.press('Enter')
  await invited.page.getByRole('heading', { name: 'inside' }).waitFor()
  await Promise.all([visitor.close(), invited.close()])
})
