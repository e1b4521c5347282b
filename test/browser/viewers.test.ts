/** From an invitation to reading: two steps, without scripts, by keyboard, on a phone. And sharing in two clicks. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriousViolations } from '../support/accessibility.ts'
import { apiFor, fileForm } from '../support/api.ts'
import { launchBrowser } from '../support/browser.ts'
import { openVisitor } from '../support/dashboard-visitor.ts'
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
  for (const address of [drop.url, link]) {
    await visitor.goto(address)
    expect(await seriousViolations(visitor.page)).toEqual([])
  }
  await visitor.page.goto(drop.url)
  await visitor.page.getByLabel('Your e-mail address').fill(email)
  await visitor.page.getByRole('button', { name: 'Send me a code' }).click()
  await visitor.page.getByLabel('Code of six digits').waitFor()
  expect(await seriousViolations(visitor.page)).toEqual([])
  await visitor.close()
})
